//! Which download a build begins with where no source is here yet.

use serde::Serialize;

use crate::error::Result;
use crate::interrupt::Interrupts;
use crate::source::known;
use crate::source::wanted::Wanted;

/// The source package that is going to be downloaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Download {
    /// Its name; where apt's lists lack it, what the name is like.
    pub name: String,
    /// Its version, if apt knows it.
    pub version: Option<String>,
    /// Its size in bytes, if apt knows it.
    pub size_bytes: Option<u64>,
    /// What that rests on.
    pub basis: String,
}

/// The newest package that the system's own apt knows. The mirror is asked first when it comes to
/// building, and may have a newer one.
pub(super) fn of(wanted: Wanted, interrupts: &Interrupts) -> Result<Download> {
    Ok(match known::newest(wanted, interrupts)? {
        Some(package) => Download {
            name: package.name,
            version: Some(package.version),
            size_bytes: Some(package.size_bytes),
            basis: "by apt's lists as they are; the mirror may have a newer one".into(),
        },
        None => Download {
            name: format!("{}*", wanted.prefix()),
            version: None,
            size_bytes: None,
            basis: "apt's own lists lack it, and the mirror is asked for it when it comes to \
                    building; those of 7.3.4 and 6.12.117 are 167 and 153 MB"
                .into(),
        },
    })
}
