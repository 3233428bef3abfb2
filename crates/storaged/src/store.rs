//! Objects on disk: immutable files, and an index of them that a library keeps.
//!
//! ```text
//! DIR/index      a redb database: for each key which file, and what is known of the object
//! DIR/blobs/ID   the files; one that the index does not name is removed at the next start
//! ```
//!
//! A PUT writes a file, syncs it and its folder, and then commits to the index; a DELETE commits.
//! The index has one writer at a time, so conditions hold until the commit, and a commit is durable
//! when it returns. A file is never written to again: a reader keeps the version that it opened.

mod error;
mod object;
mod open;
mod upload;

use std::fs::File;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use lru::LruCache;
use redb::{Database, ReadableTable, TableDefinition};
use rustix::io::Errno;

pub use self::error::{CONDITION, IndexError, StoreError};
pub use self::object::{Meta, Object};
use self::upload::step;
pub use self::upload::{Stored, Upload};
use crate::condition::{Conditions, Verdict};
use crate::fault::point;

/// By key: the file's number, bytes, nanoseconds since 1970, content type, digest.
type Row<'a> = (u64, u64, u64, &'a str, &'a [u8; 32]);
const OBJECTS: TableDefinition<'_, &str, Row<'_>> = TableDefinition::new("objects");

pub const INDEX: &str = "index";
const BLOBS: &str = "blobs";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pub prefix: String,
    pub after: String,
    pub limit: usize,
}

/// A folder of objects, held by this process.
#[derive(Debug)]
pub struct Store {
    dir: PathBuf,
    blobs: File,
    /// `None` while it is opened anew.
    index: RwLock<Option<Database>>,
    cache: Mutex<LruCache<String, Arc<Object>>>,
    next: AtomicU64,
}

impl Store {
    /// The open object, if there is one: nothing is waited for.
    pub fn cached(&self, key: &str) -> Option<Arc<Object>> {
        self.cache().get(key).cloned()
    }

    /// The object of this name, opened if it isn't.
    pub fn get(&self, key: &str) -> Result<Arc<Object>, StoreError> {
        let not_found = || StoreError::NotFound { key: key.to_owned() };
        let mut meta = self.look_up(key)?.ok_or_else(not_found)?;
        loop {
            if let Some(object) = self.cached(key).filter(|object| object.meta.id == meta.id) {
                return Ok(object);
            }
            let opened = self.open_object(key, &meta);
            if let Ok(object) = &opened {
                self.cache().put(key.to_owned(), Arc::clone(object));
            }
            // Whoever replaces an object forgets it after the commit: had it been replaced before
            // it got into the cache, it would stay there.
            let now = self.look_up(key)?;
            if now.as_ref().is_some_and(|now| now.id == meta.id) {
                return opened;
            }
            self.forget(key, meta.id);
            meta = now.ok_or_else(not_found)?;
        }
    }

    fn open_object(&self, key: &str, meta: &Meta) -> Result<Arc<Object>, StoreError> {
        let damaged = || StoreError::Damaged { key: key.to_owned() };
        let path = self.blob(meta.id);
        let file =
            step("get.open", "open", key, || File::open(&path)).map_err(|error| match error {
                StoreError::Os { errno: Errno::NOENT, .. } => damaged(),
                error => error,
            })?;
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
        self.with_index("look up", key, |index| {
            let table = index.begin_read()?.open_table(OBJECTS)?;
            Ok(table.get(key)?.map(|row| Meta::of_row(row.value())))
        })
    }

    /// Takes an object's name away, durably. Who is reading it reads on.
    pub fn delete(&self, key: &str, conditions: &Conditions) -> Result<(), StoreError> {
        let gone = self.change(key, conditions, "delete.commit", None)?;
        let Some(meta) = gone else { return Err(StoreError::NotFound { key: key.to_owned() }) };
        self.clear(key, meta.id);
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
        let changed = self.with_index("change", key, |index| {
            let writing = index.begin_write()?;
            let before = {
                let mut table = writing.open_table(OBJECTS)?;
                let before = table.get(key)?.map(|row| Meta::of_row(row.value()));
                if let Err(error) = hold(conditions, before.as_ref(), key) {
                    return Ok(Err(error));
                }
                match to {
                    Some(meta) => table.insert(key, meta.row())?,
                    None => table.remove(key)?,
                };
                before
            };
            if let Err(errno) = point(step) {
                return Ok(Err(StoreError::os("commit", key, errno)));
            }
            writing.commit()?;
            Ok(Ok(before))
        });
        changed?
    }

    /// The file of that number has no name any more.
    fn clear(&self, key: &str, id: u64) {
        self.forget(key, id);
        if let Err(error) = std::fs::remove_file(self.blob(id)) {
            tracing::warn!(%error, id, "cannot remove a file; the next start will");
        }
    }

    /// Objects in order of their keys' bytes, and whether there are more: the last key is the next
    /// query's `after`.
    pub fn list(&self, query: &Query) -> Result<(Vec<(String, Meta)>, bool), StoreError> {
        point("list").map_err(|errno| StoreError::os("list", &*query.prefix, errno))?;
        self.with_index("list", &query.prefix, |index| {
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

    fn forget(&self, key: &str, id: u64) {
        let mut cache = self.cache();
        if cache.peek(key).is_some_and(|object| object.meta.id == id) {
            cache.pop(key);
        }
    }

    fn cache(&self) -> MutexGuard<'_, LruCache<String, Arc<Object>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn blob(&self, id: u64) -> PathBuf {
        self.dir.join(BLOBS).join(id.to_string())
    }

    /// Does something with the index. After an error of its disk the library takes nothing more:
    /// it is opened anew then, as the last commit has left it.
    fn with_index<T>(
        &self,
        doing: &'static str,
        what: &str,
        call: impl Fn(&Database) -> Result<T, IndexError>,
    ) -> Result<T, StoreError> {
        let once = || match &*self.index.read().unwrap_or_else(PoisonError::into_inner) {
            Some(index) => call(index),
            None => Err(redb::Error::PreviousIo.into()),
        };
        let mut result = once();
        if result.as_ref().is_err_and(IndexError::is_of_before) {
            self.open_index_anew();
            result = once();
        }
        result.map_err(|cause| StoreError::index(doing, what, cause))
    }

    fn open_index_anew(&self) {
        let mut index = self.index.write().unwrap_or_else(PoisonError::into_inner);
        *index = None;
        match open::open_index(&self.dir.join(INDEX)) {
            Ok(opened) => *index = Some(opened),
            Err(error) => tracing::error!(%error, "cannot open the index anew"),
        }
    }
}

fn hold(conditions: &Conditions, current: Option<&Meta>, key: &str) -> Result<(), StoreError> {
    match conditions.judge(current.map(Meta::current).as_ref()) {
        Verdict::Hold => Ok(()),
        Verdict::Fail | Verdict::Known => Err(StoreError::Condition { key: key.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(store: &Arc<Store>, key: &str) {
        let upload = Upload::begin(Arc::clone(store), key.to_owned(), String::new(), 0).unwrap();
        upload.commit(&Conditions::default()).unwrap();
    }

    /// After an error of its disk the index is as its last commit has left it.
    #[test]
    fn an_index_that_failed_is_opened_anew() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(dir.path(), 4.try_into().unwrap()).unwrap());
        put(&store, "a");
        *store.index.write().unwrap() = None;
        put(&store, "b");
        let query = Query { prefix: String::new(), after: String::new(), limit: 9 };
        let keys: Vec<_> = store.list(&query).unwrap().0.into_iter().map(|o| o.0).collect();
        assert_eq!(keys, ["a", "b"]);
    }
}
