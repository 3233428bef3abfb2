//! The index: for each key which file, and what is known of the object. A library keeps it; here is
//! what becomes of it when its disk fails.
//!
//! After a failed call the library takes nothing more, and what it has in memory may not be what the
//! file has: no answer is made of it. The file is opened anew then. After a failed sync it is written
//! anew before: the kernel takes pages for written that are not on the disk, and no later sync would
//! say so.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use redb::{Database, DatabaseError};
use rustix::io::Errno;

use super::disk::{Disk, Health};
use super::error::IndexError;
use super::files::{new_file, unless_gone};
use crate::fault::point;

pub const INDEX: &str = "index";
pub(super) const NEW_INDEX: &str = "index.new";
/// Memory for pages of the index.
const CACHE_BYTES: usize = 16 << 20;
/// Between two attempts to recover it.
const PAUSE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Index {
    dir: PathBuf,
    state: RwLock<State>,
}

#[derive(Debug)]
struct State {
    /// `None` while it can't be had.
    open: Option<Open>,
    /// A sync has failed since the file was written.
    is_in_doubt: bool,
    /// When it could not be recovered.
    tried: Option<Instant>,
}

#[derive(Debug)]
pub(super) struct Open {
    pub(super) database: Database,
    health: Arc<Health>,
}

impl Open {
    /// Opens a file, or makes a database of an empty one.
    pub(super) fn file(file: File) -> Result<Open, DatabaseError> {
        let health = Arc::new(Health::default());
        let disk = Disk::new(file, Arc::clone(&health))?;
        let database =
            redb::Builder::new().set_cache_size(CACHE_BYTES).create_with_backend(disk)?;
        Ok(Open { database, health })
    }

    pub(super) fn path(path: &Path) -> Result<Open, DatabaseError> {
        Open::file(File::options().read(true).write(true).open(path)?)
    }
}

impl Index {
    pub(super) fn new(dir: &Path, open: Open) -> Index {
        let state = State { open: Some(open), is_in_doubt: false, tried: None };
        Index { dir: dir.to_owned(), state: RwLock::new(state) }
    }

    /// Reads of it, once more if it has to be recovered.
    pub(super) fn read<T>(
        &self,
        call: impl Fn(&Database) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        loop {
            if let Some(result) = self.once(&call) {
                return result;
            }
            self.recover()?;
        }
    }

    /// Has `call` change it. After an error of the disk, whether it is changed is not known: it is
    /// recovered then, if that can be done, and what is read next is so.
    pub(super) fn change<T>(
        &self,
        call: impl FnOnce(&Database) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.recover()?;
        let changed = {
            let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
            call(&state.open.as_ref().ok_or(IndexError::Lost)?.database)
        };
        if changed.is_err() {
            let _ = self.recover();
        }
        changed
    }

    /// `None` if what was found counts for nothing: the disk has failed.
    fn once<T>(
        &self,
        call: &impl Fn(&Database) -> Result<T, IndexError>,
    ) -> Option<Result<T, IndexError>> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let open = state.open.as_ref()?;
        let result = call(&open.database);
        (!open.health.has_failed()).then_some(result)
    }

    /// Has it usable, if it can be.
    fn recover(&self) -> Result<(), IndexError> {
        let is_well = |state: &State| state.open.as_ref().is_some_and(|it| !it.health.has_failed());
        if is_well(&self.state.read().unwrap_or_else(PoisonError::into_inner)) {
            return Ok(());
        }
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if is_well(&state) {
            return Ok(());
        }
        if let Some(failed) = state.open.take() {
            state.is_in_doubt |= failed.health.has_sync_failed();
        }
        if state.tried.is_some_and(|at| at.elapsed() < PAUSE) {
            return Err(IndexError::Lost);
        }
        let opened = match state.is_in_doubt {
            true => write_anew(&self.dir),
            false => Open::path(&self.dir.join(INDEX)).map_err(IndexError::from),
        };
        match opened {
            Ok(open) => {
                tracing::warn!(
                    written_anew = state.is_in_doubt,
                    "the index's disk failed; it is well"
                );
                *state = State { open: Some(open), is_in_doubt: false, tried: None };
                Ok(())
            }
            Err(error) => {
                tracing::error!(%error, "the index's disk failed, and the index can't be recovered yet");
                state.tried = Some(Instant::now());
                Err(IndexError::Lost)
            }
        }
    }
}

/// Writes every byte of it to another file, which takes its place once it is whole. The library
/// verifies the copy as it opens it, and takes the commit before if the last one is not whole.
fn write_anew(dir: &Path) -> Result<Open, IndexError> {
    let (path, new) = (dir.join(INDEX), dir.join(NEW_INDEX));
    unless_gone(fs::remove_file(&new))?;
    let mut file = new_file(&new)?;
    io::copy(&mut File::open(&path)?, &mut file)?;
    let open = Open::file(file.try_clone()?)?;
    sync(|| file.sync_all())?;
    fs::rename(&new, &path)?;
    sync(|| sync_folder(dir))?;
    Ok(open)
}

pub(super) fn sync_folder(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}

fn sync(call: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    point("index.anew").map_err(|errno: Errno| errno.into()).and_then(|()| call())
}
