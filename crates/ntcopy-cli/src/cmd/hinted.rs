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

/// Those that are hinted where none is asked for.
const USUAL: [Family; 2] = [Family::Unix, Family::Tcp];

/// Each family once; without any the usual ones.
pub fn families(asked: &[Family]) -> Vec<recommended::Family> {
    let asked = if asked.is_empty() { &USUAL } else { asked };
    let mut families: Vec<recommended::Family> = asked.iter().map(|one| (*one).into()).collect();
    families.sort_unstable();
    families.dedup();
    families
}

/// The help of `--min-bytes`, with this behind it.
pub fn min_bytes_help(note: &str) -> String {
    let words = |bytes: u32| Bytes(bytes.into()).argument();
    format!(
        "The smallest send that is hinted, from {} on{note} [default: {} of streams (by the module {}), \
         {} of datagrams]",
        words(uapi::MIN_BYTES.cast_unsigned()),
        words(recommended::STREAM_BYTES),
        words(recommended::MODULE_STREAM_BYTES),
        words(recommended::DATAGRAM_BYTES),
    )
}

/// The help of `--family`, of sockets of which this is said.
pub fn family_help(sockets: &str) -> String {
    let usual = USUAL.map(|family| recommended::Family::from(family).name()).join(",");
    format!("The sockets that are {sockets}: unix, tcp (with MPTCP), udp [default: {usual}]")
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
