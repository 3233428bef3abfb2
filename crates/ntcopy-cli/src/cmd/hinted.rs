//! Which sockets are hinted, and from how many bytes on, as a user says it; and whether this kernel
//! takes it.

use std::ffi::c_int;

use ntcopy::recommended;
use ntcopy::socket::{self, Support};
use ntcopy::uapi;
use ntcopy_record::units::Bytes;

/// A family of sockets that is hinted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Family {
    Unix,
    Tcp,
    Udp,
}

impl From<Family> for recommended::Family {
    fn from(family: Family) -> Self {
        match family {
            Family::Unix => recommended::Family::Unix,
            Family::Tcp => recommended::Family::Tcp,
            Family::Udp => recommended::Family::Udp,
        }
    }
}

/// Each family once; without any those that are recommended.
pub fn families(asked: &[Family]) -> Vec<recommended::Family> {
    let asked = if asked.is_empty() { &[Family::Unix, Family::Tcp] } else { asked };
    let mut families: Vec<recommended::Family> = asked.iter().map(|one| (*one).into()).collect();
    families.sort_unstable();
    families.dedup();
    families
}

/// A size as the kernel takes it.
pub fn number(bytes: Bytes) -> Result<c_int, String> {
    let number = c_int::try_from(bytes.0).ok().filter(|number| *number >= uapi::MIN_BYTES);
    number.ok_or_else(|| {
        let least = Bytes(uapi::MIN_BYTES.cast_unsigned().into());
        format!("--min-bytes {}: from {} to 2 GiB", bytes.argument(), least.argument())
    })
}

/// Why the hint is not taken on this kernel.
pub fn kernel_obstacle() -> Option<String> {
    (socket::kernel_support() == Support::None).then(|| match socket::other_series() {
        Some(other) => other.to_string(),
        None => "this kernel does not know SO_NTCOPY; one that does: ntcopy kernel boot -- COMMAND"
            .to_owned(),
    })
}
