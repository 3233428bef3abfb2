//! The program's memory, read and written so that a page that is not there is an answer and not
//! the end of the program, also where another thread takes it away just then.
//!
//! The kernel copies it (`process_vm_readv` on the process itself). What lies on the stack above
//! this call is read as it is: it is there for as long as the thread stands on it, and structures
//! of messages mostly are there.

use core::ffi::c_void;
use core::mem::{self, MaybeUninit};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::sys;

/// How far above a call its stack may reach to be believed. A thread's stack ends at its thread
/// pointer and has more than this; another stack, of a coroutine, is farther away from there.
const STACK_BYTES: usize = 64 << 10;

/// Something above all frames of the first thread, whose thread pointer is elsewhere.
static FIRST_STACK: AtomicUsize = AtomicUsize::new(0);

/// The stack of the first thread ends here, or above.
pub fn first_stack_ends(at: *const c_void) {
    FIRST_STACK.store(at as usize, Relaxed);
}

fn is_on_stack(address: usize, bytes: usize) -> bool {
    let here = sys::stack_pointer();
    let ends_within_reach = |top: &usize| top.wrapping_sub(here) <= STACK_BYTES;
    let tops = [sys::thread_pointer(), FIRST_STACK.load(Relaxed)];
    let top = tops.into_iter().find(ends_within_reach).unwrap_or(0);
    here <= address && address.checked_add(bytes).is_some_and(|end| end <= top)
}

/// Copies what lies at an address; false where it can't all be read, or is not worth the kernel's
/// work, which is asked only where the kernel would do it.
fn copy<T: Copy>(
    at: *const T,
    into: &mut [MaybeUninit<T>],
    is_worth_it: impl Fn() -> bool,
) -> bool {
    let bytes = mem::size_of_val(into);
    if is_on_stack(at as usize, bytes) {
        // SAFETY: both have as many bytes, and the stack's are there; they need not be aligned.
        unsafe { at.cast::<u8>().copy_to(into.as_mut_ptr().cast(), bytes) };
        return true;
    }
    is_worth_it() && sys::read_memory(at as usize, into.as_mut_ptr().cast(), bytes)
}

/// What lies at an address, as a copy.
///
/// # Safety
///
/// - Any bytes are a `T`.
pub unsafe fn read<T: Copy>(at: *const T, is_worth_it: impl Fn() -> bool) -> Option<T> {
    let mut value = MaybeUninit::uninit();
    let is_read = copy(at, core::slice::from_mut(&mut value), is_worth_it);
    // SAFETY: it was copied whole, and any bytes will do, as the caller promises.
    is_read.then(|| unsafe { value.assume_init() })
}

/// Whether one of the values that lie at an address is such a one; false as well where they can't
/// be read.
///
/// # Safety
///
/// - Any bytes are a `T`.
pub unsafe fn any<T: Copy>(
    at: *const T,
    count: usize,
    is_worth_it: impl Fn() -> bool + Copy,
    is_one: impl Fn(&T) -> bool,
) -> bool {
    const AT_ONCE: usize = 32;
    let mut values = [const { MaybeUninit::uninit() }; AT_ONCE];
    for first in (0..count).step_by(AT_ONCE) {
        let Some(values) = values.get_mut(..AT_ONCE.min(count - first)) else { return false };
        if !copy(at.wrapping_add(first), values, is_worth_it) {
            return false;
        }
        // SAFETY: they were copied whole, and any bytes will do, as the caller promises.
        if values.iter().any(|value| is_one(unsafe { value.assume_init_ref() })) {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn memory_is_read_or_is_not_there() {
        let (on_stack, on_heap) = ([1_u64, 2, 3], vec![4_u64; 100]);
        for at in [on_stack.as_ptr(), on_heap.as_ptr()] {
            // SAFETY: any bytes are an integer.
            let value = unsafe { read(at, || true) };
            assert_eq!(value, Some(if at == on_stack.as_ptr() { 1 } else { 4 }));
        }
        // SAFETY: as above.
        unsafe {
            assert!(any(on_stack.as_ptr(), 3, || false, |value| *value == 3));
            assert!(any(on_heap.as_ptr(), 100, || true, |value| *value == 4));
            assert!(!any(on_heap.as_ptr(), 100, || true, |value| *value == 5));
            assert!(!any(on_heap.as_ptr(), 0, || true, |_| true));
            assert!(!any(on_heap.as_ptr(), 100, || false, |value| *value == 4));
        }
        for bad in [0, 1, 4096, 1 << 63, usize::MAX, usize::MAX - 15] {
            let at = ptr::without_provenance::<u64>(bad);
            // SAFETY: as above.
            let is_there = unsafe { read(at, || true).is_some() || any(at, 2, || true, |_| true) };
            assert!(!is_there, "{bad:x}");
        }
    }

    #[test]
    fn only_the_stack_above_is_the_stack() {
        let value = 7_u64;
        let at = &raw const value as usize;
        // Of a test's thread, which is not the first.
        assert!(is_on_stack(at, 8));
        assert!(!is_on_stack(at - (64 << 10), 8));
        assert!(!is_on_stack(sys::thread_pointer() - 4, 8));
        assert!(!is_on_stack(at, usize::MAX));
        assert!(!is_on_stack(vec![7_u64].as_ptr() as usize, 8));
    }
}
