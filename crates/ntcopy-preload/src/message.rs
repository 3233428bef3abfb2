//! The sizes of messages, which are known only from the program's memory.
//!
//! Where that memory is not there, the kernel answers with `EFAULT`. A program that has this
//! library before the kernel must see the same, so nothing is read that the kernel couldn't read.

use core::ffi::{c_int, c_uint};
use core::mem;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use libc::{iovec, mmsghdr, msghdr};

use crate::sys;

/// The most slices that the kernel takes in a message, and messages in a call.
pub const MOST: usize = libc::UIO_MAXIOV as usize;

const PAGE_SHIFT: u32 = 12;
/// Pages that were readable when they were last asked for. Message headers lie on stacks and in
/// long-lived buffers; one that is unmapped and then handed to a send is not worth a question a
/// call.
static READABLE: [AtomicUsize; 1 << SLOTS_SHIFT] =
    [const { AtomicUsize::new(0) }; 1 << SLOTS_SHIFT];
const SLOTS_SHIFT: u32 = 8;

/// Where a page is remembered. Stacks of threads lie at multiples of megabytes, so the upper bits
/// have to count: Fibonacci hashing.
fn slot(page: usize) -> Option<&'static AtomicUsize> {
    READABLE.get(page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (usize::BITS - SLOTS_SHIFT))
}

/// Whether the kernel could read this memory.
fn is_readable(address: usize, size_bytes: usize) -> bool {
    let Some(last) = address.checked_add(size_bytes.saturating_sub(1)) else { return false };
    for page in address >> PAGE_SHIFT..=last >> PAGE_SHIFT {
        let Some(slot) = slot(page) else { return false };
        // A slot that holds nothing holds zero, which is no page of a program.
        if page != 0 && slot.load(Relaxed) == page {
            continue;
        }
        if !sys::is_readable(page << PAGE_SHIFT) {
            return false;
        }
        slot.store(page, Relaxed);
    }
    true
}

/// What lies at an address, as a copy; `None` where nothing can be read there.
fn read<T: Copy>(at: *const T) -> Option<T> {
    if !is_readable(at as usize, mem::size_of::<T>()) {
        return None;
    }
    // SAFETY: the memory is there, and `T` is one of the structures of integers and pointers
    // below, which any bytes are. It need not be aligned.
    Some(unsafe { at.read_unaligned() })
}

/// Whether one of these slices has `bytes` or more: each is copied by itself, so that many
/// small ones are no large send.
///
/// Not where the kernel would not look at them: none, too many, or out of reach.
#[inline(never)]
pub fn vector_reaches(vector: *const iovec, count: usize, min_bytes: usize) -> bool {
    // At once, since all of them are looked at where all are small.
    if !(1..=MOST).contains(&count)
        || !is_readable(vector as usize, count * mem::size_of::<iovec>())
    {
        return false;
    }
    (0..count).any(|at| {
        // SAFETY: the memory is there, as `read` wants it.
        let slice = unsafe { vector.wrapping_add(at).read_unaligned() };
        slice.iov_len >= min_bytes
    })
}

/// Whether a message has a slice of at least the bytes that are hinted.
#[inline(never)]
pub fn message_reaches(message: *const msghdr, min_bytes: usize) -> bool {
    read(message)
        .is_some_and(|message| vector_reaches(message.msg_iov, message.msg_iovlen, min_bytes))
}

/// Whether one of these messages has a slice of at least the bytes that are hinted.
#[inline(never)]
pub fn any_message_reaches(messages: *const mmsghdr, count: c_uint, min_bytes: usize) -> bool {
    let count = (count as usize).min(MOST);
    for at in 0..count {
        let Some(message) = read(messages.wrapping_add(at)) else { return false };
        let header = &message.msg_hdr;
        if vector_reaches(header.msg_iov, header.msg_iovlen, min_bytes) {
            return true;
        }
    }
    false
}

/// [`vector_reaches`] with the count that `writev` takes.
pub fn writev_reaches(vector: *const iovec, count: c_int, min_bytes: usize) -> bool {
    usize::try_from(count).is_ok_and(|count| vector_reaches(vector, count, min_bytes))
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    fn slices(sizes: &[usize]) -> Vec<iovec> {
        // Never looked into.
        let nowhere = ptr::without_provenance_mut(16);
        sizes.iter().map(|&iov_len| iovec { iov_base: nowhere, iov_len }).collect()
    }

    fn message(vector: &mut [iovec]) -> msghdr {
        // SAFETY: zeros are null pointers and sizes of nothing.
        let mut message: msghdr = unsafe { mem::zeroed() };
        message.msg_iov = vector.as_mut_ptr();
        message.msg_iovlen = vector.len();
        message
    }

    #[test]
    fn one_large_slice_is_enough_and_small_ones_do_not_add_up() {
        let mut vector = slices(&[0, 4000, 95, 4096]);
        for (min_bytes, reaches) in [(1, true), (4096, true), (4097, false), (usize::MAX, false)] {
            assert_eq!(vector_reaches(vector.as_ptr(), 4, min_bytes), reaches, "{min_bytes}");
            assert_eq!(writev_reaches(vector.as_ptr(), 4, min_bytes), reaches, "{min_bytes}");
            let message = message(&mut vector);
            assert_eq!(message_reaches(&message, min_bytes), reaches, "{min_bytes}");
        }
        assert!(!writev_reaches(vector.as_ptr(), 3, 4096) && !writev_reaches(ptr::null(), -1, 0));
        let huge = slices(&[usize::MAX, usize::MAX]);
        assert!(vector_reaches(huge.as_ptr(), 2, usize::MAX));
        let many = slices(&[1; MOST + 1]);
        assert!(vector_reaches(many.as_ptr(), MOST, 1));
        assert!(!vector_reaches(many.as_ptr(), MOST, 2));
        assert!(!vector_reaches(many.as_ptr(), MOST + 1, 1));
    }

    #[test]
    fn one_large_message_is_enough() {
        let (mut small, mut large) = (slices(&[10]), slices(&[10, 5000]));
        let messages =
            [&mut small, &mut large].map(|vector| mmsghdr { msg_hdr: message(vector), msg_len: 0 });
        assert!(any_message_reaches(messages.as_ptr(), 2, 4096));
        assert!(!any_message_reaches(messages.as_ptr(), 1, 4096));
        assert!(!any_message_reaches(messages.as_ptr(), 2, 5001));
        assert!(!any_message_reaches(messages.as_ptr(), 0, 1));
    }

    #[test]
    fn memory_that_is_not_there_is_not_read() {
        for bad in [0, 1, 4096, 1 << 63, usize::MAX, usize::MAX - 15] {
            let vector = ptr::without_provenance(bad);
            for _ in 0..2 {
                assert!(!vector_reaches(vector, 2, 1), "{bad:x}");
                assert!(!message_reaches(vector.cast(), 1), "{bad:x}");
                assert!(!any_message_reaches(vector.cast(), 2, 1), "{bad:x}");
            }
        }
    }
}
