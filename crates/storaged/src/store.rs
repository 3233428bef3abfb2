//! Objects on disk: immutable files, and an index of them that a library keeps.
//!
//! ```text
//! DIR/index           a redb database: for each key which file, and what is known of the object
//! DIR/blobs/ID        the files
//! DIR/blobs/ID.part   what is still being written; removed at the next start
//! DIR/lost/ID         files that a start found and the index did not name
//! DIR/spare           room for the index where the disk is full
//! ```
//!
//! Each file says its key where the file system has extended attributes: an index can be made of them.
//! A PUT writes a file, syncs it and its folder, and then commits to the index; a DELETE commits.
//! The index has one writer at a time, so conditions hold until the commit, and a commit is durable
//! when it returns. A file is never written to again: a reader keeps the version that it opened.

mod disk;
mod error;
mod files;
mod index;
mod mark;
mod object;
mod open;
mod rebuild;
mod spare;
mod sweep;
mod upload;

use std::fs::File;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use rustix::io::Errno;

pub use self::error::{CONDITION, IndexError, StoreError};
pub use self::index::INDEX;
use self::index::Index;
pub use self::object::{Meta, Object};
pub use self::open::create;
pub use self::rebuild::rebuild;
use self::spare::Spare;
use self::upload::step;
pub use self::upload::{Stored, Upload};
use crate::condition::{Conditions, Verdict};
use crate::fault::point;

/// By key: the file's number, bytes, nanoseconds since 1970, content type, digest.
type Row<'a> = (u64, u64, u64, &'a str, &'a [u8; 32]);
const OBJECTS: TableDefinition<'_, &str, Row<'_>> = TableDefinition::new("objects");

/// What the index has of itself.
const STATE: TableDefinition<'_, &str, u64> = TableDefinition::new("state");

const BLOBS: &str = "blobs";
/// Behind the number of a file that is still being written.
const PART: &str = ".part";
/// How often an object is opened for one GET, while others are changed. The last is not kept open.
const OPENINGS: usize = 4;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub prefix: String,
    pub after: String,
    pub limit: usize,
}

/// Objects that are open, by their keys.
#[derive(Debug)]
struct Cache {
    objects: LruCache<String, Arc<Object>>,
    /// Changes that were made, of any key.
    changes: u64,
}

/// A folder of objects, held by this process.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    blobs: File,
    index: Index,
    cache: Mutex<Cache>,
    /// Files of changes that failed, by their keys: whether the index names them is not known.
    unsettled: Mutex<Vec<(String, u64)>>,
    /// The folder, locked.
    _held: File,
    next: AtomicU64,
    /// Whether files say their keys.
    marks: bool,
    spare: Spare,
    /// To the thread that lets go of things.
    gone: Sender<Box<dyn Send>>,
}

impl Store {
    /// The open object, if there is one: nothing is waited for.
    pub fn cached(&self, key: &str) -> Option<Arc<Object>> {
        self.cache().objects.get(key).cloned()
    }

    /// The object of this name, opened if it isn't.
    pub fn get(&self, key: &str) -> Result<Arc<Object>, StoreError> {
        let not_found = || StoreError::NotFound { key: key.to_owned() };
        let mut opened: Option<Arc<Object>> = None;
        for _ in 0..OPENINGS {
            let changes = self.cache().changes;
            let meta = self.look_up(key)?.ok_or_else(not_found)?;
            let is_it = |object: &Arc<Object>| object.meta.id == meta.id;
            if let Some(object) = self.cached(key).filter(is_it) {
                return Ok(object);
            }
            let object = match opened
                .take()
                .filter(is_it)
                .map_or_else(|| self.open_object(key, &meta), Ok)
            {
                Ok(object) => object,
                // Its file went with its name.
                Err(_) if self.cache().changes != changes => continue,
                Err(error) => return Err(error),
            };
            let mut cache = self.cache();
            // A change forgets the object after its commit, and before it is acknowledged: what was
            // looked up before that must not get into the cache behind it.
            if cache.changes == changes {
                let oldest = cache.objects.push(key.to_owned(), Arc::clone(&object));
                drop(cache);
                drop(oldest);
                return Ok(object);
            }
            drop(cache);
            opened = Some(object);
        }
        opened.ok_or_else(not_found)
    }

    fn open_object(&self, key: &str, meta: &Meta) -> Result<Arc<Object>, StoreError> {
        let damaged = || StoreError::Damaged { key: key.to_owned() };
        let path = self.blob(meta.id);
        let file =
            step("get.open", "open", key, || File::open(&path)).map_err(|error| match error {
                StoreError::Os { errno: Errno::NOENT, .. } => damaged(),
                error => error,
            })?;
        step("get.opened", "open", key, || Ok(()))?;
        let bytes = file.metadata().map_err(|error| StoreError::io("look at", key, &error));
        if bytes?.len() < meta.bytes {
            return Err(damaged());
        }
        Ok(Arc::new(Object::new(file, meta.clone())))
    }

    /// What has a name now, if the conditions hold for it.
    pub fn check(&self, key: &str, conditions: &Conditions) -> Result<(), StoreError> {
        hold(conditions, self.look_up(key)?.as_ref(), key)
    }

    fn look_up(&self, key: &str) -> Result<Option<Meta>, StoreError> {
        self.read("look up", key, |index| {
            let table = index.begin_read()?.open_table(OBJECTS)?;
            Ok(table.get(key)?.map(|row| Meta::of_row(row.value())))
        })
    }

    /// Takes an object's name away, durably. Who is reading it reads on.
    pub fn delete(&self, key: &str, conditions: &Conditions) -> Result<(), StoreError> {
        let is_full = self.spare.is_needed();
        if is_full {
            self.spare.lend();
        }
        let gone = self.change(key, conditions, "delete.commit", None);
        if let Ok(Some(meta)) = &gone {
            self.remove(meta.id);
        }
        if is_full {
            self.spare.fill();
        }
        if gone?.is_none() {
            return Err(StoreError::NotFound { key: key.to_owned() });
        }
        step("delete.answer", "answer for", key, || Ok(()))
    }

    /// Puts something else in the place of what has a name, if the conditions hold; returns that.
    fn change(
        &self,
        key: &str,
        conditions: &Conditions,
        step: &'static str,
        to: Option<&Meta>,
    ) -> Result<Option<Meta>, StoreError> {
        let mut before = None;
        let changed = self.index.change(|index| {
            let writing = index.begin_write()?;
            {
                let mut table = writing.open_table(OBJECTS)?;
                before = table.get(key)?.map(|row| Meta::of_row(row.value()));
                if let Err(error) = hold(conditions, before.as_ref(), key) {
                    return Ok(Err(error));
                }
                match to {
                    Some(meta) => table.insert(key, meta.row())?,
                    None if before.is_none() => return Ok(Ok(())),
                    None => table.remove(key)?,
                };
            }
            if let Err(errno) = point(step) {
                return Ok(Err(StoreError::os("commit", key, errno)));
            }
            writing.commit()?;
            Ok(Ok(()))
        });
        self.forget(key);
        if !matches!(changed, Ok(Ok(()))) {
            let files = before.iter().chain(to).map(|meta| (key.to_owned(), meta.id));
            self.unsettled().extend(files);
        }
        self.settle();
        changed.map_err(|cause| StoreError::index("change", key, cause))??;
        Ok(before)
    }

    /// Removes the files of failed changes that the index does not name, as soon as it can say so.
    fn settle(&self) {
        let files = std::mem::take(&mut *self.unsettled());
        for (key, id) in files {
            match self.look_up(&key) {
                Ok(Some(meta)) if meta.id == id => {}
                Ok(_) => self.remove(id),
                Err(_) => self.unsettled().push((key, id)),
            }
        }
    }

    /// The file of that number has no name any more.
    fn remove(&self, id: u64) {
        if let Err(error) = std::fs::remove_file(self.blob(id)) {
            tracing::warn!(%error, id, "cannot remove a file; the next start puts it aside");
        }
    }

    /// Objects in order of their keys' bytes, and whether there are more: the last key is the next
    /// query's `after`.
    pub fn list(&self, query: &Query) -> Result<(Vec<(String, Meta)>, bool), StoreError> {
        point("list").map_err(|errno| StoreError::os("list", &*query.prefix, errno))?;
        self.read("list", &query.prefix, |index| {
            let table = index.begin_read()?.open_table(OBJECTS)?;
            let from = match query.after >= query.prefix {
                true => Bound::Excluded(&*query.after),
                false => Bound::Included(&*query.prefix),
            };
            let mut objects = Vec::new();
            for row in table.range::<&str>((from, Bound::Unbounded))? {
                let (key, row) = row?;
                if !key.value().starts_with(&query.prefix) {
                    break;
                }
                if objects.len() == query.limit {
                    return Ok((objects, true));
                }
                objects.push((key.value().to_owned(), Meta::of_row(row.value())));
            }
            Ok((objects, false))
        })
    }

    fn forget(&self, key: &str) {
        let mut cache = self.cache();
        cache.changes += 1;
        let object = cache.objects.pop(key);
        drop(cache);
        drop(object);
    }

    /// Has what holds a file, or a name, dropped by a thread that may wait for the disk.
    pub fn let_go<T: Send + 'static>(&self, held: T) {
        // Without that thread the channel drops it.
        let _ = self.gone.send(Box::new(held));
    }

    /// Has an object dropped so, where nobody else has it.
    pub fn release(&self, object: Arc<Object>) {
        if let Some(object) = Arc::into_inner(object) {
            self.let_go(object);
        }
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsettled(&self) -> MutexGuard<'_, Vec<(String, u64)>> {
        self.unsettled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn blob(&self, id: u64) -> PathBuf {
        self.dir.join(BLOBS).join(id.to_string())
    }

    fn read<T>(
        &self,
        doing: &'static str,
        what: &str,
        call: impl Fn(&Database) -> Result<T, IndexError>,
    ) -> Result<T, StoreError> {
        self.index.read(call).map_err(|cause| StoreError::index(doing, what, cause))
    }
}

fn hold(conditions: &Conditions, current: Option<&Meta>, key: &str) -> Result<(), StoreError> {
    match conditions.judge(current.map(Meta::current).as_ref()) {
        Verdict::Hold => Ok(()),
        Verdict::Fail | Verdict::Known => Err(StoreError::Condition { key: key.to_owned() }),
    }
}
