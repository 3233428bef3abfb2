//! What all ways to fill whole lines share: the edges, stored normally and first.

use core::ptr;

use super::super::edges::Edges;

/// A whole fill: the edges normally, the lines between them as `lines` does, which is told where
/// they begin and how many they are, at least one.
///
/// # Safety
///
/// What [`FillFn`](crate::arch::tables::FillFn) says, the instructions being those of `lines`.
#[inline(always)]
pub(super) unsafe fn fill(
    to: *mut u8,
    value: u8,
    len_bytes: usize,
    lines: unsafe fn(*mut u8, u64, usize),
) {
    let edges = Edges::of(to, len_bytes);
    // SAFETY: head, lines and tail are within the length by construction; the caller guarantees
    // the rest.
    unsafe {
        ptr::write_bytes(to, value, edges.head_bytes);
        ptr::write_bytes(to.add(edges.tail_at()), value, edges.tail_bytes);
        if edges.lines > 0 {
            let word = u64::from(value) * 0x0101_0101_0101_0101;
            lines(to.add(edges.head_bytes), word, edges.lines);
        }
    }
}
