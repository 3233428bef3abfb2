//! Names in order, a page at a time.

use rustix::fs::Dir;
use rustix::io::Errno;

use super::Store;
use super::error::StoreError;
use crate::key::{Entry, Key};

/// Which objects to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Keys that begin so.
    pub prefix: String,
    pub after: String,
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Page {
    /// In order of their bytes.
    pub keys: Vec<Key>,
    /// There are more; the last of `keys` is the next query's `after`.
    pub more: bool,
}

impl Store {
    /// Names of objects in order of their bytes. An object that comes or goes meanwhile may or
    /// may not be among them; every other one is.
    pub fn list(&self, query: &Query) -> Result<Page, StoreError> {
        let mut page = Page::default();
        self.list_folder("", "", query, &mut page)?;
        Ok(page)
    }

    fn list_folder(
        &self,
        folder: &str,
        above: &str,
        query: &Query,
        page: &mut Page,
    ) -> Result<(), StoreError> {
        let may_be_next = |entry: &Entry| match entry {
            Entry::Object(segment) => {
                let key = format!("{above}{segment}");
                key.starts_with(&query.prefix) && *key > *query.after
            }
            Entry::Directory(segment) => {
                let below = format!("{above}{segment}/");
                let within = below.starts_with(&query.prefix) || query.prefix.starts_with(&below);
                let passed = *below <= *query.after && !query.after.starts_with(&below);
                within && !passed
            }
        };
        for (name, entry) in self.entries(folder, may_be_next)? {
            if page.more {
                return Ok(());
            }
            match entry {
                Entry::Object(segment) => {
                    // A name by hand that is no key can't be asked for, so it isn't listed.
                    let Ok(key) = format!("{above}{segment}").parse() else { continue };
                    if page.keys.len() == query.limit {
                        page.more = true;
                    } else {
                        page.keys.push(key);
                    }
                }
                Entry::Directory(segment) => {
                    let folder = match folder {
                        "" => name,
                        folder => format!("{folder}/{name}"),
                    };
                    self.list_folder(&folder, &format!("{above}{segment}/"), query, page)?;
                }
            }
        }
        Ok(())
    }

    /// What is in a folder and may be wanted, in the order of the keys: a folder's keys all have a
    /// slash after its segment, and other objects' segments may sort before that slash. What a page
    /// passed over is read again for the next one, but neither kept nor sorted.
    fn entries(
        &self,
        folder: &str,
        wanted: impl Fn(&Entry) -> bool,
    ) -> Result<Vec<(String, Entry)>, StoreError> {
        let failed = |errno| StoreError::os("read folder", folder, errno);
        let directory = match self.retry_without_cache(|| self.folders.open_folder(folder)) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(Vec::new()),
            Err(errno) => return Err(failed(errno)),
        };
        let mut entries = Vec::new();
        for found in Dir::new(directory).map_err(failed)? {
            let found = found.map_err(failed)?;
            let Ok(name) = found.file_name().to_str() else { continue };
            if let Some(entry) = Entry::from_name(name).filter(&wanted) {
                entries.push((name.to_owned(), entry));
            }
        }
        entries.sort_by_cached_key(|(_, entry)| match entry {
            Entry::Object(segment) => segment.clone(),
            Entry::Directory(segment) => format!("{segment}/"),
        });
        Ok(entries)
    }
}
