//! Memory that responses are sent from.

use std::ptr::NonNull;
use std::{fmt, ptr, slice};

use rustix::fd::BorrowedFd;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Mappings up to this size get their page tables filled at once: one call instead of a fault
/// every few pages during the first send.
const POPULATE_BYTES_MAX: usize = 64 << 20;

/// A mapping of a file that is never modified. A page of it may therefore be given away by
/// reference (`vmsplice`), and the region unmapped, before the peer has read it: whoever holds the
/// page still sees the bytes. Memory of an allocator, which hands it out again, could not be sent
/// so.
pub struct Region {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory belongs to the region and is only read, from any thread.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps the first `bytes` of a file, at least 1.
    pub fn of_file(file: BorrowedFd<'_>, bytes: usize) -> Result<Region, Errno> {
        // SAFETY: a new mapping, at an address of the kernel's choice.
        let start =
            unsafe { mmap(ptr::null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        if bytes <= POPULATE_BYTES_MAX {
            // SAFETY: the mapping was just made; reading its pages changes nothing. Kernels
            // before 5.14 don't know the advice, and fault the pages in one by one.
            let _ = unsafe { madvise(start, bytes, Advice::LinuxPopulateRead) };
        }
        Ok(Region { start: non_null(start)?, bytes })
    }

    /// The bytes.
    ///
    /// They are meant for the kernel's eyes only: if a user truncates the file by hand, a system
    /// call that reads them fails with `EFAULT`, but a load here would end the process.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is there until the region is dropped, and is not written to:
        // files of the store are immutable.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: the mapping is this region's, and with the region the last slice of it is gone.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.bytes) };
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

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_region_shows_what_it_was_made_of() {
        let file = tempfile::tempfile().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"abcdef", 0).unwrap();
        assert_eq!(Region::of_file(file.as_fd(), 4).unwrap().bytes(), b"abcd");
    }
}
