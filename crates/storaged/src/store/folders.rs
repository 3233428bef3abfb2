//! The folders of the tree: opened without following links, made durably.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, Mode, OFlags, ResolveFlags, fsync, mkdirat, openat2, unlinkat};
use rustix::io::Errno;

use super::error::StoreError;
use crate::fault::{Step, point};

/// How many folders are remembered as durable. Forgetting one costs an fsync.
const REMEMBERED: usize = 1 << 16;

const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// The tree below the folder of all objects.
#[derive(Debug)]
pub struct Folders {
    root: OwnedFd,
    /// Folders whose own name is known to be durable, by path.
    ///
    /// A folder that is merely there is not enough: another PUT may have made it a moment ago
    /// and not yet have synced its parent, or a process that died before it could.
    ///
    /// Whoever takes a folder away forgets it first, so a folder that is there and is still
    /// remembered once it is open is durable.
    durable: Mutex<HashSet<String>>,
    /// Folders that are being made, with those above them: they are not taken away meanwhile.
    /// Locked while one is taken away, and never while a disk syncs: no thread waits for deep keys.
    wanted: Mutex<Vec<String>>,
}

/// A folder that is being made.
struct Wanted<'f> {
    folders: &'f Folders,
    path: &'f str,
}

impl Drop for Wanted<'_> {
    fn drop(&mut self) {
        let mut wanted = lock(&self.folders.wanted);
        if let Some(at) = wanted.iter().position(|path| path == self.path) {
            wanted.swap_remove(at);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Folders {
    pub fn new(root: OwnedFd) -> Folders {
        Folders { root, durable: Mutex::default(), wanted: Mutex::default() }
    }

    /// The folder of all objects.
    pub fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// Opens a file or a folder below the root. No component may be a link, or lead out.
    pub fn open(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        loop {
            match openat2(&self.root, path, flags | OFlags::CLOEXEC, Mode::empty(), within) {
                // A rename elsewhere in the tree, just then.
                Err(Errno::AGAIN | Errno::INTR) => {}
                result => return result,
            }
        }
    }

    /// Opens a folder; empty is the root.
    pub fn open_folder(&self, path: &str) -> Result<OwnedFd, Errno> {
        self.open(if path.is_empty() { "." } else { path }, FOLDER)
    }

    /// Opens a folder, after making it and those above it where they are missing, all durably.
    pub fn ensure(&self, path: &str) -> Result<OwnedFd, StoreError> {
        let open = |path: &str| {
            self.open_folder(path).map_err(|errno| StoreError::os("open folder", path, errno))
        };
        if path.is_empty() {
            return open(path);
        }
        if let Ok(folder) = self.open_folder(path)
            && self.is_durable(path)
        {
            return Ok(folder);
        }
        lock(&self.wanted).push(path.to_owned());
        let _wanted = Wanted { folders: self, path };
        for end in path.match_indices('/').map(|(at, _)| at).chain([path.len()]) {
            let folder = &path[..end];
            if self.is_durable(folder) {
                continue;
            }
            let (above, name) = folder.rsplit_once('/').unwrap_or(("", folder));
            let parent = open(above)?;
            point(Step::PutMakeFolder)
                .and_then(|()| mkdirat(&parent, name, Mode::from_raw_mode(0o755)))
                .or_else(|errno| if errno == Errno::EXIST { Ok(()) } else { Err(errno) })
                .map_err(|errno| StoreError::os("make folder", folder, errno))?;
            point(Step::PutSyncParent)
                .and_then(|()| fsync(&parent))
                .map_err(|errno| StoreError::os("sync the folder above", folder, errno))?;
            self.remember(folder);
        }
        open(path)
    }

    /// Whether a folder, and with it those above it, is known to be there, durably.
    pub fn is_known(&self, path: &str) -> bool {
        path.is_empty() || self.is_durable(path)
    }

    /// Takes a folder away that has nothing in it any more, and those above it likewise. That they
    /// are gone need not be durable: an empty folder is no object. Who has it open to put
    /// something there gets the error that it is gone, and makes it anew.
    pub fn prune(&self, mut path: &str) {
        while !path.is_empty() {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            match self.is_empty(path) {
                Ok(true) if self.take_away(path, above, name) => {}
                // A PUT that failed may not have come so far.
                Err(Errno::NOENT) => {}
                _ => return,
            }
            path = above;
        }
    }

    fn take_away(&self, path: &str, above: &str, name: &str) -> bool {
        let wanted = lock(&self.wanted);
        // Who makes it puts something there, or takes it away after all.
        if wanted.iter().any(|one| is_on_the_way(path, one)) {
            return false;
        }
        let Ok(parent) = self.open_folder(above) else { return false };
        lock(&self.durable).remove(path);
        unlinkat(&parent, name, AtFlags::REMOVEDIR).is_ok()
    }

    fn is_empty(&self, path: &str) -> Result<bool, Errno> {
        let mut entries = self.open_folder(path).and_then(Dir::new)?;
        Ok(entries.all(|entry| {
            entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b".."))
        }))
    }

    fn is_durable(&self, folder: &str) -> bool {
        lock(&self.durable).contains(folder)
    }

    fn remember(&self, folder: &str) {
        let mut durable = lock(&self.durable);
        if durable.len() >= REMEMBERED {
            durable.clear();
        }
        durable.insert(folder.to_owned());
    }
}

/// Whether a folder is that path, or above it.
fn is_on_the_way(folder: &str, path: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
