//! The module `ntcopy.ko`: `MSG_NTCOPY` on a kernel that doesn't know it.
//!
//! [`build`] makes it for a kernel whose headers are here, [`load`] and [`unload`] put it into the
//! running kernel and take it out, [`Status`] says how things are. What a kernel refuses is
//! explained in words by pure functions of what is known of it.

mod compile;
mod error;
mod headers;
mod kept;
mod load;
mod refusal;
mod source;
mod status;
mod stock;

use std::fs;
use std::path::Path;

use crate::error::{Context, Result};

pub use compile::{ModuleBuild, build};
pub use error::ModuleError;
pub use kept::{Kept, cached, find};
pub use load::{Loaded, holders, load, unload};
pub use source::{Range, Sources};
pub use status::{Lockdown, Presence, SecureBoot, Status, Sysroot, Taint, TaintFound};
pub use stock::{StockHeaders, stock_headers};

/// The strings of a module's `.modinfo` that matter here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modinfo {
    /// Its version.
    pub version: Option<String>,
    /// The kernel that it is for, and how that was configured: "6.12.117+deb12-amd64 SMP …".
    pub vermagic: Option<String>,
    /// Modules that must be there before it.
    pub depends: Vec<String>,
    /// Whether a signature is appended; whose, the kernel judges.
    pub is_signed: bool,
    /// Whether it is an ELF file and names a kernel: anything else is no module.
    pub is_module: bool,
}

/// How a file with an appended signature ends; from include/linux/module_signature.h.
const SIGNATURE_MARK: &[u8] = b"~Module signature appended~\n";

impl Modinfo {
    /// Reads a module, uncompressed.
    ///
    /// # Errors
    ///
    /// When the file cannot be read.
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self::parse(&fs::read(path).doing("reading", path)?))
    }

    pub(super) fn parse(bytes: &[u8]) -> Self {
        // The section is "name=value" strings that end with a NUL, each after another's NUL or at
        // the section's beginning, which is aligned with NULs.
        let value = |name: &str| {
            let strings = bytes.split(|&byte| byte == 0);
            let found = strings.filter_map(|text| text.strip_prefix(name.as_bytes()));
            found.map(|text| String::from_utf8_lossy(text).into_owned()).next()
        };
        let depends = value("depends=").unwrap_or_default();
        let vermagic = value("vermagic=");
        Self {
            is_module: bytes.starts_with(b"\x7fELF") && vermagic.is_some(),
            version: value("version="),
            vermagic,
            depends: depends.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect(),
            is_signed: bytes.ends_with(SIGNATURE_MARK),
        }
    }

    /// The release of the kernel that it is for.
    pub fn release(&self) -> Option<&str> {
        self.vermagic.as_deref()?.split(' ').next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strings_of_a_module_are_found_among_its_bytes() {
        let bytes = b"\x7fELF\0\0version=0.1.0\0license=GPL\0srcversion=ABC\0depends=a,b\0\
            name=ntcopy\0vermagic=6.12.117+deb12-cloud-amd64 SMP preempt mod_unload modversions \0x";
        let info = Modinfo::parse(bytes);
        assert_eq!(info.version.as_deref(), Some("0.1.0"));
        assert_eq!(info.release(), Some("6.12.117+deb12-cloud-amd64"));
        assert_eq!(info.depends, ["a", "b"]);
        assert!(!info.is_signed && info.is_module);
        let signed = Modinfo::parse(b"\0depends=\0~Module signature appended~\n");
        assert!(signed.is_signed && signed.depends.is_empty() && signed.release().is_none());
        assert!(!signed.is_module);
    }
}
