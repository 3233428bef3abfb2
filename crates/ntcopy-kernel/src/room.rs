//! Whether there is room on a file system, before it is filled.

use std::path::Path;

use rustix::fs::{StatVfs, StatVfsMountFlags, statvfs};

use crate::error::{Context, Error, Result};

/// What is free for us on the file system of `path`, in bytes.
pub(crate) fn free_bytes(path: &Path) -> Result<u64> {
    let stat = stat(path)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}

fn stat(path: &Path) -> Result<StatVfs> {
    statvfs(path).doing("asking for free room on", path)
}

/// Whether programs may be mapped from the file system of `path`.
pub(crate) fn is_noexec(path: &Path) -> Result<bool> {
    Ok(stat(path)?.f_flag.contains(StatVfsMountFlags::NOEXEC))
}

/// An error unless the bytes that are needed are free on the disk of the cache.
pub(crate) fn check_disk(path: &Path, purpose: &str, needed_bytes: u64) -> Result<()> {
    let free_bytes = free_bytes(path)?;
    if free_bytes >= needed_bytes {
        return Ok(());
    }
    Err(Error::NoRoom {
        path: path.to_path_buf(),
        purpose: purpose.into(),
        needed_bytes,
        free_bytes,
        fix: "make room there (ntcopy kernel clean --all), or set NTCOPY_CACHE to a directory on \
              another disk"
            .into(),
    })
}
