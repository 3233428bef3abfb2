//! Other libraries' copies, if they are there: looked up at run time, so that nothing depends on
//! them.
//!
//! libpmem2 has a library of its own, whose names, types and values are those of `libpmem2/base.h`
//! (1.12; the soname `libpmem2.so.1` promises that they stay). The others come without one (LLVM's
//! libc as an archive, DPDK's copy in a header), so that `scripts/copy-peers.sh` makes them into one
//! each, with one function of libpmem2's type.

use std::collections::BTreeMap;
use std::ffi::{c_int, c_uint, c_void};
use std::ptr;

use libloading::{Library, Symbol};

use crate::experiments::bulk::task::Peer;

/// Destination, source, bytes, and flags that libpmem2 alone knows.
pub type Memcpy = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_uint) -> *mut c_void;

/// The soname, as the distributions install it.
const SONAME: &str = "libpmem2.so.1";
/// The library wants a map before it tells which copy fits its memory.
const MAP_BYTES: usize = 2 << 20;
/// `PMEM2_GRANULARITY_PAGE`: any memory will do.
const GRANULARITY_PAGE: c_int = 2;

const SYMBOL: &str = "ntcopy_peer_memcpy";

pub struct Peers(Vec<(Peer, Result<Memcpy, String>)>);

impl Peers {
    pub fn load() -> Peers {
        Peers(Peer::ALL.iter().map(|peer| (*peer, load(*peer))).collect())
    }

    pub fn get(&self, peer: Peer) -> Option<Memcpy> {
        self.0.iter().find(|row| row.0 == peer)?.1.as_ref().ok().copied()
    }

    /// Why the others are not, by their ways' names.
    pub fn missing(&self) -> BTreeMap<String, String> {
        let why = |(peer, found): &(Peer, Result<Memcpy, String>)| {
            Some((peer.as_str().to_owned(), found.as_ref().err()?.clone()))
        };
        self.0.iter().filter_map(why).collect()
    }
}

fn load(peer: Peer) -> Result<Memcpy, String> {
    let (name, package) = match peer {
        Peer::Libpmem2 => return pmem2(),
        Peer::LlvmLibc => ("libntcopy-peer-llvm-libc.so", "Debian's libllvmlibc-22-dev"),
        Peer::RteMemcpy => ("libntcopy-peer-rte-memcpy.so", "Debian's libdpdk-dev"),
    };
    // SAFETY: the library has no initialisers but the C runtime's.
    let library = unsafe { Library::new(name) }.map_err(|error| {
        format!("{name} is not there (scripts/copy-peers.sh makes it of {package}): {error}")
    })?;
    // It stays for the life of the process, as does the function that it gives.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: the script gives the function this type.
    let function = unsafe { library.get::<Memcpy>(SYMBOL.as_bytes()) };
    function.map(|function| *function).map_err(|error| format!("{name}: {error}"))
}

/// The copy that libpmem2 picks for ordinary memory: of an anonymous map, which it takes for
/// memory that needs no flushing.
fn pmem2() -> Result<Memcpy, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_there_or_says_why_it_is_not() {
        let (peers, from) = (Peers::load(), [7_u8; 100_000]);
        let missing = peers.missing();
        for peer in Peer::ALL.iter().copied() {
            let Some(copy) = peers.get(peer) else {
                assert!(!missing[peer.as_str()].is_empty());
                continue;
            };
            let mut to = vec![0_u8; from.len()];
            // SAFETY: two buffers of the length.
            unsafe { copy(to.as_mut_ptr().cast(), from.as_ptr().cast(), from.len(), 0) };
            assert!(to == from, "{}", peer.as_str());
        }
    }
}
