//! Clients that behave, and look at every byte.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::content::{Object, TELLING, path, whose};
use crate::model::{Before, State};
use crate::random::Random;
use crate::storm::{Shared, Trouble};
use crate::wire::{Head, Wire};

/// How fast an answer is read.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    pub piece: usize,
    pub pause: Duration,
    /// Bytes of the body after which the client has enough.
    pub enough: usize,
}

/// The fastest pace, to the end.
pub const FAST: Pace = Pace { piece: 1 << 20, pause: Duration::ZERO, enough: usize::MAX };

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Whole,
    Part(Range<usize>),
    Head,
    /// Only if it isn't the version with that tag.
    Unless(String),
    List,
}

/// A request that was sent, and what its answer may be.
#[derive(Debug)]
pub struct Asked {
    key: u16,
    what: What,
    before: Before,
}

fn wrong<T>(what: impl Into<String>) -> Result<T, Trouble> {
    Err(Trouble::Wrong(what.into()))
}

impl Asked {
    /// A GET of all of it.
    pub fn whole(shared: &Shared, key: u16) -> Asked {
        Asked { key, what: What::Whole, before: shared.model.before(key) }
    }

    /// Some request.
    pub fn any(shared: &Shared, random: &mut Random) -> Asked {
        let key = random.below(usize::from(shared.model.keys())) as u16;
        let what = match random.below(16) {
            0..=8 => What::Whole,
            9..=12 => {
                let start = *random.pick(&[0, 1, 16, 1_000, 16_384, 65_535, 90_001, 250_000]);
                What::Part(start..start + *random.pick(&[1, 60, 5_000, 65_536, 2_000_000]))
            }
            13 => What::Head,
            14 => shared.model.last_tag(key).map_or(What::Whole, What::Unless),
            _ => What::List,
        };
        Asked { key, what, before: shared.model.before(key) }
    }

    /// Its bytes.
    pub fn request(&self) -> String {
        let (method, path, more) = match &self.what {
            What::Whole => ("GET", path(self.key), String::new()),
            What::Part(part) => {
                let range = format!("Range: bytes={}-{}\r\n", part.start, part.end - 1);
                ("GET", path(self.key), range)
            }
            What::Head => ("HEAD", path(self.key), String::new()),
            What::Unless(tag) => ("GET", path(self.key), format!("If-None-Match: {tag}\r\n")),
            What::List => ("GET", "/?prefix=soak/&limit=10".to_owned(), String::new()),
        };
        format!("{method} {path} HTTP/1.1\r\nHost: soak\r\n{more}\r\n")
    }

    /// Takes the answer. True if the connection can be used again.
    pub fn answer(&self, shared: &Shared, wire: &mut Wire, pace: &Pace) -> Result<bool, Trouble> {
        let head = wire.head(false)?;
        let class = usize::from(head.status / 100).clamp(1, 5) - 1;
        shared.seen.classes[class].fetch_add(1, Ordering::Relaxed);
        match (head.status, &self.what) {
            (200, What::List) => list(wire, &head)?,
            (200, What::Head) => self.head_only(shared, &head)?,
            (200, What::Whole | What::Unless(_)) | (206, What::Part(_)) => {
                if !self.body(shared, wire, &head, pace)? {
                    return Ok(false);
                }
            }
            (304, What::Unless(tag)) => {
                if head.value("etag") != Some(tag.as_str()) {
                    return wrong(format!("304 for {tag}, with the tag {:?}", head.value("etag")));
                }
            }
            (404, what) if *what != What::List => {
                if *what != What::Head {
                    error_body(wire, &head)?;
                }
                self.check(shared, State::Absent)?;
            }
            (416, What::Part(part)) => {
                error_body(wire, &head)?;
                self.unsatisfiable(shared, part)?;
            }
            (502..=504, what) => {
                let text = match what {
                    What::Head => String::new(),
                    _ => error_body(wire, &head)?,
                };
                return Err(Trouble::Failed(format!("{}: {text}", head.status)));
            }
            (status, what) => {
                return wrong(format!("{status} for {what:?} of {}", path(self.key)));
            }
        }
        Ok(!head.is_last())
    }

    fn check(&self, shared: &Shared, state: State) -> Result<(), Trouble> {
        let checked = shared.model.check(self.key, &self.before, state);
        checked.map_err(|why| Trouble::Wrong(format!("{}: {why}", path(self.key))))
    }

    fn sizes(&self, shared: &Shared) -> Vec<usize> {
        let states = shared.model.allowed(self.key, &self.before);
        let size = |state: &State| match state {
            State::Version(version) => Some(Object { key: self.key, version: *version }.size()),
            State::Absent => None,
        };
        states.iter().filter_map(size).collect()
    }

    fn head_only(&self, shared: &Shared, head: &Head) -> Result<(), Trouble> {
        let (bytes, sizes) = (head.body_bytes()?, self.sizes(shared));
        match sizes.contains(&bytes) {
            true => Ok(()),
            false => wrong(format!("HEAD says {bytes} bytes, and it must be one of {sizes:?}")),
        }
    }

    fn unsatisfiable(&self, shared: &Shared, part: &Range<usize>) -> Result<(), Trouble> {
        match self.sizes(shared).iter().any(|size| *size <= part.start) {
            true => Ok(()),
            false => wrong(format!("416 for {part:?}, and every version has more")),
        }
    }

    /// Where in the object the body begins, and how many bytes the object has.
    fn place(&self, head: &Head, bytes: usize) -> Result<(usize, usize), Trouble> {
        let What::Part(part) = &self.what else { return Ok((0, bytes)) };
        let value = head.value("content-range").unwrap_or_default();
        let parsed = value.strip_prefix("bytes ").and_then(|rest| {
            let (range, total) = rest.split_once('/')?;
            let (first, last) = range.split_once('-')?;
            Some((first.parse().ok()?, last.parse::<usize>().ok()?, total.parse().ok()?))
        });
        match parsed {
            Some((first, last, total))
                if first == part.start
                    && last + 1 == part.end.min(total)
                    && last + 1 - first == bytes =>
            {
                Ok((first, total))
            }
            _ => wrong(format!("{part:?} was asked for, and {value:?} came, {bytes} bytes")),
        }
    }

    /// Compares the body; false if the client had enough before its end.
    fn body(
        &self,
        shared: &Shared,
        wire: &mut Wire,
        head: &Head,
        pace: &Pace,
    ) -> Result<bool, Trouble> {
        let bytes = head.body_bytes()?;
        let (start, total) = self.place(head, bytes)?;
        let first = wire.piece(TELLING.min(bytes), bytes.min(pace.piece.max(TELLING)))?;
        let Some(object) = self.whose(shared, head, start, total, &first)? else {
            return Ok(true);
        };
        let (mut at, mut piece, mut scratch) = (0, first, Vec::new());
        loop {
            object.check(start + at, &piece, &mut scratch).map_err(Trouble::Wrong)?;
            at += piece.len();
            shared.seen.compared_bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
            if at == bytes {
                shared.seen.whole.fetch_add(1, Ordering::Relaxed);
                return Ok(true);
            }
            let dawdles = !pace.pause.is_zero();
            if at >= pace.enough || (dawdles && shared.is_over()) {
                return Ok(false);
            }
            shared.pause(pace.pause);
            piece = wire.piece(1, pace.piece.min(bytes - at))?;
        }
    }

    /// Which version this is, if it is one that may be there. `None` if the body is too short to
    /// tell, and was compared with all that it could be.
    fn whose(
        &self,
        shared: &Shared,
        head: &Head,
        start: usize,
        total: usize,
        first: &[u8],
    ) -> Result<Option<Object>, Trouble> {
        if first.len() < TELLING {
            let could_be = |state: &State| {
                let State::Version(version) = *state else { return false };
                let object = Object { key: self.key, version };
                object.size() == total && object.check(start, first, &mut Vec::new()).is_ok()
            };
            let allowed = shared.model.allowed(self.key, &self.before);
            return match allowed.iter().any(could_be) {
                true => Ok(None),
                false => wrong(format!("of {}: there {}", path(self.key), whose(first, 0))),
            };
        }
        let Some(object) = Object::told_by(start, first).filter(|found| found.key == self.key)
        else {
            let there = whose(first, 0);
            return wrong(format!("byte {start} of {} was due: there {there}", path(self.key)));
        };
        self.check(shared, State::Version(object.version))?;
        if object.size() != total {
            return wrong(format!("{object} has {total} bytes instead of {}", object.size()));
        }
        let tag = head.value("etag").unwrap_or_default();
        shared.model.tagged(object, tag).map_err(Trouble::Wrong)?;
        Ok(Some(object))
    }
}

/// The text of an error.
fn error_body(wire: &mut Wire, head: &Head) -> Result<String, Trouble> {
    let bytes = head.body_bytes()?;
    if bytes == 0 {
        return Ok(String::new());
    }
    let body = wire.piece(bytes, bytes)?;
    Ok(body.escape_ascii().to_string())
}

fn list(wire: &mut Wire, head: &Head) -> Result<(), Trouble> {
    let bytes = head.body_bytes()?;
    let body = wire.piece(bytes, bytes)?;
    match body.starts_with(b"{\"objects\":[") && body.ends_with(b"}\n") {
        true => Ok(()),
        false => wrong(format!("a list was due: there {}", whose(&body, 0))),
    }
}

/// One request after the other.
pub fn steady(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = shared.connect(random)?;
    for _ in 0..random.between(1, 30) {
        let asked = Asked::any(shared, random);
        wire.send(asked.request().as_bytes())?;
        if shared.is_over() || !asked.answer(shared, &mut wire, &FAST)? {
            break;
        }
    }
    Ok(())
}

/// Several requests at once, answered in order.
pub fn pipelined(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = shared.connect(random)?;
    let asked = several(shared, random, &mut wire)?;
    answers(shared, &mut wire, &asked)
}

fn several(shared: &Shared, random: &mut Random, wire: &mut Wire) -> Result<Vec<Asked>, Trouble> {
    let asked: Vec<Asked> = (0..random.between(2, 9)).map(|_| Asked::any(shared, random)).collect();
    let all: String = asked.iter().map(Asked::request).collect();
    wire.send(all.as_bytes())?;
    Ok(asked)
}

fn answers(shared: &Shared, wire: &mut Wire, asked: &[Asked]) -> Result<(), Trouble> {
    for one in asked {
        if !one.answer(shared, wire, &FAST)? {
            break;
        }
    }
    Ok(())
}

/// Says that no more requests follow, and is answered all the same.
pub fn half_closed(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = shared.connect(random)?;
    let asked = several(shared, random, &mut wire)?;
    wire.half_close();
    answers(shared, &mut wire, &asked)
}

/// Reads in crumbs.
pub fn slow(shared: &Shared, random: &mut Random) -> Result<(), Trouble> {
    let mut wire = shared.connect(random)?;
    wire.narrow();
    let key = random.below(usize::from(shared.model.keys())) as u16;
    let asked = Asked::whole(shared, key);
    wire.send(asked.request().as_bytes())?;
    let piece = random.between(500, 20_000);
    let pause = Duration::from_millis(random.between(1, 20) as u64);
    asked.answer(shared, &mut wire, &Pace { piece, pause, ..FAST })?;
    Ok(())
}
