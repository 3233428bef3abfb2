//! How things are with the module on this machine: read from /proc, /sys and the cache, so that a
//! test can bring a machine of its own.

use std::fs;
use std::path::{Path, PathBuf};

use ntcopy::uapi::STAT_BYTES;
use serde::Serialize;

use super::kept::{built, installed};
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Presence {
    pub version: Option<String>,
    /// How many things hold it: open files of its device, sockets.
    pub references: Option<u64>,
}

/// How things are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub release: String,
    /// Whether the kernel knows MSG_NTCOPY itself.
    pub has_series: bool,
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
            has_series: sysroot.text("proc/net/netstat").is_some_and(|it| it.contains(STAT_BYTES)),
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

/// The processes that have the device open: number and name. Root sees all of them.
pub fn holders(root: &Sysroot) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root.path("proc")).into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().flatten();
        let is_device = |file: fs::DirEntry| {
            fs::read_link(file.path()).is_ok_and(|to| to == Path::new("/dev/ntcopy"))
        };
        if files.into_iter().any(is_device) {
            let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
            found.push((pid, name.trim().to_owned()));
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_with_the_device_are_found_by_their_open_files() {
        let root = tempfile::tempdir().unwrap();
        for (pid, target) in [("12", "/dev/ntcopy"), ("34", "/dev/null"), ("self", "/dev/ntcopy")] {
            let folder = root.path().join("proc").join(pid);
            fs::create_dir_all(folder.join("fd")).unwrap();
            fs::write(folder.join("comm"), "name\n").unwrap();
            std::os::unix::fs::symlink(target, folder.join("fd/3")).unwrap();
        }
        let sysroot = Sysroot(root.path().to_path_buf());
        assert_eq!(holders(&sysroot), [(12, "name".to_owned())]);
    }
}
