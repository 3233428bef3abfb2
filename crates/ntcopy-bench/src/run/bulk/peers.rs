//! Other libraries' copies, if they are there: looked up at run time, so that nothing depends on
//! them.
//!
//! libpmem2 has a library of its own. The others come without one (LLVM's libc as an archive, DPDK's
//! copy in a header), so that `scripts/copy-peers.sh` makes them into one each, with one function
//! of libpmem2's type.

use std::collections::BTreeMap;

use libloading::Library;

use super::pmem2::{self, Memcpy};
use crate::experiment::bulk::Peer;

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
        Peer::Libpmem2 => return pmem2::load(),
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
