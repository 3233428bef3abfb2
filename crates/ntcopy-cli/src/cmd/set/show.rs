//! What each socket of a program has: `ntcopy set --show`.

use std::ffi::c_int;

use ntcopy_inflight::{Pid, Process};
use serde::Serialize;

use super::notes::All;
use super::refusal;
use super::sockets::Looks;
use super::text::from;
use super::tree::Tree;
use super::way::Way;
use crate::say;

#[derive(Serialize)]
pub struct ShownSocket {
    pid: Pid,
    socket: String,
    family: &'static str,
    listening: bool,
    min_bytes: c_int,
    /// What was there before `ntcopy set`, if that has set it.
    found: Option<c_int>,
}

/// Sockets of kinds that can be hinted.
pub fn look(way: &Way, tree: &mut Tree, notes: &All) -> (Vec<ShownSocket>, Looks) {
    tree.look();
    let mut looks = Looks::default();
    let mut sockets = Vec::new();
    for socket in looks.new_sockets(way, tree) {
        let Some(kind) = socket.kind.filter(|kind| way.takes(*kind)) else { continue };
        let note = notes.of(socket.cookie).filter(|note| note.set == socket.bytes);
        sockets.push(ShownSocket {
            pid: socket.pid,
            socket: socket.name(),
            family: kind.family.name(),
            listening: socket.listens,
            min_bytes: socket.bytes,
            found: note.map(|note| note.found),
        });
    }
    (sockets, looks)
}

pub fn text(root: &Process, way: &Way, sockets: &[ShownSocket], looks: &Looks) -> String {
    let hinted = sockets.iter().filter(|socket| socket.min_bytes != 0).count();
    let all = sockets.len();
    let mut lines = vec![format!(
        "{}, by {}: {hinted} of {all} sockets are hinted",
        refusal::named(root),
        way.name()
    )];
    lines.extend(sockets.iter().map(|one| {
        let listens = if one.listening { ", listening" } else { "" };
        let found = one.found.map(|found| format!("; before `ntcopy set`: {}", from(found)));
        format!("{}{listens}: {}{}", one.socket, from(one.min_bytes), found.unwrap_or_default())
    }));
    lines.extend(looks.refused.values().map(|why| format!("could not look into {why}")));
    say::sentences(&lines)
}
