//! An object that is on its way in.

use std::fs::{File, remove_file, rename};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::files::new_file;
use super::{Meta, PART, Store, StoreError, mark};
use crate::condition::Conditions;
use crate::fault::point;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// There was no object of this name before.
    pub created: bool,
    pub etag: String,
}

/// A file that becomes an object by [`commit`](Upload::commit), or goes away.
pub struct Upload {
    /// Where it is.
    path: PathBuf,
    store: Arc<Store>,
    key: String,
    content_type: String,
    id: u64,
    file: File,
    hasher: Box<blake3::Hasher>,
    /// Content that is not written yet.
    pub pending: Vec<u8>,
    /// Content that is.
    written: u64,
    /// The file is the store's.
    kept: bool,
}

impl Upload {
    pub fn begin(
        store: Arc<Store>,
        key: String,
        content_type: String,
        length: u64,
    ) -> Result<Upload, StoreError> {
        let id = store.next.fetch_add(1, Ordering::Relaxed);
        let path = store.blob(id).with_extension(&PART[1..]);
        let file = step("put.create", "create a file for", &key, || new_file(&path))?;
        let upload = Upload {
            path,
            store,
            key,
            content_type,
            id,
            file,
            hasher: Box::default(),
            pending: Vec::new(),
            written: 0,
            kept: false,
        };
        upload.check_room(length)?;
        Ok(upload)
    }

    /// A full disk is said before the body is sent, not at its end. Nothing is taken for that: a
    /// head alone makes no disk full.
    fn check_room(&self, length: u64) -> Result<(), StoreError> {
        match rustix::fs::fstatvfs(&self.file) {
            Ok(disk) if disk.f_bavail.saturating_mul(disk.f_frsize) < length => {
                Err(StoreError::os("find room for", &*self.key, Errno::NOSPC))
            }
            _ => Ok(()),
        }
    }

    pub fn bytes(&self) -> u64 {
        self.written + self.pending.len() as u64
    }

    /// Writes what is pending.
    pub fn write(&mut self) -> Result<(), StoreError> {
        let bytes = std::mem::take(&mut self.pending);
        if bytes.is_empty() {
            return Ok(());
        }
        self.hasher.update(&bytes);
        self.written += bytes.len() as u64;
        step("put.write", "write", &self.key, || self.file.write_all(&bytes))
    }

    /// Makes it the object of its name, durably: when this returns, a crash of the machine does
    /// not lose it. After an error nothing has changed, unless the commit itself failed: then the
    /// object may or may not be the new one.
    pub fn commit(mut self, conditions: &Conditions) -> Result<Stored, StoreError> {
        self.write()?;
        let meta = Meta {
            id: self.id,
            bytes: self.written,
            stored_at_ns: u64::try_from(httpd::now().as_nanos()).unwrap_or(u64::MAX),
            content_type: std::mem::take(&mut self.content_type),
            digest: *self.hasher.finalize().as_bytes(),
        };
        if self.store.marks {
            self.mark(&meta)?;
        }
        let path = self.store.blob(self.id);
        step("put.rename", "name", &self.key, || rename(&self.path, &path))?;
        self.path = path;
        step("put.sync_file", "sync", &self.key, || self.file.sync_all())?;
        step("put.sync_folder", "sync the folder of", &self.key, || self.store.blobs.sync_all())?;
        // From here on the store removes it, if it gets no name.
        self.kept = true;
        let before = self.store.change(&self.key, conditions, "put.commit", Some(&meta))?;
        if let Some(before) = &before {
            self.store.remove(before.id);
        }
        step("put.answer", "answer for", &self.key, || Ok(()))?;
        Ok(Stored { created: before.is_none(), etag: meta.etag() })
    }

    /// Has the file say what it is. That need not fit: some file systems have a kibibyte for it.
    fn mark(&self, meta: &Meta) -> Result<(), StoreError> {
        match step("put.mark", "mark", &self.key, || mark::write(&self.file, &self.key, meta)) {
            Err(StoreError::Os { errno: Errno::NOSPC | Errno::TOOBIG | Errno::RANGE, .. }) => {
                tracing::warn!(
                    key = self.key,
                    "there is no room for the key in the file of an object"
                );
                Ok(())
            }
            done => done,
        }
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.kept
            && let Err(error) = step("cut.remove", "remove", &self.key, || remove_file(&self.path))
        {
            tracing::warn!(%error, id = self.id, "cannot remove a file; the next start takes it away");
        }
    }
}

/// Does what a [`point`] may have fail instead.
pub(super) fn step<T>(
    name: &str,
    doing: &'static str,
    key: &str,
    call: impl FnOnce() -> io::Result<T>,
) -> Result<T, StoreError> {
    let done = point(name).map_err(io::Error::from).and_then(|()| call());
    done.map_err(|error| StoreError::io(doing, key, &error))
}
