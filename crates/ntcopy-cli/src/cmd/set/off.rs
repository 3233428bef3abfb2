//! Puts back what was found on the sockets that `ntcopy set` has set.

use std::ffi::c_int;
use std::io;

use serde::Serialize;

use super::notes::All;
use super::sockets::{Looks, Socket};
use super::tree::Tree;
use super::way::Way;

/// What was done.
#[derive(Default, Serialize)]
pub struct Restored {
    /// Have again what was found on them.
    pub restored: usize,
    /// Connections that have what was found on their listener.
    pub accepted: usize,
    /// Have a number that is not of `ntcopy set`, and keep it.
    pub left_alone: Vec<Left>,
    /// Why, and of which process.
    pub failed: Vec<String>,
}

#[derive(Serialize)]
pub struct Left {
    pub socket: String,
    pub min_bytes: c_int,
    /// What it was set to, if it was.
    pub was_set_to: Option<c_int>,
}

/// Listeners first: what they accept from then on has no number of ours. What was accepted just
/// before is found by the second look.
pub fn restore(way: &Way, tree: &mut Tree, notes: &All) -> (Restored, Looks) {
    let (mut restored, mut looks) = (Restored::default(), Looks::default());
    for _ in 0..2 {
        tree.look();
        for socket in looks.new_sockets(way, tree) {
            if let Err(error) = restore_one(way, &socket, notes, &mut restored) {
                restored.failed.push(format!("{}: {error}", socket.name()));
            }
        }
    }
    (restored, looks)
}

fn restore_one(way: &Way, socket: &Socket, notes: &All, restored: &mut Restored) -> io::Result<()> {
    let note = notes.of(socket.cookie);
    if note.map_or(0, |note| note.found) == socket.bytes {
        return Ok(());
    }
    if let Some(note) = note.filter(|note| note.set == socket.bytes) {
        restored.restored += usize::from(socket.set(way, note.found)?);
        return Ok(());
    }
    let address = if note.is_none() { socket.address() } else { None };
    if let Some(listener) = address.and_then(|at| notes.listener(socket.bytes, &at)) {
        restored.accepted += usize::from(socket.set(way, listener.found)?);
        return Ok(());
    }
    let was_set_to = note.map(|note| note.set);
    restored.left_alone.push(Left { socket: socket.name(), min_bytes: socket.bytes, was_set_to });
    Ok(())
}
