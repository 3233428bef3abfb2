//! How things are with the module on this machine: read from /proc, /sys and the cache, so that a
//! test can bring a machine of its own.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::kept::{built, installed};
use super::source;
use crate::cache::Cache;
use crate::error::{Error, Result};

/// `/`, or a folder that holds what was recorded of another machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sysroot(pub PathBuf);

impl Sysroot {
    pub fn is_live(&self) -> bool {
        self.0 == Path::new("/")
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn text(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.path(name)).ok().map(|text| text.trim().to_owned())
    }
}

/// The module in the running kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Presence {
    pub version: Option<String>,
    /// How many things hold it: open files of its device, sockets.
    pub references: Option<u64>,
}

/// How things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The running kernel's.
    pub release: String,
    /// Whether the kernel knows MSG_NTCOPY itself.
    pub has_series: bool,
    /// Whether the module is for this kernel.
    pub is_in_range: bool,
    /// Whether the kernel takes modules at all.
    pub takes_modules: bool,
    pub loaded: Option<Presence>,
    /// What was built, else what was installed, for this kernel.
    pub file: Option<PathBuf>,
    pub headers: Option<PathBuf>,
}

impl Status {
    /// Looks. Needs no root.
    pub fn gather(sysroot: &Sysroot, cache: Option<&Cache>) -> Result<Self> {
        let release = sysroot.text("proc/sys/kernel/osrelease").filter(|it| !it.is_empty());
        let release = release.ok_or_else(|| {
            Error::NotHere("there is no /proc, which has the kernel's release".into())
        })?;
        let loaded = presence(sysroot);
        let built = cache.map(|cache| built(cache, &release)).transpose()?.flatten();
        let headers = sysroot.path(&format!("lib/modules/{release}/build"));
        Ok(Self {
            // The module brings the same file.
            has_series: sysroot.path("proc/net/ntcopy_stat").exists() && loaded.is_none(),
            is_in_range: source::check(&release).is_ok(),
            takes_modules: sysroot.path("proc/modules").exists(),
            loaded,
            file: built.or_else(|| installed(&sysroot.0, &release)),
            headers: headers.join("Makefile").is_file().then_some(headers),
            release,
        })
    }

    /// An error where the kernel needs no module.
    pub fn check_series(&self) -> Result<()> {
        if !self.has_series {
            return Ok(());
        }
        let text = "this kernel knows MSG_NTCOPY itself; it needs no module, and takes none";
        Err(Error::NotHere(text.into()))
    }
}

/// The module's line of /proc/modules: name, size, references, and more.
fn presence(sysroot: &Sysroot) -> Option<Presence> {
    let text = sysroot.text("proc/modules")?;
    let line = text.lines().find(|line| line.split(' ').next() == Some("ntcopy"))?;
    Some(Presence {
        version: sysroot.text("sys/module/ntcopy/version"),
        references: line.split(' ').nth(2).and_then(|count| count.parse().ok()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Sysroot) {
        let root = tempfile::tempdir().unwrap();
        for (name, content) in files {
            let path = root.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let sysroot = Sysroot(root.path().to_path_buf());
        (root, sysroot)
    }

    const RELEASE: (&str, &str) = ("proc/sys/kernel/osrelease", "6.12.117+deb12-amd64\n");

    #[test]
    fn the_module_is_told_from_the_series_by_what_is_loaded() {
        let (_root, sysroot) = machine(&[
            RELEASE,
            ("proc/modules", "tls 151552 0 - Live 0x0\nntcopy 49152 3 - Live 0x0 (OE)\n"),
            ("sys/module/ntcopy/version", "0.1.0\n"),
            ("proc/net/ntcopy_stat", ""),
            ("lib/modules/6.12.117+deb12-amd64/updates/dkms/ntcopy.ko.xz", ""),
        ]);
        let status = Status::gather(&sysroot, None).unwrap();
        let loaded = Presence { version: Some("0.1.0".into()), references: Some(3) };
        assert_eq!(status.loaded, Some(loaded));
        assert!(!status.has_series && status.is_in_range && status.headers.is_none());
        assert!(status.file.unwrap().ends_with("updates/dkms/ntcopy.ko.xz"));
        let (_root, sysroot) = machine(&[
            RELEASE,
            ("proc/net/ntcopy_stat", ""),
            ("proc/modules", "ntcopy_other 1 0 - Live 0x0\n"),
        ]);
        let status = Status::gather(&sysroot, None).unwrap();
        assert!(status.has_series && status.takes_modules);
        assert_eq!(status.check_series().unwrap_err().exit_code(), 3);
    }

    #[test]
    fn a_kernel_without_modules_and_a_machine_without_proc_are_no_puzzle() {
        let (_root, sysroot) = machine(&[RELEASE]);
        assert!(!Status::gather(&sysroot, None).unwrap().takes_modules);
        let (_root, sysroot) = machine(&[]);
        assert_eq!(Status::gather(&sysroot, None).unwrap_err().exit_code(), 3);
    }
}
