//! Objects on disk: immutable files, written durably, verified when read.
//!
//! ```text
//! DIR/format           what this folder is, and of which version
//! DIR/lock             held by the one process that writes here
//! DIR/temporary/       objects on their way in; at start what a dead process left is removed
//! DIR/objects/…        the objects (key.rs says where, format.rs what)
//! ```
//!
//! A PUT writes a temporary file, syncs it, renames it, and syncs the folder; only then is it
//! answered. An object's file is never written to again, so a reader keeps the version that it
//! opened while others replace or delete it.

mod blocks;
mod cache;
mod compressed;
pub mod condition;
mod error;
mod folders;
pub mod format;
mod fsck;
mod layout;
mod list;
mod object;
mod open;
mod upload;

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, OFlags, fsync, statat, unlinkat};
use rustix::io::Errno;

pub use self::error::{ErrorKind, StoreError};
pub use self::fsck::{Finding, Summary, fsck};
pub use self::layout::OpenError;
pub use self::list::{Page, Query};
pub use self::object::{FileVersion, Object, Verify};
pub use self::upload::{Stored, Upload};
use crate::fault::{Step, point};
use crate::key::Key;

use self::cache::Cache;
use self::condition::{Conditions, Current, Verdict};
use self::folders::Folders;

/// Locks that PUTs and DELETEs of a key take while they look at what is there and change it.
const LOCKS: usize = 64;
/// Open objects that are given up when descriptors run out.
const GIVE_UP: usize = 32;

/// A folder of objects, held by this process.
#[derive(Debug)]
pub struct Store {
    folders: Folders,
    temporaries: OwnedFd,
    cache: Cache,
    locks: [Mutex<()>; LOCKS],
    next_temporary: AtomicU64,
    /// Locked until the store is dropped.
    _lock: OwnedFd,
}

impl Store {
    /// The open object, if there is one and its file is still the one of that name: nothing is
    /// read, so no disk is waited for beyond the name's own look-up.
    pub fn cached(&self, key: &Key) -> Option<Arc<Object>> {
        let stat = statat(self.folders.root(), key.path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        self.cache.get(key, &FileVersion::from(&stat))
    }

    /// The object of this name, opened if it isn't.
    pub fn get(&self, key: &Key) -> Result<Arc<Object>, StoreError> {
        if let Some(object) = self.cached(key) {
            return Ok(object);
        }
        let object = Arc::new(self.open_object(key)?);
        // It may have been replaced meanwhile: the next look-up compares the version.
        self.cache.put(key, Arc::clone(&object));
        Ok(object)
    }

    /// [`get`](Store::get) that leaves the set of open objects as it is.
    pub fn peek(&self, key: &Key) -> Result<Arc<Object>, StoreError> {
        match self.cached(key) {
            Some(object) => Ok(object),
            None => self.open_object(key).map(Arc::new),
        }
    }

    fn open_object(&self, key: &Key) -> Result<Object, StoreError> {
        let file = point(Step::GetOpen).and_then(|()| {
            self.retry_without_cache(|| self.folders.open(&key.path(), OFlags::RDONLY))
        });
        match file {
            Ok(file) => Object::open(key, file),
            // NOTDIR, LOOP: something else was put in the place of a folder.
            Err(Errno::NOENT) => Err(StoreError::NotFound { key: key.to_string() }),
            Err(errno) => Err(StoreError::os("open", key.as_str(), errno)),
        }
    }

    /// Begins an object. `length` is that of its content, if it is known: room is reserved then.
    pub fn put(
        self: &Arc<Store>,
        key: &Key,
        content_type: &str,
        length: Option<u64>,
    ) -> Result<Upload, StoreError> {
        Upload::begin(Arc::clone(self), key.clone(), content_type.to_owned(), length)
    }

    /// Takes an object's name away, durably. Who is reading it reads on.
    pub fn delete(&self, key: &Key, conditions: &Conditions) -> Result<(), StoreError> {
        let os = |doing, errno| StoreError::os(doing, key.as_str(), errno);
        let (path, name) = key.place();
        let folder = {
            let _alone = self.lock(key);
            let current = self.check(key, conditions)?;
            if current == Current::Absent {
                return Err(StoreError::NotFound { key: key.to_string() });
            }
            let folder = self
                .retry_without_cache(|| self.folders.open_folder(&path))
                .map_err(|errno| os("open the folder of", errno))?;
            point(Step::DeleteUnlink)
                .and_then(|()| unlinkat(&folder, &*name, AtFlags::empty()))
                .map_err(|errno| os("remove", errno))?;
            self.cache.forget(key);
            folder
        };
        point(Step::DeleteSyncFolder)
            .and_then(|()| fsync(&folder))
            .map_err(|errno| os("sync the folder of", errno))?;
        self.folders.prune(&path);
        point(Step::DeleteAnswer).map_err(|errno| os("answer for", errno))
    }

    /// What has a name now, if the conditions hold for it.
    pub fn check(&self, key: &Key, conditions: &Conditions) -> Result<Current, StoreError> {
        let current = match statat(self.folders.root(), key.path(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Current::Absent,
            Err(errno) => return Err(StoreError::os("look up", key.as_str(), errno)),
            Ok(_) if conditions.is_empty() => Current::Something(None),
            Ok(stat) => match self.peek(key) {
                Ok(object) => Current::from(object.meta()),
                Err(StoreError::NotFound { .. }) => Current::Absent,
                // A damaged object has no tag, but may be replaced and deleted.
                Err(StoreError::Corrupt { .. }) => Current::Something(Some(stat.st_mtime)),
                Err(error) => return Err(error),
            },
        };
        match conditions.judge(&current) {
            Verdict::Hold => Ok(current),
            Verdict::Fail | Verdict::Known => Err(StoreError::Condition { key: key.to_string() }),
        }
    }

    pub fn open_objects(&self) -> usize {
        self.cache.open()
    }

    /// Closes some of the open objects, for their descriptors.
    pub fn give_up_some(&self) {
        self.cache.shrink(GIVE_UP);
    }

    fn lock(&self, key: &Key) -> MutexGuard<'_, ()> {
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(key);
        let lock = &self.locks[hash as usize % LOCKS];
        lock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn temporary_name(&self) -> String {
        format!("{}", self.next_temporary.fetch_add(1, Ordering::Relaxed))
    }

    /// Descriptors that are kept for speed make room for those that are needed.
    fn retry_without_cache<T>(&self, call: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
        match call() {
            Err(Errno::MFILE | Errno::NFILE) => {
                self.give_up_some();
                call()
            }
            result => result,
        }
    }
}
