//! The folder of a measurement.

use std::path::{Path, PathBuf};

use ntcopy_kernel::temporary::Folder;
use ntcopy_record::units::Bytes;

use crate::run::{Failure, available_bytes};

/// A file system in memory, where there is one: a disk is not what is measured.
const MEMORY: &str = "/dev/shm";
/// What the folders' names begin with.
const PREFIX: &str = "ntcopy-http-";
/// Room beside the data: logs, sockets, settings.
const SLACK_BYTES: u64 = 16 << 20;
/// The longest path of a socket in the file system, its end mark left out.
const SOCKET_PATH_BYTES: usize = 107;
/// And the longest name below the folder.
const NAME_BYTES: usize = 32;

/// The folder of a measurement. Dropped, it is gone.
pub struct Scratch {
    folder: Folder,
}

impl Scratch {
    /// Makes it, with room for the data: in memory if possible, otherwise where temporary files
    /// go. What a process that was killed has left there is removed first.
    pub fn new(data_bytes: u64) -> Result<Scratch, Failure> {
        let places = places();
        let wanted = data_bytes.saturating_add(SLACK_BYTES);
        for place in places.iter().filter(|place| free_bytes(place) >= wanted) {
            let made = Folder::below(place, PREFIX);
            if let Ok(folder) = made
                && folder.path().as_os_str().len() + NAME_BYTES <= SOCKET_PATH_BYTES
            {
                return Ok(Scratch { folder });
            }
        }
        let said: Vec<String> = places
            .iter()
            .map(|place| match place.is_dir() {
                true => format!("{} has {}", place.display(), Bytes(free_bytes(place))),
                false => format!("{} is not there", place.display()),
            })
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

/// What is in memory is bounded by the limit of a container, too.
fn free_bytes(place: &Path) -> u64 {
    let free =
        rustix::fs::statvfs(place).map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
    if place == Path::new(MEMORY) { free.min(available_bytes()) } else { free }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
}
