//! Objects that are open: their files, their checksums, and which of their blocks were verified.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::object::{FileVersion, Object};
use crate::key::Key;

/// A bounded set of open objects; the next to go is one that was not asked for lately.
#[derive(Debug)]
pub struct Cache {
    inner: Mutex<Inner>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct Inner {
    slots: HashMap<Key, Slot>,
    /// Every key of `slots` once, in the order in which they are looked at for eviction.
    queue: VecDeque<Key>,
}

#[derive(Debug)]
struct Slot {
    /// `None`: the version that was here has been replaced.
    object: Option<Arc<Object>>,
    used: bool,
}

impl Cache {
    /// At most `capacity` objects, at least 1.
    pub fn new(capacity: usize) -> Cache {
        Cache { inner: Mutex::default(), capacity: capacity.max(1) }
    }

    /// The open object, if it is this version of it.
    pub fn get(&self, key: &Key, version: &FileVersion) -> Option<Arc<Object>> {
        let mut inner = self.lock();
        let slot = inner.slots.get_mut(key)?;
        if slot.object.as_ref().is_some_and(|object| object.version() != version) {
            slot.object = None;
        }
        slot.used = true;
        slot.object.clone()
    }

    pub fn put(&self, key: &Key, object: Arc<Object>) {
        let mut inner = self.lock();
        if let Some(slot) = inner.slots.get_mut(key) {
            slot.object = Some(object);
            return;
        }
        if inner.slots.len() >= self.capacity {
            inner.evict();
        }
        inner.slots.insert(key.clone(), Slot { object: Some(object), used: false });
        inner.queue.push_back(key.clone());
    }

    /// The object was replaced or deleted.
    pub fn forget(&self, key: &Key) {
        if let Some(slot) = self.lock().slots.get_mut(key) {
            slot.object = None;
        }
    }

    /// Closes up to `count` objects that are not being read, for their descriptors.
    pub fn shrink(&self, count: usize) {
        let mut inner = self.lock();
        for _ in 0..count.min(inner.queue.len()) {
            inner.evict();
        }
    }

    pub fn open(&self) -> usize {
        self.lock().slots.values().filter(|slot| slot.object.is_some()).count()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Second chance: a slot that was used since it was last looked at goes to the end once.
    fn evict(&mut self) {
        while let Some(key) = self.queue.pop_front() {
            let slot = self.slots.get_mut(&key).expect("every queued key has a slot");
            if slot.used && slot.object.is_some() {
                slot.used = false;
                self.queue.push_back(key);
            } else {
                self.slots.remove(&key);
                return;
            }
        }
    }
}
