//! The folder of a measurement.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ntcopy_record::units::Bytes;
use rustix::fs::{FlockOperation, flock};

use crate::run::Failure;

/// A file system in memory, where there is one: a disk is not what is measured.
const MEMORY: &str = "/dev/shm";
/// What the folders' names begin with.
const PREFIX: &str = "ntcopy-http-";
/// Held by the process that a folder belongs to, with its number in it.
const OWNER: &str = "owner";
/// Room beside the data: logs, sockets, settings.
const SLACK_BYTES: u64 = 16 << 20;
/// The longest path of a socket in the file system, its end mark left out.
const SOCKET_PATH_BYTES: usize = 107;
/// And the longest name below the folder.
const NAME_BYTES: usize = 32;

/// The folder of a measurement. Dropped, it is gone.
pub struct Scratch {
    folder: tempfile::TempDir,
    /// Locked for as long as this process lives.
    _owner: File,
}

impl Scratch {
    /// Makes it, with room for the data: in memory if possible, otherwise where temporary files
    /// go. What a process that was killed has left in memory is removed first.
    pub fn new(data_bytes: u64) -> Result<Scratch, Failure> {
        let places = places();
        remove_abandoned(Path::new(MEMORY));
        let wanted = data_bytes.saturating_add(SLACK_BYTES);
        for place in places.iter().filter(|place| free_bytes(place) >= wanted) {
            let made = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place);
            if let Ok(folder) = made
                && folder.path().as_os_str().len() + NAME_BYTES <= SOCKET_PATH_BYTES
            {
                let _owner = own(folder.path())
                    .map_err(Failure::io(format!("cannot write to {}", place.display())))?;
                return Ok(Scratch { folder, _owner });
            }
        }
        let said: Vec<String> = places
            .iter()
            .map(|place| format!("{} has {}", place.display(), Bytes(free_bytes(place))))
            .collect();
        Err(Failure::Limit(format!(
            "the data set takes {}, and {}: use a smaller --dataset, or name another folder, with \
             a short path, in TMPDIR",
            Bytes(wanted),
            said.join(", ")
        )))
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

fn places() -> [PathBuf; 2] {
    [PathBuf::from(MEMORY), std::env::temp_dir()]
}

fn free_bytes(place: &Path) -> u64 {
    rustix::fs::statvfs(place).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
}

/// Says whose the folder is, in a file that has its name only once it is locked.
fn own(folder: &Path) -> std::io::Result<File> {
    let new = folder.join("owner.new");
    let mut file = File::create(&new)?;
    writeln!(file, "{}", std::process::id())?;
    flock(&file, FlockOperation::NonBlockingLockExclusive)?;
    fs::rename(new, folder.join(OWNER))?;
    Ok(file)
}

/// Removes folders whose owner is dead, which is who no longer holds the lock. Only where the
/// file system belongs to this kernel alone: locks do not reach further.
fn remove_abandoned(place: &Path) {
    let entries = fs::read_dir(place).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let Ok(owner) = File::open(entry.path().join(OWNER)) else { continue };
        if flock(&owner, FlockOperation::NonBlockingLockExclusive).is_ok() {
            // It is another user's, or gone meanwhile: nothing can be done about it here.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_goes_and_one_without_room_is_refused() {
        let scratch = Scratch::new(0).unwrap();
        let folder = scratch.path().to_owned();
        fs::write(folder.join("file"), "x").unwrap();
        drop(scratch);
        assert!(!folder.exists());
        match Scratch::new(u64::MAX) {
            Err(Failure::Limit(why)) => assert!(why.contains("--dataset"), "{why}"),
            _ => panic!("there is no such room"),
        }
    }

    #[test]
    fn only_what_nobody_holds_any_more_is_removed() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let folder = place.path().join(name);
            fs::create_dir(&folder).unwrap();
            folder
        };
        let (held, dead) = (make("ntcopy-http-a"), make("ntcopy-http-b"));
        let (unborn, foreign) = (make("ntcopy-http-c"), make("other"));
        let owner = own(&held).unwrap();
        drop(own(&dead).unwrap());
        drop(own(&foreign).unwrap());
        remove_abandoned(place.path());
        assert_eq!(
            [&held, &dead, &unborn, &foreign].map(|f| f.exists()),
            [true, false, true, true]
        );
        drop(owner);
    }
}
