//! Plain Rust under the names of SSE2, for Miri: it runs no assembly, and so follows the pointers of
//! the loop around it.

use super::lines::Lines;
use crate::arch::LINE_BYTES;

/// A line where it has to be aligned.
#[repr(align(64))]
struct Line([u8; LINE_BYTES]);

pub(super) struct Plain;

impl Lines for Plain {
    unsafe fn four<const A: usize, const B: usize>(to: *mut u8, from: *const u8) {
        for at in [0, A, B, A + B] {
            // SAFETY: the caller guarantees the lines.
            unsafe { Plain::one(to.add(at), from.add(at)) }
        }
    }

    unsafe fn one(to: *mut u8, from: *const u8) {
        // SAFETY: the caller guarantees the line, and where it is aligned.
        unsafe { to.cast::<Line>().write(Line(from.cast::<[u8; LINE_BYTES]>().read())) }
    }
}
