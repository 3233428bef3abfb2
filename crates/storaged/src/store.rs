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
use std::num::NonZeroUsize;
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
use crate::key::Key;

/// By key: the file's number, bytes, nanoseconds since 1970, content type, digest.
type Row<'a> = (u64, u64, u64, &'a str, &'a [u8; 32]);
const OBJECTS: TableDefinition<'_, &str, Row<'_>> = TableDefinition::new("objects");

const INDEX: &str = "index";
const BLOBS: &str = "blobs";

/// Open objects that are given up when descriptors run out.
const GIVE_UP: usize = 32;

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
    cache: Mutex<LruCache<Key, Arc<Object>>>,
    next: AtomicU64,
}

impl Store {
    /// The open object, if there is one: nothing is waited for.
    pub fn cached(&self, key: &Key) -> Option<Arc<Object>> {
        self.cache().get(key).cloned()
    }

    /// The object of this name, opened if it isn't.
    pub fn get(&self, key: &Key) -> Result<Arc<Object>, StoreError> {
        let not_found = || StoreError::NotFound { key: key.to_string() };
        let mut meta = self.look_up(key)?.ok_or_else(not_found)?;
        loop {
            if let Some(object) = self.cached(key).filter(|object| object.meta().id == meta.id) {
                return Ok(object);
            }
            let opened = self.open_object(key, &meta);
            if let Ok(object) = &opened {
                self.cache().put(key.clone(), Arc::clone(object));
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

    fn open_object(&self, key: &Key, meta: &Meta) -> Result<Arc<Object>, StoreError> {
        let damaged = || StoreError::Damaged { key: key.to_string() };
        let path = self.blob(meta.id);
        let open = || self.retry_without_cache(|| File::open(&path));
        let file = step("get.open", "open", key, open).map_err(|error| match error {
            StoreError::Os { errno: Errno::NOENT, .. } => damaged(),
            error => error,
        })?;
        let bytes =
            file.metadata().map_err(|error| StoreError::io("look at", key.as_str(), &error));
        if bytes?.len() < meta.bytes {
            return Err(damaged());
        }
        Ok(Arc::new(Object::new(file, meta.clone())))
    }

    /// What has a name now, if the conditions hold for it.
    pub fn check(&self, key: &Key, conditions: &Conditions) -> Result<(), StoreError> {
        let current = self.look_up(key)?;
        hold(conditions, current.as_ref(), key)
    }

    fn look_up(&self, key: &Key) -> Result<Option<Meta>, StoreError> {
        self.with_index("look up", key.as_str(), |index| {
            let table = index.begin_read()?.open_table(OBJECTS)?;
            Ok(table.get(key.as_str())?.map(|row| Meta::of_row(row.value())))
        })
    }

    /// Takes an object's name away, durably. Who is reading it reads on.
    pub fn delete(&self, key: &Key, conditions: &Conditions) -> Result<(), StoreError> {
        let gone = self.change(key, conditions, "delete.commit", None)?;
        let Some(meta) = gone else { return Err(StoreError::NotFound { key: key.to_string() }) };
        self.clear(key, meta.id);
        step("delete.answer", "answer for", key, || Ok(()))
    }

    /// Puts something else in the place of what has a name, if the conditions hold; returns that.
    fn change(
        &self,
        key: &Key,
        conditions: &Conditions,
        step: &'static str,
        to: Option<&Meta>,
    ) -> Result<Option<Meta>, StoreError> {
        let changed = self.with_index("change", key.as_str(), |index| {
            let writing = index.begin_write()?;
            let before = {
                let mut table = writing.open_table(OBJECTS)?;
                let before = table.get(key.as_str())?.map(|row| Meta::of_row(row.value()));
                if let Err(error) = hold(conditions, before.as_ref(), key) {
                    return Ok(Err(error));
                }
                match to {
                    Some(meta) => table.insert(key.as_str(), meta.row())?,
                    None => table.remove(key.as_str())?,
                };
                before
            };
            if let Err(errno) = point(step) {
                return Ok(Err(StoreError::os("commit", key.as_str(), errno)));
            }
            writing.commit()?;
            Ok(Ok(before))
        });
        changed?
    }

    /// The file of that number has no name any more.
    fn clear(&self, key: &Key, id: u64) {
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

    /// Closes some of the open objects, for their descriptors.
    pub fn give_up_some(&self) {
        let mut cache = self.cache();
        for _ in 0..GIVE_UP {
            cache.pop_lru();
        }
    }

    fn forget(&self, key: &Key, id: u64) {
        let mut cache = self.cache();
        if cache.peek(key).is_some_and(|object| object.meta().id == id) {
            cache.pop(key);
        }
    }

    fn cache(&self) -> MutexGuard<'_, LruCache<Key, Arc<Object>>> {
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

    /// Descriptors that are kept for speed make room for those that are needed.
    fn retry_without_cache<T>(&self, call: impl Fn() -> std::io::Result<T>) -> std::io::Result<T> {
        let few = [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error);
        match call() {
            Err(error) if error.raw_os_error().is_some_and(|errno| few.contains(&errno)) => {
                self.give_up_some();
                call()
            }
            result => result,
        }
    }
}

fn hold(conditions: &Conditions, current: Option<&Meta>, key: &Key) -> Result<(), StoreError> {
    match conditions.judge(current.map(Meta::current).as_ref()) {
        Verdict::Hold => Ok(()),
        Verdict::Fail | Verdict::Known => Err(StoreError::Condition { key: key.to_string() }),
    }
}

fn cache(open_objects: usize) -> Mutex<LruCache<Key, Arc<Object>>> {
    Mutex::new(LruCache::new(NonZeroUsize::new(open_objects).unwrap_or(NonZeroUsize::MIN)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(store: &Arc<Store>, key: &str) {
        let key = Key::from_target(key).unwrap();
        let upload = Upload::begin(Arc::clone(store), key, String::new(), None).unwrap();
        upload.commit(&Conditions::default()).unwrap();
    }

    /// After an error of its disk the index is as its last commit has left it.
    #[test]
    fn an_index_that_failed_is_opened_anew() {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(dir.path(), 4).unwrap());
        put(&store, "/a");
        *store.index.write().unwrap() = None;
        put(&store, "/b");
        let query = Query { prefix: String::new(), after: String::new(), limit: 9 };
        let keys: Vec<_> = store.list(&query).unwrap().0.into_iter().map(|o| o.0).collect();
        assert_eq!(keys, ["a", "b"]);
    }
}
