//! Putting the module into the running kernel, and taking it out. Why it is refused, kmod and the
//! kernel's log say.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::kept;
use super::status::{Status, Sysroot};
use crate::cache::Cache;
use crate::error::{Context, Error, Result};

/// Loads a module into the running kernel: the one that is named, else the one that was built or
/// installed for it. One that is loaded already is no error, and gives nothing.
pub fn load(named: Option<&Path>, cache: &Cache) -> Result<Option<PathBuf>> {
    let root = Sysroot("/".into());
    let status = Status::gather(&root, Some(cache))?;
    status.check_series()?;
    if status.loaded.is_some() {
        return Ok(None);
    }
    let path = named.map(Path::to_path_buf).or(status.file).ok_or_else(|| {
        let (release, modules) = (&status.release, cache.modules());
        Error::NotHere(format!(
            "there is no {} for Linux {release} (looked in {} and /lib/modules/{release}); this \
             makes one: ntcopy module build",
            kept::FILE,
            modules.display()
        ))
    })?;
    let mut kmsg = Kmsg::open();
    // It undoes the compression, too.
    let output = Command::new("insmod").arg(&path).env("LC_ALL", "C").output();
    let output = output.doing("running", "insmod")?;
    if output.status.success() {
        return Ok(Some(path));
    }
    let mut text = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    for line in kmsg.as_mut().map(Kmsg::new_lines).unwrap_or_default() {
        text.push_str(&format!("\n  the kernel's log: {line}"));
    }
    Err(Error::Refused(text))
}

/// The kernel's log from now on.
struct Kmsg(File);

impl Kmsg {
    fn open() -> Option<Self> {
        let flags = OFlags::NONBLOCK.bits().cast_signed();
        let mut file = OpenOptions::new().read(true).custom_flags(flags).open("/dev/kmsg").ok()?;
        file.seek(SeekFrom::End(0)).ok()?;
        Some(Self(file))
    }

    fn new_lines(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut record = [0; 8192];
        // A record a read, until there is none: "priority,number,microseconds,flags;text", then
        // lines of properties.
        while let Ok(length @ 1..) = self.0.read(&mut record) {
            let text = String::from_utf8_lossy(&record[..length]);
            let said = text.lines().next().and_then(|line| line.split_once(';'));
            lines.extend(said.map(|(_, said)| said.to_owned()));
        }
        lines
    }
}

/// Takes the module out of the running kernel. False if it wasn't loaded. `attached` and
/// `lingering` are what the module counts, as its device tells them.
pub fn unload(attached: u64, lingering: u64) -> Result<bool> {
    let root = Sysroot("/".into());
    if Status::gather(&root, None)?.loaded.is_none() {
        return Ok(false);
    }
    // Waiting for the last user is nothing that anybody has asked for.
    match rustix::system::delete_module(c"ntcopy", OFlags::NONBLOCK.bits().cast_signed()) {
        Ok(()) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(Errno::AGAIN | Errno::BUSY) => {
            Err(Error::Refused(in_use(attached, lingering, &holders(&root))))
        }
        Err(errno) => Err(Error::Refused(format!("the kernel keeps the module: {errno}"))),
    }
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

/// Why the module stays, and what to do.
fn in_use(attached: u64, lingering: u64, holders: &[(u32, String)]) -> String {
    let sockets =
        |count: u64| if count == 1 { "1 socket is".into() } else { format!("{count} sockets are") };
    let mut reasons = Vec::new();
    if attached > 0 {
        reasons.push(format!("{} attached", sockets(attached)));
    }
    if lingering > 0 {
        reasons.push(format!("{} detached, but not closed yet", sockets(lingering)));
    }
    for (pid, name) in holders {
        reasons.push(format!("/dev/ntcopy is open in process {pid} ({name})"));
    }
    format!(
        "the module is in use: {}. It can go when the programs that use it have closed their \
         sockets or ended; until then sysctl net.core.ntcopy=0 has hints ignored",
        reasons.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_the_module_is_counted_and_named() {
        let text = in_use(2, 1, &[(7, "storaged".into()), (9, "proxyd".into())]);
        for part in [
            "2 sockets are attached",
            "1 socket is detached, but not closed yet",
            "open in process 7 (storaged); /dev/ntcopy is open in process 9 (proxyd)",
        ] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

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
