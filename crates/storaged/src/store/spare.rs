//! Room on the disk that is kept for the index, so that a DELETE works where the disk is full: it
//! writes before it frees anything.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FallocateFlags, fallocate, fstatvfs, ftruncate};

use super::files::new_file;

pub(super) const SPARE: &str = "spare";
/// Much more than one change of the index takes.
const BYTES: u64 = 1 << 20;
/// Of a disk that is nearly full a part is taken.
const LEAST_BYTES: u64 = 64 << 10;

#[derive(Debug)]
pub(super) struct Spare(File);

impl Spare {
    pub(super) fn take(dir: &Path) -> io::Result<Spare> {
        let path = dir.join(SPARE);
        let file = match File::options().write(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => new_file(&path)?,
            file => file?,
        };
        let spare = Spare(file);
        spare.fill();
        Ok(spare)
    }

    /// Takes what there is room for. A file system that reserves nothing has none to give.
    pub(super) fn fill(&self) {
        let mut bytes = BYTES;
        while bytes >= LEAST_BYTES && fallocate(&self.0, FallocateFlags::empty(), 0, bytes).is_err()
        {
            bytes /= 2;
        }
    }

    /// Whether others leave less on the disk than a change may take.
    pub(super) fn is_needed(&self) -> bool {
        fstatvfs(&self.0).is_ok_and(|disk| disk.f_bavail.saturating_mul(disk.f_frsize) < BYTES)
    }

    /// Gives it up.
    pub(super) fn lend(&self) {
        if let Err(error) = ftruncate(&self.0, 0) {
            tracing::warn!(%error, "cannot give room to the index");
        }
    }
}
