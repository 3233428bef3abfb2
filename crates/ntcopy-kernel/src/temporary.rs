//! Folders for the time of a command, which do not stay when it is killed: the next one that makes
//! such a folder there removes them.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};
use tempfile::TempDir;

use crate::error::{Context, Result};

/// Held by the process that a folder belongs to, with the boot in it.
const OWNER: &str = "owner";

/// Another kernel, as a guest with the same folder, does not see who holds a lock here.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// A folder of this process. Dropped, it is gone.
#[derive(Debug)]
pub struct Folder {
    folder: TempDir,
    /// Locked for as long as this process lives.
    _owner: File,
}

impl Folder {
    /// Makes one in the folder for temporary files; of one that is not there the error names
    /// `TMPDIR`.
    pub fn new(prefix: &str) -> Result<Folder> {
        let parent = std::env::temp_dir();
        make(&parent, prefix).doing("making a folder in that for temporary files (TMPDIR)", &parent)
    }

    /// Makes one in `parent`, and removes what dead processes of this user left there.
    pub fn below(parent: &Path, prefix: &str) -> Result<Folder> {
        make(parent, prefix).doing("creating a directory in", parent)
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A file without a name in the folder for temporary files.
pub fn file() -> Result<File> {
    let parent = std::env::temp_dir();
    tempfile::tempfile().doing("making a file in the folder for temporary files (TMPDIR)", parent)
}

fn make(parent: &Path, prefix: &str) -> io::Result<Folder> {
    remove_abandoned(parent, prefix);
    let folder = tempfile::Builder::new().prefix(prefix).tempdir_in(parent)?;
    let _owner = own(folder.path())?;
    Ok(Folder { folder, _owner })
}

/// Says whose the folder is, in a file that has its name only once it is locked.
fn own(folder: &Path) -> io::Result<File> {
    let new = folder.join("owner.new");
    fs::write(&new, boot())?;
    let file = File::open(&new)?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(new, folder.join(OWNER))?;
    Ok(file)
}

fn boot() -> String {
    fs::read_to_string(BOOT_ID).unwrap_or_default()
}

fn remove_abandoned(parent: &Path, prefix: &str) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix)) {
        let folder = entry.path();
        if is_ours(&folder) && is_abandoned(&folder) {
            // It is gone meanwhile: another process removes it as well.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// A folder, no link, of this user: others may make anything in a folder for temporary files.
fn is_ours(folder: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    fs::symlink_metadata(folder).is_ok_and(|facts| facts.is_dir() && facts.uid() == user)
}

/// Whether its owner is dead, which is who no longer holds the lock.
fn is_abandoned(folder: &Path) -> bool {
    let Ok(owner) = File::open(folder.join(OWNER)) else { return false };
    let boot = boot();
    !boot.is_empty()
        && io::read_to_string(&owner).is_ok_and(|text| text == boot)
        && flock(&owner, FlockOperation::NonBlockingLockExclusive).is_ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_folder_goes_and_one_that_cannot_be_made_is_named() {
        let parent = tempfile::tempdir().unwrap();
        let folder = Folder::below(parent.path(), "x-").unwrap();
        let path = folder.path().to_owned();
        fs::write(path.join("file"), "x").unwrap();
        drop(folder);
        assert!(!path.exists());
        let gone = parent.path().join("gone");
        let error = Folder::below(&gone, "x-").unwrap_err().to_string();
        assert!(error.contains(&gone.display().to_string()), "{error}");
    }

    #[test]
    fn only_what_nobody_of_this_boot_holds_any_more_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let [held, dead, elsewhere] = ["x-a", "x-b", "x-c"].map(make);
        let [unborn, foreign] = ["x-d", "other"].map(make);
        let owner = own(&held).unwrap();
        drop(own(&dead).unwrap());
        drop(own(&foreign).unwrap());
        fs::write(elsewhere.join(OWNER), "another boot\n").unwrap();
        let link = place.path().join("x-link");
        symlink(&foreign, &link).unwrap();
        drop(Folder::below(place.path(), "x-").unwrap());
        assert_eq!(
            [&held, &dead, &elsewhere, &unborn, &foreign, &link].map(|folder| folder.exists()),
            [true, false, true, true, true, true]
        );
        drop(owner);
    }
}
