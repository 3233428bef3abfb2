//! libpmem2's copy, if the library is installed: looked up at run time, so that nothing depends
//! on it.
//!
//! The names, types and values are those of `libpmem2/base.h` (1.12; the soname `libpmem2.so.1`
//! promises that they stay).

use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use libloading::{Library, Symbol};

/// Destination, source, bytes, and flags that libpmem2 alone knows.
pub type Memcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_uint) -> *mut c_void;

/// The soname, as the distributions install it.
const SONAME: &str = "libpmem2.so.1";
/// The library wants a map before it tells which copy fits its memory.
const MAP_BYTES: usize = 2 << 20;
/// `PMEM2_GRANULARITY_PAGE`: any memory will do.
const GRANULARITY_PAGE: c_int = 2;

/// The copy that libpmem2 picks for ordinary memory: of an anonymous map, which it takes for
/// memory that needs no flushing.
pub fn load() -> Result<Memcpy, String> {
    // SAFETY: the library's initialiser reads CPUID and the environment, as for any program that
    // links it.
    let library = unsafe { Library::new(SONAME) }
        .map_err(|error| format!("{SONAME} is not installed (Debian: libpmem2): {error}"))?;
    // It stays for the life of the process, as do the map and the function that it gives.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: the types are those of the header.
    unsafe { ask(library) }
}

/// # Safety
///
/// `library` is libpmem2, version 1.
unsafe fn ask(library: &'static Library) -> Result<Memcpy, String> {
    type New = unsafe extern "C" fn(*mut *mut c_void) -> c_int;
    type FromAnon = unsafe extern "C" fn(*mut *mut c_void, usize) -> c_int;
    type SetGranularity = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    type MapNew = unsafe extern "C" fn(*mut *mut c_void, *const c_void, *const c_void) -> c_int;
    type GetMemcpy = unsafe extern "C" fn(*mut c_void) -> Option<Memcpy>;

    let (mut config, mut source, mut map) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: names and types are those of the header; each pointer is filled in by the call
    // before the one that takes it, which its 0 says.
    unsafe {
        done("pmem2_config_new", symbol::<New>(library, "pmem2_config_new")?(&mut config))?;
        let from_anon = symbol::<FromAnon>(library, "pmem2_source_from_anon")?;
        done("pmem2_source_from_anon", from_anon(&mut source, MAP_BYTES))?;
        let name = "pmem2_config_set_required_store_granularity";
        done(name, symbol::<SetGranularity>(library, name)?(config, GRANULARITY_PAGE))?;
        let map_new = symbol::<MapNew>(library, "pmem2_map_new")?;
        done("pmem2_map_new", map_new(&mut map, config, source))?;
        let get = symbol::<GetMemcpy>(library, "pmem2_get_memcpy_fn")?;
        get(map).ok_or_else(|| "pmem2_get_memcpy_fn gave none".to_owned())
    }
}

/// # Safety
///
/// The symbol has type `T`.
unsafe fn symbol<T>(library: &'static Library, name: &str) -> Result<Symbol<'static, T>, String> {
    // SAFETY: the caller guarantees the type.
    unsafe { library.get(name.as_bytes()) }.map_err(|error| format!("{SONAME}: {error}"))
}

fn done(name: &str, result: c_int) -> Result<(), String> {
    if result == 0 { Ok(()) } else { Err(format!("{name} answers {result}")) }
}
