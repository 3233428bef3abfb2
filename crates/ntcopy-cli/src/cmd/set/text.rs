//! What `ntcopy set` prints.

use std::collections::BTreeMap;

use ntcopy::recommended::Family;
use ntcopy_inflight::Process;
use ntcopy_record::units::{Bytes, count};

use super::off::Restored;
use super::refusal;
use super::setter::{Done, Numbers, Setter};
use super::sockets::Looks;
use super::way::Way;
use crate::say;

/// `from 256KiB on`, or that none is hinted.
pub fn from(bytes: i32) -> String {
    match bytes {
        0 => "none of its sends".to_owned(),
        i32::MAX => "those with MSG_NTCOPY".to_owned(),
        bytes => format!("from {} on", Bytes(u64::from(bytes.cast_unsigned())).argument()),
    }
}

/// What was done so far, whole.
pub fn done(root: &Process, setter: &Setter, is_watch: bool) -> String {
    let Setter { way, numbers, done, looks, .. } = setter;
    let mut lines = vec![format!(
        "{}, by {}: {}",
        refusal::named(root),
        way.name(),
        if done.set.is_empty() { "no socket was set".to_owned() } else { sockets(done, *numbers) }
    )];
    if done.had > 0 {
        lines.push(format!("{} had that number already", count(done.had, "socket")));
    }
    if !done.other_families.is_empty() {
        lines.push(format!("left alone: {}: --family", families(&done.other_families)));
    }
    if done.not_taken > 0 {
        let sockets = count(done.not_taken, "socket");
        lines.push(format!("left alone: {sockets}: the module takes unix streams alone"));
    }
    lines.extend(
        done.failed
            .iter()
            .map(|(why, sockets)| format!("could not set {}: {why}", count(*sockets, "socket"))),
    );
    lines.extend(looks.refused.values().map(|why| format!("could not look into {why}")));
    if !is_watch && done.sockets() > 0 {
        lines.push(
            "not covered: sockets that it makes by connect() or receives from now on, which \
             --watch sets"
                .to_owned(),
        );
    }
    say::sentences(&lines)
}

fn families(sockets: &BTreeMap<Family, usize>) -> String {
    let all: Vec<String> =
        sockets.iter().map(|(family, count)| format!("{count} {}", family.name())).collect();
    all.join(", ")
}

/// `2 listening and 5 other sockets set (5 tcp, 2 unix), streams from 256KiB on`.
pub fn sockets(done: &Done, numbers: Numbers) -> String {
    let (all, listening) = (done.sockets(), done.listeners());
    let mut by_family: BTreeMap<Family, usize> = BTreeMap::new();
    for ((family, _), count) in &done.set {
        *by_family.entry(*family).or_default() += count;
    }
    let numbers = match numbers.datagram {
        Some(datagram) if datagram != numbers.stream => {
            format!("streams {}, datagrams {}", from(numbers.stream), from(datagram))
        }
        _ => from(numbers.stream),
    };
    let of_them = if listening == 0 { String::new() } else { format!(", {listening} listening") };
    format!("{} set ({}{of_them}), {numbers}", count(all, "socket"), families(&by_family))
}

/// What has been done by now, in a line.
pub fn line(setter: &Setter) -> String {
    format!("{}\n", sockets(&setter.done, setter.numbers))
}

pub fn restored(root: &Process, way: &Way, restored: &Restored, looks: &Looks) -> String {
    let mut lines = vec![format!(
        "{}, by {}: {} as found before, {} as found on the listener",
        refusal::named(root),
        way.name(),
        count(restored.restored, "socket"),
        count(restored.accepted, "connection"),
    )];
    lines.extend(restored.left_alone.iter().map(|left| {
        let why = match left.was_set_to {
            Some(_) => "somebody else has set it since",
            None => "not set by `ntcopy set`",
        };
        format!("left alone: {}, {}: {why}", left.socket, from(left.min_bytes))
    }));
    lines.extend(restored.failed.iter().map(|why| format!("could not set {why}")));
    lines.extend(looks.refused.values().map(|why| format!("could not look into {why}")));
    if let Way::Module(_) = way {
        lines.push(
            "sends are plain from now on; the module can be unloaded when these sockets are closed"
                .to_owned(),
        );
    }
    say::sentences(&lines)
}
