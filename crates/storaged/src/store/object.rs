//! One version of an object, open for reading.

use std::fs::File;
use std::sync::OnceLock;
use std::time::Duration;

use memmap2::{Mmap, MmapOptions};

use super::Row;
use crate::condition::Current;

/// Mappings up to this size get their page tables filled at once: one call instead of a fault
/// every few pages during the first send.
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
    map: OnceLock<Option<Mmap>>,
}

impl Object {
    pub(super) fn new(file: File, meta: Meta) -> Object {
        Object { file, meta, map: OnceLock::new() }
    }

    /// The object's bytes, mapped at the first call; `None` if they can't be.
    ///
    /// They are meant for the kernel's eyes only: if a user truncates the file by hand, a system
    /// call that reads them fails with `EFAULT`, but a load here would end the process.
    pub fn map(&self) -> Option<&[u8]> {
        let map = || {
            let bytes = usize::try_from(self.meta.bytes).ok().filter(|bytes| *bytes > 0)?;
            let mut options = MmapOptions::new();
            options.len(bytes);
            if self.meta.bytes <= POPULATE_BYTES_MAX {
                options.populate();
            }
            // SAFETY: files of the store are not written to once they have a name.
            unsafe { options.map(&self.file) }.ok()
        };
        self.map.get_or_init(map).as_deref()
    }
}
