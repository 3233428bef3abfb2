//! Memory that responses are sent from.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, ptr, slice};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

/// Mappings up to this size get their page tables filled at once: one call instead of a fault
/// every few pages during the first send.
const POPULATE_BYTES_MAX: usize = 64 << 20;

/// A mapping that is not written to for as long as it is there.
///
/// Both kinds have pages of their own: a file's, which is never modified, or anonymous ones that
/// were filled before the region came to be. A page of it may therefore be given away by reference
/// (`vmsplice`), and the region unmapped, before the peer has read it: whoever holds the page
/// still sees the bytes. Memory of an allocator, which hands it out again, could not be sent so.
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
    /// Given back when the region goes.
    allowance: Option<Allowance>,
}

// SAFETY: the memory belongs to the region and is only read, from any thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps the first `bytes` of a file, at least 1.
    ///
    /// # Errors
    ///
    /// Those of `mmap(2)`.
    pub fn of_file(file: BorrowedFd<'_>, bytes: usize) -> Result<Region, Errno> {
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let start =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        if bytes <= POPULATE_BYTES_MAX {
            // SAFETY: the mapping was just made; reading its pages changes nothing. Kernels
            // before 5.14 don't know the advice, and fault the pages in one by one.
            let _ = unsafe { madvise(start, bytes, Advice::LinuxPopulateRead) };
        }
        Ok(Region { start: non_null(start)?, bytes, allowance: None })
    }

    /// Anonymous memory of `capacity` bytes, at least 1, that `fill` writes once; it returns how
    /// many bytes it wrote.
    ///
    /// # Errors
    ///
    /// Those of `mmap(2)`, or what `fill` says.
    pub fn filled<E: From<Errno>>(
        capacity: usize,
        allowance: Allowance,
        fill: impl FnOnce(&mut [u8]) -> Result<usize, E>,
    ) -> Result<Region, E> {
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let start = unsafe {
            mmap_anonymous(
                ptr::null_mut(),
                capacity,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE,
            )?
        };
        let region =
            Region { start: non_null(start)?, bytes: capacity, allowance: Some(allowance) };
        // SAFETY: the mapping has `capacity` bytes, zeroed, and no other reference yet.
        let memory = unsafe { slice::from_raw_parts_mut(region.start.as_ptr(), capacity) };
        let filled = fill(memory)?;
        assert!(filled == capacity, "a region is filled to its end");
        Ok(region)
    }

    /// The bytes.
    ///
    /// For a region of a file they are meant for the kernel's eyes only: if a user truncates
    /// the file by hand, a system call that reads them fails with `EFAULT`, but a load here would
    /// end the process.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is there until the region is dropped, and is not written to:
        // files of the store are immutable, anonymous regions are filled before they are shared.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's, and with the region the last slice of it is gone.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
        self.allowance.take();
    }
}

impl fmt::Debug for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Region of {} bytes", self.bytes)
    }
}

fn non_null(start: *mut std::ffi::c_void) -> Result<NonNull<u8>, Errno> {
    NonNull::new(start.cast()).ok_or(Errno::NOMEM)
}

/// A bound on memory that is in use at one time.
#[derive(Debug)]
pub struct Budget {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    refusals: AtomicU64,
}

impl Budget {
    /// A budget of this number of bytes.
    pub fn new(limit_bytes: u64) -> Arc<Budget> {
        Arc::new(Budget { limit_bytes, used_bytes: AtomicU64::new(0), refusals: AtomicU64::new(0) })
    }

    /// Takes `bytes`, if they are left, until the allowance is dropped.
    pub fn take(self: &Arc<Budget>, bytes: u64) -> Option<Allowance> {
        let room = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit_bytes);
        self.used_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, room)
            .inspect_err(|_| {
                self.refusals.fetch_add(1, Ordering::Relaxed);
            })
            .ok()
            .map(|_| Allowance { budget: Arc::clone(self), bytes })
    }

    /// How often more was wanted than was left.
    pub fn refusals(&self) -> u64 {
        self.refusals.load(Ordering::Relaxed)
    }

    /// Bytes that are taken.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

/// A part of a [`Budget`].
#[derive(Debug)]
pub struct Allowance {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Allowance {
    fn drop(&mut self) {
        self.budget.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_budget_is_never_overdrawn_and_comes_back() {
        let budget = Budget::new(100);
        let first = budget.take(60).unwrap();
        assert!(budget.take(41).is_none());
        let second = budget.take(40).unwrap();
        assert_eq!(budget.used_bytes(), 100);
        drop(first);
        assert!(budget.take(61).is_none());
        assert!(budget.take(u64::MAX).is_none());
        drop(second);
        assert_eq!(budget.used_bytes(), 0);
    }

    #[test]
    fn a_region_shows_what_it_was_made_of() {
        let budget = Budget::new(10);
        let fill = |memory: &mut [u8]| {
            memory.copy_from_slice(b"0123456789");
            Ok::<_, Errno>(10)
        };
        let region = Region::filled(10, budget.take(10).unwrap(), fill).unwrap();
        assert_eq!(region.bytes(), b"0123456789");
        drop(region);
        assert_eq!(budget.used_bytes(), 0);

        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"abcdef", 0).unwrap();
        assert_eq!(Region::of_file(file.as_fd(), 4).unwrap().bytes(), b"abcd");
    }
}
