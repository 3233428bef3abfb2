//! The directory of one guest: its orders, its console, the kernel's own files.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};

use super::wall::OWN;
use crate::cache::children;
use crate::error::{Context, Result};

/// What its name begins with.
const PREFIX: &str = "ntcopy-guest-";

/// A directory without a lock that is younger may belong to a process that is about to take it.
const YOUNG: Duration = Duration::from_secs(60);

/// Removed when dropped. Locked while it lives, so that a later guest can tell what a killed
/// process left behind.
pub(super) struct RunDir {
    folder: tempfile::TempDir,
    _lock: File,
}

impl RunDir {
    /// Makes one, and removes those that are not held any more.
    pub(super) fn new() -> Result<Self> {
        let parent = parent(&std::env::temp_dir());
        sweep(&parent, YOUNG);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(&parent);
        let folder = folder.doing("creating a directory in", &parent)?;
        let lock = File::open(folder.path()).doing("opening", folder.path())?;
        flock(&lock, FlockOperation::NonBlockingLockShared).doing("locking", folder.path())?;
        Ok(Self { folder, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Where the directory lies. Its name must be short and plain: the kernel puts a socket into it,
/// whose path holds 107 bytes, and reads it from its command line. And it must not be where the
/// guest mounts something of its own.
fn parent(wished: &Path) -> PathBuf {
    let hidden = OWN.iter().any(|own| wished.starts_with(own));
    let plain = wished.to_str().is_some_and(|name| {
        name.len() < 60 && !name.contains(|c: char| c.is_whitespace() || c == '"' || c == ',')
    });
    if plain && !hidden { wished.to_path_buf() } else { "/tmp".into() }
}

/// Removes what is not held, as far as this user may.
fn sweep(parent: &Path, young: Duration) {
    for path in children(parent).unwrap_or_default() {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let age = fs::symlink_metadata(&path).and_then(|metadata| metadata.modified());
        let is_old = age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age >= young));
        if !name.starts_with(PREFIX) || !is_old || path.is_symlink() {
            continue;
        }
        let Ok(folder) = File::open(&path) else { continue };
        if flock(&folder, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // Another user's directory cannot be removed, and need not be.
            let _ = fs::remove_dir_all(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_is_swept_and_a_living_guest_s_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let left = parent.path().join("ntcopy-guest-left");
        let held = parent.path().join("ntcopy-guest-held");
        let other = parent.path().join("other");
        for folder in [&left, &held, &other] {
            fs::create_dir(folder).unwrap();
        }
        let lock = File::open(&held).unwrap();
        flock(&lock, FlockOperation::NonBlockingLockShared).unwrap();
        sweep(parent.path(), YOUNG);
        assert!(left.exists(), "it is too young");
        sweep(parent.path(), Duration::ZERO);
        assert!(!left.exists());
        assert!(held.exists());
        assert!(other.exists());
    }

    #[test]
    fn a_place_that_the_guest_would_not_see_is_not_taken() {
        for wished in ["/run/user/0", "/dev/shm", "/tmp/with space"] {
            assert_eq!(parent(Path::new(wished)), Path::new("/tmp"));
        }
        assert_eq!(parent(Path::new("/var/tmp")), Path::new("/var/tmp"));
    }
}
