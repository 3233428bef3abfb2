//! The sizes of messages, which are known only from the program's memory.
//!
//! Where that memory is not there, the kernel answers with `EFAULT`. A program that has this
//! library before the kernel must see the same, so it is read as `memory.rs` does. Where that is
//! work, each asks first whether the size matters.

use core::ffi::{c_int, c_uint};

use libc::{iovec, mmsghdr, msghdr};

use crate::memory;

/// The most slices that the kernel takes in a message, and messages in a call.
pub const MOST: usize = libc::UIO_MAXIOV as usize;

/// Whether one of these slices has `bytes` or more: each is copied by itself, so that many
/// small ones are no large send.
///
/// Not where the kernel would not look at them: none, too many, or out of reach.
#[inline(never)]
pub fn vector_reaches(
    vector: *const iovec,
    count: usize,
    min_bytes: usize,
    matters: impl Fn() -> bool + Copy,
) -> bool {
    (1..=MOST).contains(&count)
        // SAFETY: it is a structure of a pointer and an integer.
        && unsafe { memory::any(vector, count, matters, |slice| slice.iov_len >= min_bytes) }
}

/// Whether a message has a slice of at least the bytes that are hinted.
#[inline(never)]
pub fn message_reaches(
    message: *const msghdr,
    min_bytes: usize,
    matters: impl Fn() -> bool + Copy,
) -> bool {
    // SAFETY: it is a structure of pointers and integers.
    unsafe { memory::read(message, matters) }.is_some_and(|message| {
        vector_reaches(message.msg_iov, message.msg_iovlen, min_bytes, matters)
    })
}

/// Whether one of these messages has a slice of at least the bytes that are hinted.
#[inline(never)]
pub fn any_message_reaches(
    messages: *const mmsghdr,
    count: c_uint,
    min_bytes: usize,
    matters: impl Fn() -> bool + Copy,
) -> bool {
    let reaches = |message: &mmsghdr| {
        vector_reaches(message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen, min_bytes, matters)
    };
    // SAFETY: it is a structure of pointers and integers.
    unsafe { memory::any(messages, (count as usize).min(MOST), matters, reaches) }
}

/// [`vector_reaches`] with the count that `writev` takes.
pub fn writev_reaches(
    vector: *const iovec,
    count: c_int,
    min_bytes: usize,
    matters: impl Fn() -> bool + Copy,
) -> bool {
    usize::try_from(count).is_ok_and(|count| vector_reaches(vector, count, min_bytes, matters))
}

#[cfg(test)]
mod tests {
    use std::{mem, ptr};

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
            assert_eq!(
                vector_reaches(vector.as_ptr(), 4, min_bytes, || true),
                reaches,
                "{min_bytes}"
            );
            assert_eq!(
                writev_reaches(vector.as_ptr(), 4, min_bytes, || true),
                reaches,
                "{min_bytes}"
            );
            let message = message(&mut vector);
            assert_eq!(message_reaches(&message, min_bytes, || true), reaches, "{min_bytes}");
        }
        assert!(
            !writev_reaches(vector.as_ptr(), 3, 4096, || true)
                && !writev_reaches(ptr::null(), -1, 0, || true)
        );
        let huge = slices(&[usize::MAX, usize::MAX]);
        assert!(vector_reaches(huge.as_ptr(), 2, usize::MAX, || true));
        let many = slices(&[1; MOST + 1]);
        assert!(vector_reaches(many.as_ptr(), MOST, 1, || true));
        assert!(!vector_reaches(many.as_ptr(), MOST, 2, || true));
        assert!(!vector_reaches(many.as_ptr(), MOST + 1, 1, || true));
    }

    #[test]
    fn one_large_message_is_enough() {
        let (mut small, mut large) = (slices(&[10]), slices(&[10, 5000]));
        let messages =
            [&mut small, &mut large].map(|vector| mmsghdr { msg_hdr: message(vector), msg_len: 0 });
        assert!(any_message_reaches(messages.as_ptr(), 2, 4096, || true));
        assert!(!any_message_reaches(messages.as_ptr(), 1, 4096, || true));
        assert!(!any_message_reaches(messages.as_ptr(), 2, 5001, || true));
        assert!(!any_message_reaches(messages.as_ptr(), 0, 1, || true));
    }

    #[test]
    fn memory_that_is_not_there_is_not_read() {
        for bad in [0, 1, 4096, 1 << 63, usize::MAX, usize::MAX - 15] {
            let vector = ptr::without_provenance(bad);
            for _ in 0..2 {
                assert!(!vector_reaches(vector, 2, 1, || true), "{bad:x}");
                assert!(!message_reaches(vector.cast(), 1, || true), "{bad:x}");
                assert!(!any_message_reaches(vector.cast(), 2, 1, || true), "{bad:x}");
            }
        }
    }
}
