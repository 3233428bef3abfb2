//! Folders of the host in which the guest may write what nobody keeps.
//!
//! Each gets an overlay: what is written lies in the guest's memory, and goes with the guest.

use std::ffi::{CString, OsStr, OsString};
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::io::Errno;
use rustix::mount::{MountFlags, MoveMountFlags, OpenTreeFlags, mount, move_mount, open_tree};

use super::Result;

/// Where the changes lie: in the guest's own /run.
const CHANGES: &str = "/run/.ntcopy-changes";

/// How deep old sockets are looked for, and among how many files: a home may hold millions.
const DEPTH: u32 = 3;
const MOST_FILES: u32 = 20_000;

/// Covers the folders of `scratch`; those of `writable` below them stay the host's. On a kernel
/// without overlays all stays as it is.
pub(super) fn cover(scratch: &[OsString], writable: &[OsString]) -> Result<()> {
    for (number, folder) in scratch.iter().map(Path::new).enumerate() {
        let kept = kept_below(folder, writable)?;
        match overlay(number, folder) {
            Ok(()) => {}
            Err(Errno::NODEV) => return Ok(()),
            Err(errno) => {
                return Err(format!("an overlay over {}: {errno}", folder.display()));
            }
        }
        let mut left = MOST_FILES;
        remove_sockets(folder, DEPTH, &mut left);
        for (tree, path) in kept {
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
            move_mount(&tree, c"", CWD, path, flags)
                .map_err(|errno| format!("mounting {} again: {errno}", path.display()))?;
        }
    }
    Ok(())
}

/// The host's own folders that an overlay would hide.
fn kept_below<'a>(folder: &Path, writable: &'a [OsString]) -> Result<Vec<(OwnedFd, &'a Path)>> {
    let below = writable.iter().map(Path::new).filter(|path| path.starts_with(folder));
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    below
        .map(|path| match open_tree(CWD, path, flags) {
            Ok(tree) => Ok((tree, path)),
            Err(errno) => Err(format!("keeping {}: {errno}", path.display())),
        })
        .collect()
}

fn overlay(number: usize, folder: &Path) -> rustix::io::Result<()> {
    let changes = PathBuf::from(format!("{CHANGES}/{number}"));
    let [upper, work] = ["upper", "work"].map(|name| changes.join(name));
    let failed = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    fs::create_dir_all(&upper).map_err(failed)?;
    fs::create_dir_all(&work).map_err(failed)?;
    // The overlay's root has the owner and the mode of the upper folder: /tmp stays sticky.
    let of_folder = fs::metadata(folder).map_err(failed)?;
    chown(&upper, Some(of_folder.uid()), Some(of_folder.gid())).map_err(failed)?;
    fs::set_permissions(&upper, of_folder.permissions()).map_err(failed)?;
    let mut data = OsString::from("lowerdir=");
    data.push(escaped(folder.as_os_str()));
    data.push(format!(",upperdir={},workdir={}", upper.display(), work.display()));
    let data = CString::new(data.as_bytes()).map_err(|_| Errno::INVAL)?;
    mount("overlay", folder, "overlay", MountFlags::empty(), Some(data.as_c_str()))
}

/// A path among the options of an overlay, where colons and commas separate.
fn escaped(path: &OsStr) -> OsString {
    let mut bytes = Vec::with_capacity(path.len());
    for byte in path.as_bytes() {
        if b":,\\".contains(byte) {
            bytes.push(b'\\');
        }
        bytes.push(*byte);
    }
    OsStr::from_bytes(&bytes).to_owned()
}

/// Removes the host's sockets from the overlay: nothing in the guest can listen behind them, and a
/// server could not bind their names.
fn remove_sockets(folder: &Path, depth: u32, left: &mut u32) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return;
        }
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_socket() {
            // One that stays is named by the server that wants to bind it.
            let _ = fs::remove_file(entry.path());
        } else if kind.is_dir() && depth > 0 {
            remove_sockets(&entry.path(), depth - 1, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_separates_options_is_escaped() {
        assert_eq!(escaped(OsStr::new("/a:b,c\\d e")), OsStr::new("/a\\:b\\,c\\\\d e"));
    }

    #[test]
    fn sockets_go_and_files_stay() {
        let folder = crate::testing::folder(&[("a/b/file", "1"), ("file", "2")]);
        let path = |name: &str| folder.path().join(name);
        for name in ["s", "a/b/s"] {
            // The name stays when the socket is closed.
            drop(std::os::unix::net::UnixListener::bind(path(name)).unwrap());
        }
        remove_sockets(folder.path(), 0, &mut 100);
        assert!(!path("s").exists() && path("a/b/s").exists(), "no deeper than it is told");
        remove_sockets(folder.path(), DEPTH, &mut 100);
        assert!(!path("a/b/s").exists() && path("a/b/file").exists() && path("file").exists());
    }
}
