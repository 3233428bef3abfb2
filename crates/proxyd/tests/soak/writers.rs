//! Clients that write. Each owned key has one, which knows what was acknowledged.

use std::io;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use crate::content::{Object, path};
use crate::model::{State, Ticket};
use crate::random::Random;
use crate::storm::{OWNED, Shared, Trouble, WRITERS};
use crate::wire::Wire;

/// The longest pause within a request, in milliseconds.
const PAUSE_MS: usize = 300;

/// One of the writers.
pub struct Writer {
    number: usize,
    /// Kept as long as it lives.
    wire: Option<Wire>,
}

impl Writer {
    pub fn new(number: usize) -> Writer {
        Writer { number, wire: None }
    }

    /// One change.
    pub fn turn(
        &mut self,
        shared: &Shared,
        random: &mut Random,
    ) -> (&'static str, Result<(), Trouble>) {
        let keys = usize::from(shared.model.keys());
        let owned = random.below(OWNED / WRITERS) * WRITERS + self.number;
        let (part, key) = match random.below(20) {
            0..=2 => ("PUT by all", OWNED + random.below(keys - OWNED)),
            3..=4 => ("DELETE", owned),
            5..=8 => ("PUT in chunks", owned),
            9..=10 => ("PUT when asked to go on", owned),
            11 => ("PUT broken off", owned),
            12..=14 => ("PUT in two parts", owned),
            _ => ("PUT", owned),
        };
        let mut wire = match self.wire.take() {
            Some(wire) => wire,
            None => match shared.connect(random) {
                Ok(wire) => wire,
                Err(trouble) => return (part, Err(trouble)),
            },
        };
        let result = match part {
            "DELETE" => delete(shared, &mut wire, key as u16),
            "PUT broken off" => {
                return (part, broken_off(shared, random, wire, key as u16));
            }
            _ => put(shared, random, &mut wire, key as u16, part),
        };
        let result = result.map(|kept| self.wire = kept.then_some(wire));
        (part, result)
    }
}

/// The end of a change: acknowledged, or anybody's guess. True if the connection can be used again.
fn outcome(
    shared: &Shared,
    wire: &mut Wire,
    ticket: &Ticket,
    fine: impl FnOnce(u16) -> bool,
) -> Result<(bool, Option<String>), Trouble> {
    let head = match wire.head(false) {
        Ok(head) => head,
        Err(end) => {
            shared.model.uncertain(ticket);
            return Err(end.into());
        }
    };
    let class = usize::from(head.status / 100).clamp(1, 5) - 1;
    shared.seen.classes[class].fetch_add(1, Ordering::Relaxed);
    if fine(head.status) {
        shared.model.acknowledged(ticket);
        shared.seen.acknowledged.fetch_add(1, Ordering::Relaxed);
        let bytes = head.body_bytes()?;
        if bytes > 0 {
            wire.piece(bytes, bytes)?;
        }
        return Ok((!head.is_last(), head.value("etag").map(str::to_owned)));
    }
    shared.model.uncertain(ticket);
    match head.status {
        502..=504 => Err(Trouble::Failed(format!("{}", head.status))),
        status => Err(Trouble::Wrong(format!("{status} for a change that is as it should be"))),
    }
}

fn delete(shared: &Shared, wire: &mut Wire, key: u16) -> Result<bool, Trouble> {
    let before = shared.model.before(key);
    let ticket = shared.model.delete(key);
    let head = format!("DELETE {} HTTP/1.1\r\nHost: soak\r\n\r\n", path(key));
    if let Err(error) = wire.send(head.as_bytes()) {
        shared.model.uncertain(&ticket);
        return Err(error.into());
    }
    let mut status = 0;
    let done = outcome(shared, wire, &ticket, |found| {
        status = found;
        matches!(found, 204 | 404)
    })?;
    // A proxy may ask again where a backend died before it could answer, and find it done.
    if status == 404 && shared.calm && is_certain(shared, key, &before) {
        return Err(Trouble::Wrong(format!("DELETE {}: 404, and it was acknowledged", path(key))));
    }
    Ok(done.0)
}

/// Whether a key has to have some version: its only writer asks, and nothing else is under way.
fn is_certain(shared: &Shared, key: u16, before: &crate::model::Before) -> bool {
    let states = shared.model.allowed(key, before);
    // The last is the DELETE itself.
    !states.is_empty() && states.iter().filter(|state| **state == State::Absent).count() == 1
}

fn put(
    shared: &Shared,
    random: &mut Random,
    wire: &mut Wire,
    key: u16,
    part: &str,
) -> Result<bool, Trouble> {
    let (object, ticket) = shared.model.put(key);
    let sent = match part {
        "PUT in chunks" => wire.send(&in_chunks(object, random)),
        "PUT in two parts" => {
            let all = with_length_or_chunks(object, random);
            send_in_two_parts(shared, wire, random, &all)
        }
        "PUT when asked to go on" => {
            let head = head(object, &format!("Content-Length: {}", object.size()), true);
            wire.send(head.as_bytes())
        }
        _ => wire.send(&with_length(object)),
    };
    // Who doesn't take all of it may still have answered.
    if sent.is_ok() && part == "PUT when asked to go on" {
        match wire.head(true) {
            Ok(head) if head.status == 100 => {
                let _ = wire.send(&object.bytes());
            }
            // The final answer, without the body: nothing was stored.
            Ok(head) => return Err(Trouble::Failed(format!("{} at once", head.status))),
            Err(end) => {
                shared.model.uncertain(&ticket);
                return Err(end.into());
            }
        }
    }
    let (kept, tag) = outcome(shared, wire, &ticket, |status| matches!(status, 201 | 204))?;
    shared.model.tagged(object, &tag.unwrap_or_default()).map_err(Trouble::Wrong)?;
    Ok(kept)
}

fn head(object: Object, length: &str, expect: bool) -> String {
    let expect = if expect { "Expect: 100-continue\r\n" } else { "" };
    format!("PUT {} HTTP/1.1\r\nHost: soak\r\n{length}\r\n{expect}\r\n", path(object.key))
}

fn with_length(object: Object) -> Vec<u8> {
    let head = head(object, &format!("Content-Length: {}", object.size()), false);
    [head.into_bytes(), object.bytes()].concat()
}

fn with_length_or_chunks(object: Object, random: &mut Random) -> Vec<u8> {
    match random.once_in(2) {
        true => in_chunks(object, random),
        false => with_length(object),
    }
}

/// A request whose second part comes later: meanwhile a backend may die.
fn send_in_two_parts(
    shared: &Shared,
    wire: &mut Wire,
    random: &mut Random,
    all: &[u8],
) -> io::Result<()> {
    let cut = match random.once_in(4) {
        true => random.below(all.len()),
        false => shared.seen.splits.next(framing_bytes(all)),
    };
    wire.send(&all[..cut])?;
    thread::sleep(Duration::from_millis(random.below(PAUSE_MS) as u64));
    wire.send(&all[cut..])
}

/// The bytes of the head, and of the line of the first chunk's size if there are chunks.
fn framing_bytes(all: &[u8]) -> usize {
    let behind = |end: &[u8], from: usize| {
        let at = all[from..].windows(end.len()).position(|bytes| bytes == end);
        from + at.map_or(0, |at| at + end.len())
    };
    let head = behind(b"\r\n\r\n", 0);
    let is_chunked = all[..head].windows(8).any(|bytes| bytes == b"chunked\r");
    if is_chunked { behind(b"\r\n", head) } else { head }
}

fn in_chunks(object: Object, random: &mut Random) -> Vec<u8> {
    let mut all = head(object, "Transfer-Encoding: chunked", false).into_bytes();
    let bytes = object.bytes();
    let mut left = &bytes[..];
    while !left.is_empty() {
        let size = random.between(1, 80_000).min(left.len());
        all.extend_from_slice(format!("{size:x};e=1\r\n").as_bytes());
        all.extend_from_slice(&left[..size]);
        all.extend_from_slice(b"\r\n");
        left = &left[size..];
    }
    all.extend_from_slice(b"0\r\n\r\n");
    all
}

/// A PUT whose end never comes: whatever there was stays.
fn broken_off(
    shared: &Shared,
    random: &mut Random,
    mut wire: Wire,
    key: u16,
) -> Result<(), Trouble> {
    let object = shared.model.never(key);
    let all = with_length_or_chunks(object, random);
    // The last bytes of a chunked body are its end, not its content.
    let part = random.below(all.len() - 2);
    let _ = wire.send(&all[..part]);
    match random.below(3) {
        0 => wire.reset(),
        1 => {
            // The daemons see an end where there must be none; at most an error is answered.
            wire.half_close();
            let _ = wire.rest();
        }
        _ => {}
    }
    Ok(())
}
