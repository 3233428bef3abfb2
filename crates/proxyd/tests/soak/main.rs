//! storaged behind proxyd, and clients that behave and others that don't: they vanish, reset, ask
//! and do not read, drip their heads, send bytes that are no request, and pipeline; the backend is
//! killed and comes back all the time.
//!
//! Every 16 bytes of an object say which version of which object they are, and where in it; who
//! writes knows what was acknowledged, and what was there before (`model.rs`). A byte of another
//! client's answer, an acknowledged object that is lost, a torn one, and a change that was made twice
//! are therefore noticed. Where nothing is killed no client may fail. At rest both daemons may hold no
//! more descriptors and memory than before, and proxyd's metrics must agree.
//!
//! `make soak` runs ten minutes; `SOAK_SECONDS` and `SOAK_SEED` set how long, and from which seed.

mod clients;
mod daemons;
mod model;
#[path = "../over_tls/mod.rs"]
mod over_tls;
#[path = "../../../httpd/tests/peer/mod.rs"]
mod peer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clients::{Shared, WRITERS};
use daemons::Daemons;
use fastrand::Rng;
use model::Model;

/// One cycle of storms, at most.
const CYCLE: Duration = Duration::from_secs(60);
/// Clients that read and misbehave.
const CLIENTS: usize = 16;
/// Everything that a daemon lets go of by itself, it has let go of by then.
const REST: Duration = Duration::from_secs(30);
/// What the anonymous memory of a daemon at rest may grow by: fragments of what was freed. A leak
/// rises with every exchange, of which ten minutes have some 350,000.
const GROWTH_BYTES_MAX: u64 = 8 << 20;
/// What proxyd and storaged may have more in descriptors: storaged keeps objects open.
const SPARE_DESCRIPTORS: [usize; 2] = [0, 150];

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text:?}")))
}

struct Soak {
    random: Rng,
    model: Arc<Model>,
    daemons: Daemons,
    done: Arc<AtomicU64>,
    kills: u64,
}

impl Soak {
    /// Clients for this long. Where nothing is killed, whoever behaves is served.
    fn storm(&mut self, time: Duration, calm: bool) {
        let shared = Arc::new(Shared {
            model: Arc::clone(&self.model),
            target: self.daemons.target.clone(),
            over: AtomicBool::new(false),
            done: Arc::clone(&self.done),
            calm,
        });
        let clients: Vec<_> = (0..WRITERS + CLIENTS)
            .map(|number| {
                let (shared, random) = (Arc::clone(&shared), self.random.fork());
                thread::spawn(move || clients::run(&shared, number, random))
            })
            .collect();
        let end = Instant::now() + time;
        while Instant::now() < end && clients.iter().all(|client| !client.is_finished()) {
            thread::sleep(Duration::from_millis(self.random.u64(50..450)));
            if !calm && self.random.u8(..3) == 0 {
                self.daemons.kill_storaged(Duration::from_millis(self.random.u64(..250)));
                self.kills += 1;
            }
        }
        shared.over.store(true, Ordering::SeqCst);
        let ended = |client: thread::JoinHandle<_>| {
            client.join().unwrap_or_else(|_| Err("a client panicked, see above".to_owned())).err()
        };
        let wrong: Vec<String> = clients.into_iter().filter_map(ended).collect();
        assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), self.daemons.logs());
    }

    /// What both hold, once they hold no more than `before`, at rest.
    fn rest(&self, before: Option<[(usize, u64); 2]>) -> [(usize, u64); 2] {
        let until = Instant::now() + REST;
        loop {
            let now = self.daemons.held();
            let is_less = |at: usize| {
                before.is_none_or(|before| {
                    now[at].0 <= before[at].0 + SPARE_DESCRIPTORS[at]
                        && now[at].1 <= before[at].1 + GROWTH_BYTES_MAX
                })
            };
            let open = self.daemons.metric("connections");
            if is_less(0) && is_less(1) && open <= 1 {
                return now;
            }
            assert!(Instant::now() < until, "at rest: {open} connections; {before:?}, now {now:?}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn check_metrics(&self) {
        let metric = |name| self.daemons.metric(name);
        let bytes = metric("request_body_bytes_total") + metric("response_body_bytes_total");
        assert_eq!(metric("spliced_bytes_total") + metric("copied_bytes_total"), bytes);
        assert!(metric("requests_total") >= self.done.load(Ordering::SeqCst));
        assert!(metric("backend_reuses_total") > 0 && metric("spliced_bytes_total") > 0);
    }
}

fn soak(seconds: u64, seed: u64) {
    let (seconds, seed) = (number("SOAK_SECONDS", seconds), number("SOAK_SEED", seed));
    eprintln!("soak of the daemons: seed {seed}, {seconds} s");
    let mut random = Rng::with_seed(seed);
    let daemons = Daemons::start(&mut random);
    let (model, done) = (Arc::new(Model::new()), Arc::default());
    let mut soak = Soak { random, model, daemons, done, kills: 0 };
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut first = None;
    while Instant::now() < end {
        let left = end.saturating_duration_since(Instant::now()).min(CYCLE);
        soak.storm(left.mul_f64(0.6), false);
        soak.storm(left.mul_f64(0.3), true);
        let held = soak.rest(first);
        eprintln!(
            "soak: at rest, descriptors and bytes: proxyd {:?}, storaged {:?}",
            held[0], held[1]
        );
        soak.check_metrics();
        first.get_or_insert(held);
    }
    let done = soak.done.load(Ordering::SeqCst);
    eprintln!("soak: {done} exchanges checked, storaged killed {} times", soak.kills);
    assert!(done > 20 * seconds, "too few to say anything: {done}");
    soak.daemons.stop();
}

#[test]
fn both_daemons_stand_some_seconds_of_it() {
    soak(10, 1);
}

#[test]
#[ignore = "ten minutes: make soak"]
fn both_daemons_stand_ten_minutes_of_it() {
    soak(600, u64::from(std::process::id()));
}
