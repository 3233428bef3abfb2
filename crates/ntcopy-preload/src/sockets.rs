//! The calls that make sockets: what they made opts in before the program has it.

use core::ffi::c_int;
use core::mem::{self, MaybeUninit};

use crate::{enable, original, sys};

/// Stands in for socket(2).
///
/// # Safety
///
/// - See socket(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: the caller's promise.
    let fd = unsafe { original::socket(domain, kind, protocol) };
    if fd >= 0
        && let Some(wanted) = enable::wanted(domain, kind, protocol)
    {
        enable::enable(fd, wanted);
    }
    fd
}

/// Stands in for socketpair(2).
///
/// # Safety
///
/// - See socketpair(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    pair: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let result = unsafe { original::socketpair(domain, kind, protocol, pair) };
    if result == 0
        && let Some(wanted) = enable::wanted(domain, kind, protocol)
        && let Some(pair) = read_pair(pair)
    {
        pair.into_iter().for_each(|fd| enable::enable(fd, wanted));
    }
    result
}

/// The kernel has just written there, but another thread may have taken the memory away since: then
/// the program goes on, as it would without us.
fn read_pair(from: *const c_int) -> Option<[c_int; 2]> {
    let mut pair = MaybeUninit::<[c_int; 2]>::uninit();
    let bytes = mem::size_of_val(&pair);
    let is_read = sys::read_memory(from as usize, pair.as_mut_ptr().cast(), bytes);
    // SAFETY: it was copied whole, and any bytes are integers.
    is_read.then(|| unsafe { pair.assume_init() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_read_or_is_not_there() {
        let pair = [3, 4];
        assert_eq!(read_pair(pair.as_ptr()), Some(pair));
        for bad in [0, 8, 1 << 63, usize::MAX - 3] {
            assert_eq!(read_pair(std::ptr::without_provenance(bad)), None, "{bad:x}");
        }
    }
}
