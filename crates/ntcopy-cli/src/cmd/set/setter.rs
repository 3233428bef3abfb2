//! Sets a program's sockets, and notes what was found on them.

use std::collections::{BTreeMap, HashMap};
use std::ffi::c_int;
use std::io;

use ntcopy::recommended::{DATAGRAM_BYTES, Family, Kind, stream_bytes};
use ntcopy::socket::Support;

use super::hold::Address;
use super::notes::{All, Note, Notes};
use super::sockets::{Looks, Socket};
use super::tree::Tree;
use super::way::Way;

/// From how many bytes on sends are to be hinted: as the kernel or the module takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers {
    pub stream: c_int,
    /// None by the module, which takes streams alone.
    pub datagram: Option<c_int>,
}

impl Numbers {
    /// The user's number, or those that are recommended.
    pub fn taken(way: &Way, said: Option<c_int>) -> io::Result<Numbers> {
        let taken = |recommended: u32| way.taken(said.unwrap_or(recommended.cast_signed()));
        let stream = taken(stream_bytes(way.support()))?;
        let takes_datagrams = way.support() != Support::Module;
        let datagram = takes_datagrams.then(|| taken(DATAGRAM_BYTES)).transpose()?;
        Ok(Numbers { stream, datagram })
    }

    /// None for a kind that is not taken.
    pub fn of(self, way: &Way, kind: Kind) -> Option<c_int> {
        let number = if kind.is_stream { Some(self.stream) } else { self.datagram };
        number.filter(|_| way.takes(kind))
    }
}

/// What was found on a socket, or on the listener that accepted it with a number of ours.
fn found_at_first(notes: &All, socket: &Socket, address: Option<&Address>) -> c_int {
    let address = address.filter(|_| notes.of(socket.cookie).is_none());
    let listener = address.and_then(|address| notes.listener(socket.bytes, address));
    listener.map_or(socket.bytes, |listener| listener.found)
}

/// What was done, in numbers of sockets.
#[derive(Default)]
pub struct Done {
    /// By family, and whether they listen.
    pub set: BTreeMap<(Family, bool), usize>,
    /// Had their number already.
    pub had: usize,
    /// Sockets of families that were not asked for.
    pub other_families: BTreeMap<Family, usize>,
    /// Sockets of kinds that the module cannot help.
    pub not_taken: usize,
    /// Why, and how many.
    pub failed: BTreeMap<String, usize>,
}

impl Done {
    pub fn sockets(&self) -> usize {
        self.set.values().sum()
    }

    pub fn listeners(&self) -> usize {
        self.set.iter().filter(|((_, listens), _)| *listens).map(|(_, count)| count).sum()
    }
}

pub struct Setter {
    pub way: Way,
    pub families: Vec<Family>,
    pub numbers: Numbers,
    /// None where they cannot be kept.
    pub notes: Option<Notes>,
    pub looks: Looks,
    pub done: Done,
    /// Listeners that were set, and whether they had accepted connections before.
    listeners: HashMap<Address, bool>,
}

impl Setter {
    pub fn new(way: Way, families: Vec<Family>, numbers: Numbers, notes: Option<Notes>) -> Setter {
        let (looks, done, listeners) = (Looks::default(), Done::default(), HashMap::new());
        Setter { way, families, numbers, notes, looks, done, listeners }
    }

    /// Sets what is new, and says how many sockets that were. Nobody puts anything back meanwhile.
    pub fn look(&mut self, tree: &mut Tree) -> io::Result<usize> {
        let before = self.done.sockets();
        let lock = self.notes.as_ref().map(Notes::lock).transpose()?;
        if self.is_taken_back() {
            return Ok(0);
        }
        tree.look();
        for socket in self.looks.new_sockets(&self.way, tree) {
            if let Err(error) = self.set(&socket) {
                *self.done.failed.entry(error.to_string()).or_default() += 1;
            }
        }
        drop(lock);
        Ok(self.done.sockets() - before)
    }

    /// What was found is of no use when the program has ended.
    pub fn finish(self, tree: &Tree) {
        if tree.is_over()
            && let Some(notes) = self.notes
        {
            let _ = notes.remove();
        }
    }

    /// Whether somebody has put back what was found.
    pub fn is_taken_back(&self) -> bool {
        self.notes.as_ref().is_some_and(Notes::are_gone)
    }

    fn set(&mut self, socket: &Socket) -> io::Result<()> {
        let Some(kind) = socket.kind else { return Ok(()) };
        if !self.families.contains(&kind.family) {
            *self.done.other_families.entry(kind.family).or_default() += 1;
            return Ok(());
        }
        let Some(bytes) = self.numbers.of(&self.way, kind) else {
            self.done.not_taken += 1;
            return Ok(());
        };
        if socket.bytes == bytes {
            self.done.had += 1;
            return Ok(());
        }
        let address = if kind.is_stream { socket.address() } else { None };
        let listens = address.clone().filter(|_| socket.listens);
        if let Some(notes) = &mut self.notes {
            let found = found_at_first(notes.all(), socket, address.as_ref());
            notes.add(Note { cookie: socket.cookie, found, set: bytes, listens })?;
        }
        if !socket.set(&self.way, bytes)? {
            return Ok(());
        }
        *self.done.set.entry((kind.family, socket.listens)).or_default() += 1;
        match address {
            Some(address) if socket.listens => {
                self.listeners.entry(address).or_insert(false);
            }
            Some(address) => {
                let accepted_by = self.listeners.get_mut(&address);
                accepted_by.into_iter().for_each(|had_accepted| *had_accepted = true);
            }
            None => {}
        }
        Ok(())
    }

    /// Listeners that had accepted connections before they were set.
    pub fn late_listeners(&self) -> usize {
        self.listeners.values().filter(|had_accepted| **had_accepted).count()
    }
}
