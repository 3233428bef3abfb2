//! What a pointer and a length show by themselves.

use crate::boundary::Errno;

/// Whether a range can be memory: not NULL unless it is empty, no longer than an object can be
/// (`PTRDIFF_MAX`), and not past the end of the address space. A length that was computed from a
/// negative number fails here.
#[inline]
pub(crate) fn check(start: *const u8, len_bytes: usize) -> Result<(), Errno> {
    if len_bytes == 0 {
        return Ok(());
    }
    if start.is_null() {
        return Err(Errno::INVALID);
    }
    if len_bytes > isize::MAX as usize || start.addr().checked_add(len_bytes).is_none() {
        return Err(Errno::OVERFLOW);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;

    #[test]
    fn what_cannot_be_memory_is_an_error() {
        let somewhere = ptr::without_provenance(0x1000);
        let near_the_end = ptr::without_provenance(usize::MAX - 0xfff);
        for (start, len_bytes, expected) in [
            (ptr::null(), 0, Ok(())),
            (ptr::null(), 1, Err(Errno::INVALID)),
            (somewhere, 1, Ok(())),
            (somewhere, isize::MAX as usize, Ok(())),
            (somewhere, isize::MAX as usize + 1, Err(Errno::OVERFLOW)),
            (somewhere, -1_isize as usize, Err(Errno::OVERFLOW)),
            (near_the_end, 0xfff, Ok(())),
            (near_the_end, 0x1001, Err(Errno::OVERFLOW)),
        ] {
            assert_eq!(check(start, len_bytes), expected, "{start:?}, {len_bytes:#x}");
        }
    }
}
