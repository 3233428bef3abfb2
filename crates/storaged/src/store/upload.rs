//! An object that is on its way in.

use std::sync::Arc;
use std::time::SystemTime;

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, FallocateFlags, Mode, OFlags, fallocate, fstatvfs, fsync, openat, renameat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use super::Store;
use super::blocks::Blocks;
use super::condition::{Conditions, Current};
use super::error::{ErrorKind, StoreError};
use super::format::{self, Hash, Meta};
use crate::fault::{Step, point};
use crate::key::Key;

/// The most that is reserved for what has not come of a body: enough for large extents. Below that
/// it is as much as has come, so that a promise alone takes nothing from others.
const AHEAD_BYTES_MAX: u64 = 8 << 20;

/// How often an object's folder may be taken away under it, by deletes of the last in it.
const PLACE_TRIES: u32 = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// There was no object of this name before.
    pub created: bool,
    pub digest: Hash,
}

/// A temporary file that becomes an object by [`commit`](Upload::commit), or goes away.
pub struct Upload {
    store: Arc<Store>,
    key: Key,
    content_type: String,
    file: OwnedFd,
    /// Its name in the folder of temporary files; `None` once it has another.
    temporary: Option<String>,
    /// Bytes that the disk has reserved for it, and that it shall have in the end.
    reserved: u64,
    length: u64,
    blocks: Blocks,
}

impl Upload {
    pub(super) fn begin(
        store: Arc<Store>,
        key: Key,
        content_type: String,
        length: Option<u64>,
    ) -> Result<Upload, StoreError> {
        let temporary = store.temporary_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = point(Step::PutCreate)
            .and_then(|()| {
                store.retry_without_cache(|| {
                    openat(&store.temporaries, &*temporary, flags, Mode::from_raw_mode(0o644))
                })
            })
            .map_err(|errno| StoreError::os("create temporary", &*temporary, errno))?;
        let mut upload = Upload {
            store,
            key,
            content_type,
            file,
            temporary: Some(temporary),
            reserved: 0,
            length: 0,
            blocks: Blocks::default(),
        };
        if let Some(length) = length.filter(|length| *length > 0) {
            upload.length = length;
            upload.check_room()?;
        }
        Ok(upload)
    }

    /// A full disk is said before the body is sent, not at its end. Nothing is taken for that: a
    /// head alone makes no disk full.
    fn check_room(&self) -> Result<(), StoreError> {
        let Ok(disk) = fstatvfs(&self.file) else { return Ok(()) };
        if disk.f_bavail.saturating_mul(disk.f_frsize) < self.length {
            return Err(self.os("find room for", Errno::NOSPC));
        }
        let limit = getrlimit(Resource::Fsize).current;
        if limit.is_some_and(|most| most < self.length) {
            return Err(self.os("find room for", Errno::FBIG));
        }
        Ok(())
    }

    /// Reserves room for the first `bytes`, which are here, and for some of what follows.
    fn reserve(&mut self, bytes: u64) -> Result<(), StoreError> {
        if self.reserved >= self.length || bytes <= self.reserved {
            return Ok(());
        }
        let until = (bytes + bytes.min(AHEAD_BYTES_MAX)).min(self.length);
        let (from, len) = (self.reserved, until - self.reserved);
        let result = point(Step::PutReserve)
            .and_then(|()| fallocate(&self.file, FallocateFlags::KEEP_SIZE, from, len));
        match result {
            Ok(()) => self.reserved = until,
            // Not every file system can.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.reserved = self.length,
            Err(errno) => return Err(self.os("reserve room for", errno)),
        }
        Ok(())
    }

    /// Takes more of the content.
    ///
    /// # Errors
    ///
    /// A write failed; the upload is of no use then.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), StoreError> {
        self.reserve(self.blocks.bytes() + bytes.len() as u64)?;
        let Upload { blocks, file, .. } = self;
        let result = blocks.push(bytes, |block| write_all(file, block, Step::PutWrite));
        result.map_err(|errno| self.os("write", errno))
    }

    /// Bytes of content that were taken.
    pub fn bytes(&self) -> u64 {
        self.blocks.bytes()
    }

    /// Makes it the object of its name, durably: when this returns, a crash of the machine does
    /// not lose it.
    ///
    /// # Errors
    ///
    /// [`StoreError::Condition`], or a call failed. Before the rename nothing has changed then;
    /// if only the last sync fails, the object may or may not be the new one.
    pub fn commit(mut self, conditions: &Conditions) -> Result<Stored, StoreError> {
        let digest = self.finish_file()?;
        let (path, name) = self.key.place();
        let (folder, created) = self.place(&path, &name, conditions).inspect_err(|_| {
            self.store.folders.prune(&path);
        })?;
        point(Step::PutSyncFolder)
            .and_then(|()| fsync(&folder))
            .map_err(|errno| self.os("sync the folder of", errno))?;
        point(Step::PutAnswer).map_err(|errno| self.os("answer for", errno))?;
        Ok(Stored { created, digest })
    }

    /// Whether its folder is still to be made, a sync for each that is missing.
    pub fn makes_folders(&self) -> bool {
        !self.store.folders.is_known(&self.key.place().0)
    }

    /// Gives it its name, in its folder.
    fn place(
        &mut self,
        path: &str,
        name: &str,
        conditions: &Conditions,
    ) -> Result<(OwnedFd, bool), StoreError> {
        for _ in 0..PLACE_TRIES {
            let folder = match self.store.folders.ensure(path) {
                Err(error) if error.kind() == ErrorKind::Busy => {
                    self.store.give_up_some();
                    self.store.folders.ensure(path)?
                }
                result => result?,
            };
            if let Some(created) = self.rename(&folder, name, conditions)? {
                return Ok((folder, created));
            }
        }
        Err(self.os("find the folder of", Errno::NOENT))
    }

    /// Writes the rest, and makes the file durable.
    fn finish_file(&mut self) -> Result<Hash, StoreError> {
        let Upload { blocks, file, .. } = self;
        let ended = blocks.end(|block| write_all(file, block, Step::PutWrite));
        ended.map_err(|errno| self.os("write", errno))?;
        let meta = Meta {
            key: self.key.as_str().to_owned(),
            content_type: self.content_type.clone(),
            bytes: self.blocks.bytes(),
            stored_at_ns: now_ns(),
            digest: self.blocks.digest(),
        };
        write_all(&self.file, &format::encode(&meta, self.blocks.hashes()), Step::PutTrailer)
            .map_err(|errno| self.os("write", errno))?;
        point(Step::PutSyncFile)
            .and_then(|()| fsync(&self.file))
            .map_err(|errno| self.os("sync", errno))?;
        Ok(meta.digest)
    }

    /// Whether there was no object of that name; `None` if the folder has been taken away.
    fn rename(
        &mut self,
        folder: &OwnedFd,
        name: &str,
        conditions: &Conditions,
    ) -> Result<Option<bool>, StoreError> {
        let store = Arc::clone(&self.store);
        let _alone = store.lock(&self.key);
        let current = store.check(&self.key, conditions)?;
        let temporary = self.temporary.as_deref().expect("not renamed yet");
        let renamed = point(Step::PutRename)
            .and_then(|()| renameat(&store.temporaries, temporary, folder, name));
        match renamed {
            // The last object in it was deleted after it was opened, and it with it.
            Err(Errno::NOENT) => return Ok(None),
            result => result.map_err(|errno| self.os("rename into place", errno))?,
        }
        self.temporary = None;
        store.cache.forget(&self.key);
        Ok(Some(current == Current::Absent))
    }

    fn os(&self, doing: &'static str, errno: Errno) -> StoreError {
        StoreError::os(doing, self.key.as_str(), errno)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary
            && let Err(errno) = unlinkat(&self.store.temporaries, &**temporary, AtFlags::empty())
        {
            tracing::warn!(temporary, %errno, "cannot remove a temporary file; a restart will");
        }
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8], step: Step) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match point(step).and_then(|()| rustix::io::write(file, bytes)) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
