//! The index's disk: a file, and whether a call of it has failed. It has no locks: the folder has one.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::backends::FileBackend;
use redb::{DatabaseError, StorageBackend};

use crate::fault::point;

#[derive(Debug, Default)]
pub(super) struct Health {
    failed: AtomicBool,
    sync_failed: AtomicBool,
}

impl Health {
    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    pub(super) fn has_sync_failed(&self) -> bool {
        self.sync_failed.load(Ordering::Acquire)
    }
}

#[derive(Debug)]
pub(super) struct Disk {
    file: FileBackend,
    health: Arc<Health>,
}

impl Disk {
    pub(super) fn new(file: File, health: Arc<Health>) -> Result<Disk, DatabaseError> {
        Ok(Disk { file: FileBackend::new(file)?, health })
    }

    /// Makes a call, or has it fail as a [`point`] may.
    fn step<T>(&self, name: &str, call: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let done = point(name).map_err(io::Error::from).and_then(|()| call());
        done.inspect_err(|_| self.health.failed.store(true, Ordering::Release))
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.step("index.len", || self.file.len())
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.step("index.read", || self.file.read(offset, out))
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.step("index.set_len", || self.file.set_len(len))
    }

    fn sync_data(&self) -> io::Result<()> {
        let done = self.step("index.sync", || self.file.sync_data());
        done.inspect_err(|_| self.health.sync_failed.store(true, Ordering::Release))
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.step("index.write", || self.file.write(offset, data))
    }
}
