//! Scatter and gather.

use std::ffi::{c_int, c_uint};
use std::slice;

use libc::iovec;
use ntcopy::copy_scattered;

use crate::boundary::{Errno, answer, write_out};
use crate::stream::ntcopy_moved;
use crate::{boundary, hints};

/// The number of pieces a side that `readv(2)` takes (`IOV_MAX`).
pub const NTCOPY_IOV_MAX: usize = 1024;

/// Copies the pieces of `src`, one after the other, into the pieces of `dst`, until either side
/// runs out.
///
/// # Safety
///
/// Each array is NULL and empty, or holds its count of elements; their pieces are the caller's for
/// the call. `moved` is NULL or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ntcopy_copyv(
    dst: *const iovec,
    dst_count: usize,
    src: *const iovec,
    src_count: usize,
    hints: c_uint,
    moved: *mut ntcopy_moved,
) -> c_int {
    answer(|| {
        let hints = hints::decode(hints)?;
        // SAFETY: the caller guarantees the arrays.
        let (dst, src) = unsafe { (pieces(dst, dst_count)?, pieces(src, src_count)?) };
        let total_bytes = sum_bytes(dst)?.min(sum_bytes(src)?);
        check_apart(dst, src)?;
        let to = dst.iter().map(|piece| (piece.iov_base.cast::<u8>(), piece.iov_len));
        let from =
            src.iter().map(|piece| (piece.iov_base.cast_const().cast::<u8>(), piece.iov_len));
        // SAFETY: the caller guarantees the pieces, and no destination overlaps anything.
        let all = unsafe { copy_scattered(total_bytes as u64, to, from, hints) };
        // SAFETY: the caller guarantees that `moved` is NULL or can be written.
        unsafe { write_out(moved, all.into()) };
        Ok(0)
    })
}

/// # Safety
///
/// `start` is NULL, or `count` elements are there to read and stay as they are for the call.
unsafe fn pieces<'a>(start: *const iovec, count: usize) -> Result<&'a [iovec], Errno> {
    if count == 0 {
        return Ok(&[]);
    }
    if start.is_null() || !start.is_aligned() || count > NTCOPY_IOV_MAX {
        return Err(Errno::INVALID);
    }
    // SAFETY: not NULL, aligned, and the caller guarantees the rest.
    Ok(unsafe { slice::from_raw_parts(start, count) })
}

/// The bytes of all pieces, each of which can be memory. More than `PTRDIFF_MAX` is an error, as
/// for `writev(2)`.
fn sum_bytes(pieces: &[iovec]) -> Result<usize, Errno> {
    let mut sum_bytes = 0_usize;
    for piece in pieces {
        boundary::check(piece.iov_base.cast_const().cast(), piece.iov_len)?;
        sum_bytes = sum_bytes.checked_add(piece.iov_len).ok_or(Errno::OVERFLOW)?;
    }
    if sum_bytes > isize::MAX as usize { Err(Errno::OVERFLOW) } else { Ok(sum_bytes) }
}

/// Refuses destinations that overlap one another or a source. What the bytes should be then would
/// depend on the order of the pieces, which is never meant.
fn check_apart(dst: &[iovec], src: &[iovec]) -> Result<(), Errno> {
    let mut ranges = Vec::new();
    ranges.try_reserve_exact(dst.len() + src.len()).map_err(|_| Errno::NO_MEMORY)?;
    for (pieces, is_written) in [(dst, true), (src, false)] {
        let there = pieces.iter().filter(|piece| piece.iov_len > 0);
        // No overflow: `sum_bytes` has checked that they end in the address space.
        ranges.extend(there.map(|piece| {
            let start = piece.iov_base.addr();
            (start, start + piece.iov_len, is_written)
        }));
    }
    ranges.sort_unstable();
    // In order of their starts, a range overlaps an earlier one if it starts before the furthest
    // end so far; sources may overlap sources.
    let (mut written_end, mut any_end) = (0, 0);
    for (start, end, is_written) in ranges {
        if start < written_end || (is_written && start < any_end) {
            return Err(Errno::INVALID);
        }
        any_end = any_end.max(end);
        if is_written {
            written_end = end;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: usize, len_bytes: usize) -> iovec {
        iovec { iov_base: std::ptr::without_provenance_mut(start), iov_len: len_bytes }
    }

    #[test]
    fn only_sources_may_overlap_sources() {
        let refused = Err(Errno::INVALID);
        let (a, b, inside_a) = (at(0x1000, 64), at(0x1040, 64), at(0x1010, 16));
        assert_eq!(check_apart(&[a], &[b]), Ok(()));
        assert_eq!(check_apart(&[b], &[a]), Ok(()));
        assert_eq!(check_apart(&[b], &[a, a, inside_a]), Ok(()), "one source many times");
        assert_eq!(check_apart(&[a, inside_a], &[]), refused);
        assert_eq!(check_apart(&[inside_a], &[a]), refused);
        assert_eq!(check_apart(&[a], &[inside_a]), refused);
        assert_eq!(check_apart(&[a], &[at(0x103f, 2)]), refused, "by one byte");
        assert_eq!(check_apart(&[a], &[at(0x0fff, 2)]), refused, "by one byte");
        assert_eq!(check_apart(&[a], &[at(0x1010, 0)]), Ok(()), "nothing overlaps nothing");
        let (long, short) = (at(0x1000, 0x1000), at(0x1800, 8));
        assert_eq!(check_apart(&[at(0x1900, 8)], &[long, short]), refused, "past a shorter one");
    }

    #[test]
    fn sums_are_checked() {
        let half = isize::MAX as usize / 2 + 1;
        assert_eq!(sum_bytes(&[at(0x1000, 3), at(0, 0), at(0x2000, 4)]), Ok(7));
        assert_eq!(sum_bytes(&[at(0x1000, half), at(0x1000, half)]), Err(Errno::OVERFLOW));
        assert_eq!(sum_bytes(&[at(0, 1)]), Err(Errno::INVALID));
        assert_eq!(sum_bytes(&[at(0x1000, usize::MAX)]), Err(Errno::OVERFLOW));
    }
}
