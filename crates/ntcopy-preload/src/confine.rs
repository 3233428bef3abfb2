//! A program that confines itself by seccomp allows itself its own system calls, not ours: a
//! `setsockopt` after its `socket` could be its end. This library leaves all alone once the program
//! has confined itself. What it starts is under that filter from the beginning: `filter.rs`.

use core::ffi::{c_int, c_long, c_ulong};

use crate::{enable, original};

/// Stands in for prctl(2).
///
/// # Safety
///
/// - See prctl(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn prctl(
    option: c_int,
    a: c_ulong,
    b: c_ulong,
    c: c_ulong,
    d: c_ulong,
) -> c_int {
    if option == libc::PR_SET_SECCOMP {
        enable::deactivate();
    }
    // SAFETY: the caller's promise. Arguments that it did not give are not looked at.
    unsafe { original::prctl(option, a, b, c, d) }
}

/// Stands in for syscall(2), by which libseccomp makes its calls.
///
/// # Safety
///
/// - See syscall(2).
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if confines(number, a) {
        enable::deactivate();
    }
    // SAFETY: the caller's promise. Arguments that it did not give are not looked at.
    unsafe { original::syscall(number, a, b, c, d, e, f) }
}

fn confines(number: c_long, operation: c_long) -> bool {
    match number {
        libc::SYS_seccomp => {
            operation == c_long::from(libc::SECCOMP_SET_MODE_STRICT)
                || operation == c_long::from(libc::SECCOMP_SET_MODE_FILTER)
        }
        libc::SYS_prctl => operation == c_long::from(libc::PR_SET_SECCOMP),
        _ => false,
    }
}
