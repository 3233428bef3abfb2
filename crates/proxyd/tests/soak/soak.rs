//! The whole: storms in which backends die all the time, storms in which no client may fail, and
//! rests between them, in which the daemons may hold no more than they did before.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::daemons::{
    OPEN_OBJECTS, PIPES, Place, Proxyd, Storaged, WORKERS, clean_up_when_told_to_end, free_port,
};
use crate::leaks::{Usage, metrics};
use crate::model::Model;
use crate::random::Random;
use crate::readers::{Asked, FAST};
use crate::storm::{OWNED, SHARED, Seen, Shared, Storm, Trouble};
use crate::wire::Target;

/// Clients that read and misbehave.
const CLIENTS: usize = 20;
/// One cycle of storms, at most.
const CYCLE: Duration = Duration::from_secs(60);
/// Everything that a daemon lets go of by itself, it has let go of by then.
const REST: Duration = Duration::from_secs(30);
/// Pipes for vmsplice that a worker of storaged keeps, at most.
const STORAGED_PIPES: usize = 32;
/// What storaged may hold more of after another storm: pipes and objects that it keeps on purpose.
const STORAGED_SPARE: [(&str, usize); 2] =
    [("pipe", 2 * WORKERS * STORAGED_PIPES), ("file", OPEN_OBJECTS)];
const PROGRESS: Duration = Duration::from_secs(5);

/// A soak under way.
struct Soak {
    random: Random,
    model: Arc<Model>,
    seen: Arc<Seen>,
    storaged: Option<Storaged>,
    proxyd: Proxyd,
    /// What proxyd held before anybody had come.
    proxyd_empty: Usage,
    /// What it held at its first rest.
    proxyd_first: Option<Usage>,
    port: std::net::SocketAddr,
    begun: Instant,
    told: Instant,
    kills: u64,
    reloads: u64,
    /// Goes last, after those who write into it.
    place: Place,
}

/// Soaks both daemons for `seconds`; what was done, in a sentence.
///
/// # Errors
///
/// What was wrong.
pub fn run(seconds: u64, seed: u64) -> Result<String, String> {
    eprintln!("soak of the daemons: seed {seed}, {seconds} s");
    let mut soak = Soak::begin(seed)?;
    let end = soak.begun + Duration::from_secs(seconds);
    while Instant::now() < end {
        let left = end.saturating_duration_since(Instant::now()).min(CYCLE);
        soak.killing_storm(left.mul_f64(0.5))?;
        soak.rest_of_proxyd()?;
        soak.calm_storm(left.mul_f64(0.15))?;
        let before = soak.rest_of_storaged()?;
        soak.calm_storm(left.mul_f64(0.15))?;
        let after = soak.rest_of_storaged()?;
        let mut more = before.leaks(&after, &STORAGED_SPARE);
        more.extend(before.growth(&after));
        if !more.is_empty() {
            let more = more.join("; ");
            return Err(format!("storaged, at rest, after a storm and another: {more}"));
        }
        let held = soak.rest_of_proxyd()?;
        eprintln!("soak: at rest: proxyd {held}; storaged {before}, then {after}");
    }
    soak.end()
}

impl Soak {
    fn begin(seed: u64) -> Result<Soak, String> {
        clean_up_when_told_to_end();
        let (place, mut random) = (Place::new(), Random::new(seed, u64::MAX));
        let port = free_port(&mut random);
        let storaged = Storaged::start(place.path(), port, &mut random)?;
        let proxyd = Proxyd::start(place.path(), &storaged)?;
        let proxyd_empty = Usage::of(proxyd.pid()).map_err(|error| error.to_string())?;
        let now = Instant::now();
        Ok(Soak {
            place,
            random,
            model: Arc::new(Model::new(OWNED, SHARED)),
            seen: Arc::default(),
            storaged: Some(storaged),
            proxyd,
            proxyd_empty,
            proxyd_first: None,
            port,
            begun: now,
            told: now,
            kills: 0,
            reloads: 0,
        })
    }

    fn storm(&mut self, calm: bool) -> Storm {
        let seed = self.random.next();
        Storm::begin(&self.proxyd.target, &self.model, &self.seen, seed, CLIENTS, calm)
    }

    fn in_ms(&mut self, least: usize, most: usize) -> Instant {
        Instant::now() + Duration::from_millis(self.random.between(least, most) as u64)
    }

    /// Backends die, and come back, and the proxy is reloaded, all the time.
    fn killing_storm(&mut self, time: Duration) -> Result<(), String> {
        let storm = self.storm(false);
        let end = Instant::now() + time;
        let (mut kill_at, mut reload_at) = (self.in_ms(100, 500), self.in_ms(50, 300));
        let mut result = Ok(());
        while Instant::now() < end && !storm.is_over() && result.is_ok() {
            if Instant::now() >= kill_at {
                result = self.kill_and_restart();
                kill_at = self.in_ms(200, 1_500);
            }
            if Instant::now() >= reload_at {
                self.reload();
                reload_at = self.in_ms(100, 700);
            }
            self.tell("killing");
            thread::sleep(Duration::from_millis(10));
        }
        storm.end().and(result).map_err(|why| self.explain(&why))
    }

    /// Nothing dies: whoever behaves is served.
    fn calm_storm(&mut self, time: Duration) -> Result<(), String> {
        self.wait_until_served()?;
        let storm = self.storm(true);
        let end = Instant::now() + time;
        let mut reload_at = self.in_ms(50, 300);
        while Instant::now() < end && !storm.is_over() {
            if Instant::now() >= reload_at {
                self.reload();
                reload_at = self.in_ms(100, 700);
            }
            self.tell("calm");
            thread::sleep(Duration::from_millis(10));
        }
        storm.end().map_err(|why| self.explain(&why))
    }

    fn reload(&mut self) {
        self.proxyd.reload(&mut self.random);
        self.reloads += 1;
    }

    fn kill_and_restart(&mut self) -> Result<(), String> {
        if let Some(storaged) = self.storaged.take() {
            storaged.kill();
            self.model.killed();
            self.kills += 1;
        }
        if self.random.once_in(2) {
            let pause = self.random.between(1, 250) as u64;
            thread::sleep(Duration::from_millis(pause));
        }
        let storaged = Storaged::start(self.place.path(), self.port, &mut self.random)?;
        let target = storaged.target();
        self.storaged = Some(storaged);
        // Some, at once, from the store itself: nothing acknowledged is lost, or torn.
        let keys: Vec<u16> =
            (0..4).map(|_| self.random.below(usize::from(self.model.keys())) as u16).collect();
        self.look(&target, &keys)
    }

    /// Looks at keys where they are: every one has to be there, and whole.
    fn look(&mut self, target: &Target, keys: &[u16]) -> Result<(), String> {
        let shared = Shared::alone(target, &self.model, &Arc::default());
        for key in keys {
            let asked = Asked::whole(&shared, *key);
            let looked = shared.connect(&mut self.random).and_then(|mut wire| {
                wire.send(asked.request().as_bytes())?;
                asked.answer(&shared, &mut wire, &FAST)
            });
            if let Err(Trouble::Failed(why) | Trouble::Wrong(why)) = looked {
                return Err(format!("of the store itself, after {} kills: {why}", self.kills));
            }
        }
        Ok(())
    }

    /// Waits until requests get through by every way there is: proxyd takes note of a backend's
    /// return by trying.
    fn wait_until_served(&mut self) -> Result<(), String> {
        let shared = Shared::alone(&self.proxyd.target, &self.model, &self.seen);
        let (end, mut in_a_row) = (Instant::now() + REST, 0);
        while in_a_row < 20 {
            let asked = Asked::whole(&shared, 0);
            let got = shared.connect(&mut self.random).and_then(|mut wire| {
                wire.send(asked.request().as_bytes())?;
                asked.answer(&shared, &mut wire, &FAST)
            });
            match got {
                Ok(_) => in_a_row += 1,
                Err(Trouble::Failed(_)) if Instant::now() < end => {
                    in_a_row = 0;
                    thread::sleep(Duration::from_millis(20));
                }
                Err(Trouble::Failed(why) | Trouble::Wrong(why)) => return Err(self.explain(&why)),
            }
        }
        Ok(())
    }

    /// What proxyd holds once no client is there, if that agrees with what it says.
    fn rest_of_proxyd(&mut self) -> Result<Usage, String> {
        let spare = [("pipe", 2 * WORKERS * PIPES)];
        let end = Instant::now() + REST;
        loop {
            let says = metrics(self.proxyd.metrics).map_err(|error| format!("metrics: {error}"))?;
            let held = Usage::of(self.proxyd.pid()).map_err(|error| error.to_string())?;
            let mut wrong = self.proxyd_empty.leaks(&held, &spare);
            wrong.extend(disagreements(&says, &self.proxyd_empty, &held, &self.seen));
            if wrong.is_empty() {
                let first = self.proxyd_first.get_or_insert_with(|| held.clone());
                return match first.growth(&held) {
                    None => Ok(held),
                    Some(growth) => {
                        Err(self.explain(&format!("proxyd, at rest, since the first: {growth}")))
                    }
                };
            }
            if Instant::now() > end {
                let wrong = wrong.join("; ");
                return Err(self.explain(&format!("proxyd, {REST:?} after all: {wrong}")));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// What storaged holds once no client is there.
    fn rest_of_storaged(&mut self) -> Result<Usage, String> {
        self.rest_of_proxyd()?;
        let storaged = self.storaged.as_ref().ok_or("no storaged")?;
        let end = Instant::now() + REST;
        let shared = Shared::alone(&storaged.target(), &self.model, &Arc::default());
        loop {
            let held = Usage::of(storaged.pid()).map_err(|error| error.to_string())?;
            let mut wrong = shared.idle_storaged(&mut self.random, &held);
            if storaged.files() > usize::from(self.model.keys()) {
                wrong.push(format!("{} files", storaged.files()));
            }
            if wrong.is_empty() {
                return Ok(held);
            }
            if Instant::now() > end {
                let wrong = wrong.join("; ");
                return Err(format!("storaged, {REST:?} after all: {wrong}; it has {held}"));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    fn tell(&mut self, what: &str) {
        if self.told.elapsed() < PROGRESS {
            return;
        }
        self.told = Instant::now();
        let seconds = self.begun.elapsed().as_secs();
        eprintln!("soak: {seconds} s, {what}: {}", self.summary());
    }

    fn summary(&self) -> String {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        format!(
            "{} objects whole, {} changes acknowledged, {} failures excused, {} connections, {} \
             kills, {} reloads",
            of(&self.seen.whole),
            of(&self.seen.acknowledged),
            of(&self.seen.failed),
            of(&self.seen.connections),
            self.kills,
            self.reloads,
        )
    }

    fn explain(&self, why: &str) -> String {
        format!("{why}\nproxyd's log ends:\n{}", self.proxyd.log())
    }

    /// Everything again, from the store, before its last death and after it.
    fn end(mut self) -> Result<String, String> {
        let keys: Vec<u16> = (0..self.model.keys()).collect();
        let target = self.storaged.as_ref().ok_or("no storaged")?.target();
        self.look(&target, &keys)?;
        let says = metrics(self.proxyd.metrics).map_err(|error| format!("metrics: {error}"))?;
        if let Some(storaged) = self.storaged.take() {
            storaged.kill();
            self.kills += 1;
        }
        self.storaged = Some(Storaged::start(self.place.path(), self.port, &mut self.random)?);
        self.look(&target, &keys)?;
        for (name, least) in [("proxyd_spliced_bytes_total", 1), ("proxyd_copied_bytes_total", 1)] {
            if says.get(name).copied().unwrap_or(0) < least {
                return Err(format!("{name} is 0: nothing was tried"));
            }
        }
        let parts = self.seen.parts();
        let summary = self.summary();
        self.proxyd.stop()?;
        let splits = self.seen.splits.summary();
        Ok(format!("{summary}; {splits}; {parts:?}"))
    }
}

/// What proxyd says of itself that is not so, at rest.
fn disagreements(
    says: &BTreeMap<String, u64>,
    empty: &Usage,
    held: &Usage,
    seen: &Seen,
) -> Vec<String> {
    // Whoever started this may have left it some.
    let ends = held.count("pipe").saturating_sub(empty.count("pipe"));
    let of = |name: &str| says.get(&format!("proxyd_{name}")).copied().unwrap_or(0);
    let saw = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let answered = of("responses_total") + of("clients_gone_total");
    let tried = saw(&seen.connections);
    let accepted = of("connections_accepted_total");
    let bodies = of("request_body_bytes_total") + of("response_body_bytes_total");
    let moved = of("spliced_bytes_total") + of("copied_bytes_total");
    let heads: u64 = seen.classes.iter().map(saw).sum();
    let requests = of("requests_total");
    let compared = saw(&seen.compared_bytes);
    [
        (of("connections_open") == 0, format!("{} connections open", of("connections_open"))),
        (of("backend_idle") == 0, format!("{} connections to backends", of("backend_idle"))),
        (
            ends as u64 == 2 * of("pipes_open"),
            format!("{ends} ends of pipes, and it says {} pipes", of("pipes_open")),
        ),
        (
            (tried - saw(&seen.unconnected)..=tried).contains(&accepted),
            format!("{accepted} connections accepted of {tried}"),
        ),
        (bodies == moved, format!("{bodies} bytes of bodies, and {moved} moved")),
        (answered >= heads, format!("{answered} answers, and clients saw {heads}")),
        (
            (requests..=requests + of("requests_refused_total")).contains(&answered),
            format!("{answered} answers to {requests} requests"),
        ),
        (
            of("response_body_bytes_total") >= compared,
            format!("{} bytes, and clients saw {compared}", of("response_body_bytes_total")),
        ),
    ]
    .into_iter()
    .filter_map(|(holds, what)| (!holds).then_some(what))
    .collect()
}

impl Shared {
    /// What a storaged holds that it ought not to, when no other client asks it.
    fn idle_storaged(&self, random: &mut Random, held: &Usage) -> Vec<String> {
        let ask = |random: &mut Random| -> Result<String, Trouble> {
            let mut wire = self.connect(random)?;
            wire.send(b"GET /_/stat HTTP/1.1\r\nHost: soak\r\nConnection: close\r\n\r\n")?;
            Ok(String::from_utf8_lossy(&wire.rest()?).into_owned())
        };
        let stat = match ask(random) {
            Ok(stat) => stat,
            Err(trouble) => return vec![format!("{trouble:?}")],
        };
        let mut wrong = Vec::new();
        // This question's own connection is one.
        for due in ["\"connections\":1,", "\"damaged\":0,"] {
            if !stat.contains(due) {
                let name = due.split(':').next().unwrap_or_default();
                let at = stat.find(name).unwrap_or(0);
                let is = stat[at..].split(',').next().unwrap_or_default();
                wrong.push(format!("{due} is due, and there is {is}"));
            }
        }
        if held.count("pipe") > 2 * WORKERS * STORAGED_PIPES {
            wrong.push(format!("{} pipes' ends", held.count("pipe")));
        }
        let files = held.count("file");
        // Standard descriptors, the lock and folders, which it keeps a handful of.
        if files > OPEN_OBJECTS + 24 {
            wrong.push(format!("{files} files"));
        }
        wrong
    }
}
