//! storaged behind proxyd, and clients that behave and others that don't: they vanish, reset, close
//! one half, read in crumbs or not at all, drip their heads, send bytes that are no request, and
//! pipeline; backends are killed and come back, and the proxy is reloaded, all the time.
//!
//! Every 16 bytes of an object say which version of which object they are, and where in it
//! (`content.rs`); who writes knows what was acknowledged (`model.rs`). A byte of another client's
//! answer, an acknowledged object that is lost, and a torn one are therefore noticed. Where nothing
//! is killed no client may fail. At rest both daemons may hold no more descriptors, pipes and
//! memory than before (`leaks.rs`), and proxyd's metrics must agree.
//!
//! `make soak` runs ten minutes; `SOAK_SECONDS` and `SOAK_SEED` set how long, and from which seed.

mod abuse;
mod content;
mod daemons;
mod double;
mod leaks;
mod model;
mod random;
mod readers;
mod soak;
mod storm;
mod wire;
mod writers;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use proxyd::config::{Config, Timeouts};
use proxyd::net::{Address, Mode};
use proxyd::policy::Edge;
use proxyd::server::Server;

use double::{Double, Fault};
use model::Model;
use storm::{OWNED, SHARED, Seen, Storm};
use wire::Target;

/// More than any machine needs for some hundred objects.
const PATIENCE: Duration = Duration::from_secs(120);
/// What the short one takes.
const SHORT_SECONDS: u64 = 10;
const LONG_SECONDS: u64 = 600;

fn number(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    Some(value.parse().unwrap_or_else(|_| panic!("{name}={value:?} is no number")))
}

fn soak(seconds: u64, seed: u64) {
    let seconds = number("SOAK_SECONDS").unwrap_or(seconds);
    let seed = number("SOAK_SEED").unwrap_or(seed);
    match soak::run(seconds, seed) {
        Ok(done) => eprintln!("soak: seed {seed}, {seconds} s: {done}"),
        Err(why) => panic!("soak: seed {seed}: {why}"),
    }
}

#[test]
fn both_daemons_stand_some_seconds_of_it() {
    soak(SHORT_SECONDS, 1);
}

#[test]
#[ignore = "ten minutes: make soak"]
fn both_daemons_stand_ten_minutes_of_it() {
    soak(LONG_SECONDS, u64::from(std::process::id()));
}

/// Runs the clients of the soak before a store that does wrong, until they notice, or have seen
/// this number of objects. Returns what they say.
fn before(fault: Fault, objects: u64) -> Result<u64, String> {
    let double = Double::new(fault);
    let config = Config {
        listen: vec!["tcp:127.0.0.1:0".parse().unwrap()],
        backends: vec![Address::Unix(double.socket.clone()).into()],
        workers: 2,
        mode: Mode::Copy,
        edge: Edge { lists: Some(true), ..Edge::default() },
        timeouts: Timeouts { header_ms: 2_000, ..Timeouts::default() },
        ..Config::default()
    };
    let server = Server::start(config).unwrap();
    let Address::Tcp(address) = server.addresses().plain[0] else { panic!("not TCP") };
    let target = Target { tcp: Some(address), ..Target::default() };
    let (model, seen) = (Arc::new(Model::new(OWNED, SHARED)), Arc::<Seen>::default());
    let storm = Storm::begin(&target, &model, &seen, 7, 6, true);
    let end = Instant::now() + PATIENCE;
    let whole = || seen.whole.load(Ordering::Relaxed);
    while Instant::now() < end && !storm.is_over() && whole() < objects {
        std::thread::sleep(Duration::from_millis(5));
    }
    storm.end().map(|()| whole())
}

/// Without it the next test would show nothing.
#[test]
fn a_store_that_does_right_is_found_to_do_right() {
    let whole = before(Fault::Nothing, 300).unwrap();
    assert!(whole >= 300, "{whole}");
}

/// What a client says of an object that may not be there: which it is depends on what it asked for.
const MAY_NOT_BE_THERE: &[&str] = &[
    "lost: ",
    "torn: ",
    "404, and it was acknowledged",
    "HEAD says ",
    "416 for",
    " bytes instead of ",
    ": there ",
];

#[test]
fn whatever_a_store_does_wrong_is_noticed() {
    for (fault, words) in [
        (Fault::AnotherObject, MAY_NOT_BE_THERE),
        (Fault::AnotherEnd, &[" is wrong: there "]),
        (Fault::Forgets, MAY_NOT_BE_THERE),
        (Fault::KeepsTorn, MAY_NOT_BE_THERE),
        (Fault::Shifts, &[" is wrong: there "]),
        (Fault::CutsOff, &["nothing was killed: "]),
    ] {
        let why = before(fault, u64::MAX).expect_err("it is noticed");
        eprintln!("{fault:?}: {why}");
        assert!(words.iter().any(|word| why.contains(word)), "{fault:?}: {why}");
    }
}
