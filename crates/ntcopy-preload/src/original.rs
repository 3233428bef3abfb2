//! The functions that this library stands in for.
//!
//! They are looked up once, by the constructor. A call that comes earlier, out of the constructor
//! of another library or a signal handler there, is a bare system call: looking up takes locks
//! and may allocate.

use core::ffi::{CStr, c_int, c_long, c_ulong, c_void};
use core::mem;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

use crate::sys;

struct Original {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Original {
    const fn new(name: &'static CStr) -> Self {
        Original { name, address: AtomicPtr::new(core::ptr::null_mut()) }
    }

    fn resolve(&self) {
        // SAFETY: the name ends with a zero. The next one after this library: the C library's, or
        // that of another preloaded library.
        let address = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.address.store(address, Relaxed);
    }
}

/// A system call with what the C library's function would have done about `errno`.
///
/// # Safety
///
/// - See the function that it stands for.
unsafe fn bare(number: c_long, arguments: [usize; 6]) -> isize {
    // SAFETY: the caller's promise.
    let result = unsafe { sys::syscall(number, arguments) };
    if (-4095..0).contains(&result) {
        sys::set_errno(-result as c_int);
        return -1;
    }
    result
}

/// The registers of a system call: those that it doesn't use are zero.
macro_rules! registers {
    ($a:expr, $b:expr, $c:expr) => { registers!($a, $b, $c, 0, 0, 0) };
    ($a:expr, $b:expr, $c:expr, $d:expr) => { registers!($a, $b, $c, $d, 0, 0) };
    ($a:expr, $b:expr, $c:expr, $d:expr, $e:expr) => { registers!($a, $b, $c, $d, $e, 0) };
    ($a:expr, $b:expr, $c:expr, $d:expr, $e:expr, $f:expr) => {
        [$a as usize, $b as usize, $c as usize, $d as usize, $e as usize, $f as usize]
    };
}

macro_rules! originals {
    ($($(#[$doc:meta])* $name:ident($($argument:ident: $type:ty),*) -> $result:ty
        = $number:expr, [$($register:expr),*];)*) => {
        mod originals {
            use super::Original;
            $(
                #[allow(non_upper_case_globals)]
                pub static $name: Original = Original::new(
                    match core::ffi::CStr::from_bytes_with_nul(
                        concat!(stringify!($name), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => panic!("a name with a zero in it"),
                    },
                );
            )*
        }

        /// Looks all of them up.
        pub fn resolve() {
            $(originals::$name.resolve();)*
        }

        $(
            $(#[$doc])*
            ///
            /// # Safety
            ///
            /// - See the C library's function.
            #[inline(always)]
            pub unsafe fn $name($($argument: $type),*) -> $result {
                let address = originals::$name.address.load(Relaxed);
                if address.is_null() {
                    // SAFETY: the caller's promise.
                    return unsafe { bare($number, registers![$($register),*]) as $result };
                }
                // SAFETY: it is the address of the function of this name, and this its type.
                let function = unsafe {
                    mem::transmute::<
                        *mut c_void,
                        unsafe extern "C-unwind" fn($($type),*) -> $result,
                    >(address)
                };
                // SAFETY: the caller's promise.
                unsafe { function($($argument),*) }
            }
        )*
    };
}

originals! {
    /// socket(2).
    socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int
        = libc::SYS_socket, [domain, kind, protocol];
    /// socketpair(2).
    socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int
        = libc::SYS_socketpair, [domain, kind, protocol, pair];
    /// prctl(2), with all the arguments that it may have.
    prctl(option: c_int, a: c_ulong, b: c_ulong, c: c_ulong, d: c_ulong) -> c_int
        = libc::SYS_prctl, [option, a, b, c, d];
    /// syscall(2), with all the arguments that it may have.
    syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long)
        -> c_long
        = number, [a, b, c, d, e, f];
}
