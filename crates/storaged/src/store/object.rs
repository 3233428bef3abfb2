//! One version of an object, open for reading.

use std::fs::File;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memmap2::{Advice, Mmap, MmapOptions};

use super::Row;
use crate::condition::Current;
use crate::fault::point;

/// Parts up to this size are read, and their page tables filled, before they are sent: one call
/// instead of a fault every few pages.
const POPULATE_BYTES_MAX: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub id: u64,
    pub bytes: u64,
    /// When it was stored, in nanoseconds since 1970.
    pub stored_at_ns: u64,
    /// What the PUT said; empty if it didn't.
    pub content_type: String,
    pub digest: [u8; 32],
}

impl Meta {
    pub(super) fn of_row((id, bytes, stored_at_ns, content_type, digest): Row<'_>) -> Meta {
        let content_type = content_type.to_owned();
        Meta { id, bytes, stored_at_ns, content_type, digest: *digest }
    }

    pub(super) fn row(&self) -> Row<'_> {
        (self.id, self.bytes, self.stored_at_ns, &self.content_type, &self.digest)
    }

    pub fn stored_at(&self) -> Duration {
        Duration::from_nanos(self.stored_at_ns)
    }

    /// The strong tag of its content, in its quotes.
    pub fn etag(&self) -> String {
        format!("\"{}\"", blake3::Hash::from_bytes(self.digest).to_hex())
    }

    pub fn current(&self) -> Current {
        Current { tag: Some(self.etag()), modified: Some(self.stored_at().as_secs()) }
    }
}

/// An open version of an object. It stays readable to the end, whatever becomes of its name.
#[derive(Debug)]
pub struct Object {
    /// The object's bytes begin at 0.
    pub file: File,
    pub meta: Meta,
    map: OnceLock<Option<Map>>,
}

#[derive(Debug)]
struct Map {
    bytes: Mmap,
    /// All of it was read.
    is_populated: AtomicBool,
}

impl Object {
    pub(super) fn new(file: File, meta: Meta) -> Object {
        Object { file, meta, map: OnceLock::new() }
    }

    /// The object's bytes, if [`map`](Object::map) could map them.
    ///
    /// They are meant for the kernel's eyes only: if a user truncates the file by hand, a system
    /// call that reads them fails with `EFAULT`, but a load here would end the process.
    pub fn mapped(&self) -> Option<&[u8]> {
        Some(&self.map.get()?.as_ref()?.bytes)
    }

    /// Whether [`map`](Object::map) has nothing to do for a part.
    pub fn is_mapped(&self, part: &Range<u64>) -> bool {
        self.map.get().is_some_and(|map| {
            map.as_ref()
                .is_none_or(|map| is_large(part) || map.is_populated.load(Ordering::Relaxed))
        })
    }

    /// Maps the object, and reads a part of it, which may wait for the disk.
    pub fn map(&self, part: &Range<u64>) {
        let map = || {
            let bytes = usize::try_from(self.meta.bytes).ok().filter(|bytes| *bytes > 0)?;
            point("get.map").ok()?;
            // SAFETY: files of the store are not written to once they have a name.
            let bytes = unsafe { MmapOptions::new().len(bytes).map(&self.file) }.ok()?;
            Some(Map { bytes, is_populated: AtomicBool::new(false) })
        };
        let Some(map) = self.map.get_or_init(map) else { return };
        if is_large(part) {
            return;
        }
        let (at, bytes) = (part.start as usize, (part.end - part.start) as usize);
        // What was not read is read as it is sent.
        let _ = map.bytes.advise_range(Advice::PopulateRead, at, bytes);
        if part.end - part.start == self.meta.bytes {
            map.is_populated.store(true, Ordering::Relaxed);
        }
    }
}

fn is_large(part: &Range<u64>) -> bool {
    part.end - part.start > POPULATE_BYTES_MAX
}
