//! What keeps a guest from the host's files: its kernel, or QEMU, runs in a mount namespace in which
//! everything is read-only, except what the guest may write.
//!
//! The guest's root mounts what it likes; it cannot mount more than its own kernel's process may
//! open. Where the host lets this user make no such namespace, as in a container, or the root is no
//! mount point, as after chroot(1), init's read-only mount in the guest is what is left.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, open};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, MoveMountFlags, OpenTreeFlags};
use rustix::mount::{mount_change, move_mount, open_tree};
use rustix::thread::{UnshareFlags, unshare_unsafe};

use crate::error::{Context, Error, Result};

/// Where the guest has file systems of its own.
pub(super) const OWN: [&str; 4] = ["/run", "/dev", "/proc", "/sys"];

/// A folder that the guest may write, as the guest finds it.
pub(super) fn writable(folder: &Path) -> Result<PathBuf> {
    let path = std::fs::canonicalize(folder).doing("finding", folder)?;
    let refused = |why: &str| Error::NotHere(format!("{}: {why}", path.display()));
    if !path.is_dir() {
        return Err(refused("a guest writes to folders, and this is none"));
    }
    if OWN.iter().any(|own| path.starts_with(own)) {
        return Err(refused("the guest has file systems of its own there, and cannot write to it"));
    }
    Ok(path)
}

/// The folders that get an overlay in the guest: outermost ones, in which nothing else can be written
/// already.
pub(super) fn scratch(folders: &[PathBuf], writable: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for folder in folders {
        let Ok(path) = std::fs::canonicalize(folder) else { continue };
        let has_own = |of: &[PathBuf]| of.iter().any(|other| path.starts_with(other));
        let is_own = OWN.iter().any(|own| path.starts_with(own));
        if path == Path::new("/") || is_own || has_own(writable) || has_own(&found) {
            continue;
        }
        found.retain(|other| !other.starts_with(&path));
        found.push(path);
    }
    found
}

/// What is done in the child before it becomes the guest. Nothing there may allocate.
pub(super) struct Wall {
    writable: Vec<CString>,
    trees: Vec<OwnedFd>,
    /// For a user who is not root: files of the process, and what makes it the same user in a user
    /// namespace.
    same_user: Option<[(&'static CStr, String); 3]>,
}

/// `struct mount_attr` of linux/mount.h.
#[repr(C)]
struct Attributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}
const MOUNT_ATTR_RDONLY: u64 = 1;
const AT_RECURSIVE: libc::c_uint = 0x8000;

impl Wall {
    pub(super) fn new(writable: &[PathBuf]) -> Result<Self> {
        let path = |path: &PathBuf| CString::new(path.as_os_str().as_bytes());
        let writable = writable.iter().map(path).collect::<Result<Vec<_>, _>>();
        let writable = writable.map_err(io::Error::from).doing("naming", "a folder")?;
        let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
        let map = |id: u32| format!("{id} {id} 1\n");
        let same_user = (!user.is_root()).then(|| {
            [
                (c"/proc/self/setgroups", "deny".to_owned()),
                (c"/proc/self/uid_map", map(user.as_raw())),
                (c"/proc/self/gid_map", map(group.as_raw())),
            ]
        });
        Ok(Self { trees: Vec::with_capacity(writable.len()), writable, same_user })
    }

    /// Closes this process in.
    pub(super) fn close(&mut self) -> io::Result<()> {
        let mut flags = UnshareFlags::NEWNS;
        flags.set(UnshareFlags::NEWUSER, self.same_user.is_some());
        // SAFETY: descriptors stay shared with nobody: this is a child of one thread, before exec.
        if unsafe { unshare_unsafe(flags) }.is_err() {
            return Ok(());
        }
        for (file, text) in self.same_user.iter().flatten() {
            let file = open(*file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
            rustix::io::write(file, text.as_bytes())?;
        }
        match mount_change(c"/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC) {
            // The root is no mount point.
            Err(Errno::INVAL) => return Ok(()),
            done => done?,
        }
        let flags = OpenTreeFlags::OPEN_TREE_CLONE
            | OpenTreeFlags::OPEN_TREE_CLOEXEC
            | OpenTreeFlags::AT_RECURSIVE;
        for folder in &self.writable {
            self.trees.push(open_tree(CWD, folder.as_c_str(), flags)?);
        }
        match read_only() {
            Ok(()) => {}
            // Before Linux 5.12, or forbidden to a container.
            Err(Errno::NOSYS | Errno::PERM) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
        let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        for (tree, folder) in self.trees.iter().zip(&self.writable) {
            move_mount(tree, c"", CWD, folder.as_c_str(), flags)?;
        }
        Ok(())
    }
}

/// Makes all mounts of this namespace read-only.
fn read_only() -> rustix::io::Result<()> {
    let attributes =
        Attributes { set: MOUNT_ATTR_RDONLY, clear: 0, propagation: 0, user_namespace: 0 };
    // SAFETY: mount_setattr(2) reads a path that ends with NUL and as many bytes of a mount_attr as
    // it is told; both live through the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            c"/".as_ptr(),
            AT_RECURSIVE,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    if done == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlays_lie_side_by_side_and_not_where_something_else_can_be_written() {
        let folder = crate::testing::folder(&[("a/b/file", ""), ("c/file", "")]);
        let root = folder.path().canonicalize().unwrap();
        let path = |name: &str| root.join(name);
        let asked = [path("a/b"), path("a"), path("a/b"), path("c"), path("none")];
        assert_eq!(scratch(&asked, &[]), [path("a"), path("c")]);
        assert_eq!(scratch(&asked, &[path("c")]), [path("a")]);
        assert_eq!(
            scratch(&["/", "/run", "/proc/self"].map(PathBuf::from), &[]),
            [""; 0].map(PathBuf::from)
        );
    }
}
