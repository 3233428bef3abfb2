//! Many clients at once, and what all of them saw.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::model::Model;
use crate::random::Random;
use crate::wire::{End, Target, Wire};
use crate::{abuse, readers, writers};

/// Keys with a writer of their own, and keys that all write.
pub const OWNED: usize = 18;
pub const SHARED: usize = 2;
/// Threads that write; each has its part of the owned keys.
pub const WRITERS: usize = 3;

/// How something failed that should have worked.
#[derive(Debug)]
pub enum Trouble {
    /// In a way that is allowed while a backend is away: an answer of 502 to 504, or a connection
    /// that ends.
    Failed(String),
    /// In a way that is never allowed.
    Wrong(String),
}

impl From<End> for Trouble {
    fn from(end: End) -> Trouble {
        match end {
            End::Cut(place) => Trouble::Failed(format!("cut off {place}")),
            End::Hung => Trouble::Wrong("it hangs: neither an answer nor an end".to_owned()),
            End::Nonsense(what) => Trouble::Wrong(what),
        }
    }
}

impl From<std::io::Error> for Trouble {
    fn from(error: std::io::Error) -> Trouble {
        Trouble::Failed(error.to_string())
    }
}

/// What the clients saw, all together.
#[derive(Debug, Default)]
pub struct Seen {
    /// Connections that were tried, and those of them that did not come about.
    pub connections: AtomicU64,
    pub unconnected: AtomicU64,
    /// Final answers by the first digit of their status, 1 to 5.
    pub classes: [AtomicU64; 5],
    /// Bytes of objects that were compared.
    pub compared_bytes: AtomicU64,
    /// Objects that came whole, and as they should be.
    pub whole: AtomicU64,
    /// Changes that were acknowledged.
    pub acknowledged: AtomicU64,
    /// What failed and was excused.
    pub failed: AtomicU64,
    /// Where requests came in two parts.
    pub splits: Splits,
    /// How often each part was played to its end.
    parts: Mutex<BTreeMap<&'static str, u64>>,
}

impl Seen {
    pub fn parts(&self) -> BTreeMap<&'static str, u64> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The places at which requests are split, in turn: behind each byte of their framing.
#[derive(Debug, Default)]
pub struct Splits {
    next: AtomicUsize,
    /// The most bytes of framing that a request had.
    most: AtomicUsize,
    seen: Mutex<BTreeSet<usize>>,
}

impl Splits {
    /// The next place in a request with this number of bytes of framing.
    pub fn next(&self, framing_bytes: usize) -> usize {
        self.most.fetch_max(framing_bytes, Ordering::Relaxed);
        let at = 1 + self.next.fetch_add(1, Ordering::Relaxed) % framing_bytes;
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(at);
        at
    }

    /// At how many places of how many, and how often.
    pub fn summary(&self) -> String {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).len();
        let (most, all) = (self.most.load(Ordering::Relaxed), self.next.load(Ordering::Relaxed));
        format!("{all} requests split at {seen} of {most} bytes of their framing")
    }
}

/// What the clients of a storm share.
#[derive(Debug)]
pub struct Shared {
    pub target: Target,
    pub model: Arc<Model>,
    pub seen: Arc<Seen>,
    /// Whether nothing is killed, so that whoever behaves must be served.
    pub calm: bool,
    stop: AtomicBool,
    wrong: Mutex<Vec<String>>,
}

impl Shared {
    /// For one that looks by itself whether all is well.
    pub fn alone(target: &Target, model: &Arc<Model>, seen: &Arc<Seen>) -> Shared {
        Shared {
            target: target.clone(),
            model: Arc::clone(model),
            seen: Arc::clone(seen),
            calm: true,
            stop: AtomicBool::new(false),
            wrong: Mutex::default(),
        }
    }

    /// A connection of some kind.
    pub fn connect(&self, random: &mut Random) -> Result<Wire, Trouble> {
        self.seen.connections.fetch_add(1, Ordering::Relaxed);
        let wire = self.target.connect(random);
        if wire.is_err() {
            self.seen.unconnected.fetch_add(1, Ordering::Relaxed);
        }
        Ok(wire?)
    }

    pub fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Waits, or less where the storm ends.
    pub fn pause(&self, time: Duration) {
        let step = Duration::from_millis(20);
        let mut left = time;
        while !left.is_zero() && !self.is_over() {
            thread::sleep(left.min(step));
            left = left.saturating_sub(step);
        }
    }

    fn wrong(&self, what: String) {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(what);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Plays a part over and over.
    fn play(&self, who: &str, mut part: impl FnMut() -> (&'static str, Result<(), Trouble>)) {
        while !self.is_over() {
            let Ok((name, result)) = catch_unwind(AssertUnwindSafe(&mut part)) else {
                return self.wrong(format!("{who}: a panic of the client itself"));
            };
            match result {
                Ok(()) => {
                    let mut parts = self.seen.parts.lock().unwrap_or_else(PoisonError::into_inner);
                    *parts.entry(name).or_default() += 1;
                }
                Err(Trouble::Failed(_)) if !self.calm => {
                    self.seen.failed.fetch_add(1, Ordering::Relaxed);
                    // Backends are away: no need to ask for the same answer as fast as can be.
                    self.pause(Duration::from_millis(5));
                }
                Err(Trouble::Failed(what)) => {
                    return self.wrong(format!("{who}, {name}, nothing was killed: {what}"));
                }
                Err(Trouble::Wrong(what)) => return self.wrong(format!("{who}, {name}: {what}")),
            }
        }
    }
}

/// Clients that run until they are stopped, or one of them saw something wrong.
#[derive(Debug)]
pub struct Storm {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Storm {
    /// Begins: `clients` that read and misbehave, and the writers.
    pub fn begin(
        target: &Target,
        model: &Arc<Model>,
        seen: &Arc<Seen>,
        seed: u64,
        clients: usize,
        calm: bool,
    ) -> Storm {
        let shared = Arc::new(Shared { calm, ..Shared::alone(target, model, seen) });
        let mut threads = Vec::new();
        for number in 0..clients + WRITERS {
            let shared = Arc::clone(&shared);
            let mut random = Random::new(seed, number as u64);
            threads.push(thread::spawn(move || {
                if number < WRITERS {
                    let mut writer = writers::Writer::new(number);
                    let who = format!("writer {number}");
                    shared.play(&who, || writer.turn(&shared, &mut random));
                } else {
                    let who = format!("client {number}");
                    shared.play(&who, || turn(&shared, &mut random));
                }
            }));
        }
        Storm { shared, threads }
    }

    /// Whether one of them saw something wrong.
    pub fn is_over(&self) -> bool {
        self.shared.is_over()
    }

    /// Tells them to stop, and waits for them.
    ///
    /// # Errors
    ///
    /// What they saw that was wrong.
    pub fn end(self) -> Result<(), String> {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| "a client's thread ended early".to_owned())?;
        }
        let wrong = self.shared.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }
}

/// What a client does next. Most behave, so that there is something to be disturbed.
fn turn(shared: &Shared, random: &mut Random) -> (&'static str, Result<(), Trouble>) {
    match random.below(24) {
        0..=9 => ("steady", readers::steady(shared, random)),
        10..=12 => ("pipelined", readers::pipelined(shared, random)),
        13..=14 => ("half-closed", readers::half_closed(shared, random)),
        15 => ("slow", readers::slow(shared, random)),
        16..=17 => ("gone in an answer", abuse::gone_in_an_answer(shared, random)),
        18..=19 => ("gone in a request", abuse::gone_in_a_request(shared, random)),
        20 => ("deaf", abuse::deaf(shared, random)),
        21 => ("slow-loris", abuse::slow_loris(shared, random)),
        _ => ("bad bytes", abuse::bad_bytes(shared, random)),
    }
}
