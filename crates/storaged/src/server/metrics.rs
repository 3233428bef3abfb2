//! What was done, counted by each worker for itself and added up when it is asked for.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::send::{Mode, Reason};

/// Statuses that are answered; anything else would be a mistake, and is counted as the last.
const STATUSES: [u16; 23] = [
    200, 201, 204, 206, 304, 400, 404, 405, 408, 411, 412, 413, 414, 415, 416, 417, 431, 500, 501,
    503, 505, 507, 0,
];
/// Upper bounds of the latency buckets, in microseconds.
const BUCKETS_US: [u64; 16] = [
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    5_000_000,
    u64::MAX,
];

/// A number that only rises.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn up(&self) {
        self.add(1);
    }

    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// One less: for what is open at the moment.
    pub fn down(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident $kind:literal $name:literal $help:literal,)*) => {
        #[derive(Debug, Default)]
        pub struct Counters {
            /// By place in `STATUSES`.
            statuses: [Counter; STATUSES.len()],
            sent: [Counter; Mode::ALL.len()],
            reasons: [Counter; Reason::ALL.len()],
            /// Requests by the upper bound of their duration.
            durations: [Counter; BUCKETS_US.len()],
            duration_us: Counter,
            $($(#[$doc])* pub $field: Counter,)*
        }

        impl Counters {
            /// Kind, name, help and value of the single ones.
            fn single(&self) -> Vec<(&'static str, &'static str, &'static str, u64)> {
                vec![$(($kind, $name, $help, self.$field.get()),)*]
            }
        }
    };
}

counters! {
    open "gauge" "connections" "Open connections.",
    accepted "counter" "accepted_total" "Accepted connections.",
    shut "counter" "accept_paused_total" "Times that accepting paused for want of descriptors.",
    evicted "counter" "evicted_total" "Idle connections closed to make room for others.",
    turned_away "counter" "turned_away_total" "Connections answered 503 for want of room.",
    received "counter" "received_body_bytes_total" "Body bytes of PUTs.",
    aborted "counter" "aborted_responses_total" "Responses cut off: peer gone, time out, bad disk.",
    timeouts "counter" "timeouts_total" "Connections ended by a time-out while busy.",
    corrupt "counter" "checksum_errors_total" "Requests answered 500 because a checksum was wrong.",
    rescued "counter" "rescued_mappings_total" "Sends whose mapping failed, and which were read.",
    hits "counter" "open_hits_total" "GETs that found the object open and verified.",
    misses "counter" "open_misses_total" "GETs that had to open or verify the object.",
}

impl Counters {
    pub fn answered(&self, status: u16, took: Duration) {
        let at = STATUSES.iter().position(|known| *known == status);
        self.statuses[at.unwrap_or(STATUSES.len() - 1)].up();
        let us = took.as_micros().min(u128::from(u64::MAX)) as u64;
        let at = BUCKETS_US.iter().position(|bound| us <= *bound);
        self.durations[at.unwrap_or(BUCKETS_US.len() - 1)].up();
        self.duration_us.add(us);
    }

    pub fn chose(&self, reason: Reason) {
        self.reasons[reason as usize].up();
    }

    pub fn sent(&self, mode: Mode, bytes: u64) {
        self.sent[mode as usize].add(bytes);
    }

    pub fn requests(&self) -> u64 {
        self.statuses.iter().map(Counter::get).sum()
    }

    pub fn sent_by_mode(&self) -> impl Iterator<Item = (Mode, u64)> + '_ {
        Mode::ALL.into_iter().map(|mode| (mode, self.sent[mode as usize].get()))
    }
}

/// The counters as Prometheus reads them (text format 0.0.4), with extra single values.
pub fn prometheus(workers: &[&Counters], extra: &[(&str, &str, &str, u64)]) -> String {
    let mut text = String::new();
    let sum = |of: &dyn Fn(&Counters) -> u64| workers.iter().map(|one| of(one)).sum::<u64>();
    family(&mut text, "counter", "requests_total", "Answered requests.");
    for (worker, counters) in workers.iter().enumerate() {
        for (at, status) in STATUSES.iter().enumerate() {
            let value = counters.statuses[at].get();
            if value > 0 {
                let labels = format!("worker=\"{worker}\",status=\"{status}\"");
                sample(&mut text, "requests_total", &labels, value);
            }
        }
    }
    family(&mut text, "counter", "sent_body_bytes_total", "Body bytes by the way they went.");
    for mode in Mode::ALL {
        let labels = format!("mode=\"{}\"", mode.name());
        sample(&mut text, "sent_body_bytes_total", &labels, sum(&|c| c.sent[mode as usize].get()));
    }
    family(&mut text, "counter", "choices_total", "Responses with a body, by why it went its way.");
    for reason in Reason::ALL {
        let labels = format!("reason=\"{}\"", reason.name());
        sample(&mut text, "choices_total", &labels, sum(&|c| c.reasons[reason as usize].get()));
    }
    histogram(&mut text, workers);
    if let Some(first) = workers.first() {
        for (at, (kind, name, help, _)) in first.single().into_iter().enumerate() {
            family(&mut text, kind, name, help);
            for (worker, counters) in workers.iter().enumerate() {
                let labels = format!("worker=\"{worker}\"");
                sample(&mut text, name, &labels, counters.single()[at].3);
            }
        }
    }
    for (kind, name, help, value) in extra {
        family(&mut text, kind, name, help);
        sample(&mut text, name, "", *value);
    }
    text
}

fn histogram(text: &mut String, workers: &[&Counters]) {
    let name = "request_duration_seconds";
    family(text, "histogram", name, "Time from the whole head of a request to its answer's end.");
    let mut below = 0;
    for (at, bound) in BUCKETS_US.iter().enumerate() {
        below += workers.iter().map(|one| one.durations[at].get()).sum::<u64>();
        let bound = match bound {
            &u64::MAX => "+Inf".to_owned(),
            us => format!("{}", Duration::from_micros(*us).as_secs_f64()),
        };
        sample(text, &format!("{name}_bucket"), &format!("le=\"{bound}\""), below);
    }
    let us = workers.iter().map(|one| one.duration_us.get()).sum();
    let seconds = Duration::from_micros(us).as_secs_f64();
    sample(text, &format!("{name}_sum"), "", seconds);
    sample(text, &format!("{name}_count"), "", below);
}

fn family(text: &mut String, kind: &str, name: &str, help: &str) {
    let _ = writeln!(text, "# HELP storaged_{name} {help}\n# TYPE storaged_{name} {kind}");
}

fn sample(text: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let _ = match labels {
        "" => writeln!(text, "storaged_{name} {value}"),
        labels => writeln!(text, "storaged_{name}{{{labels}}} {value}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_and_reason_has_its_place() {
        for (at, mode) in Mode::ALL.into_iter().enumerate() {
            assert_eq!(mode as usize, at);
        }
        for (at, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, at);
        }
    }

    #[test]
    fn the_text_adds_up() {
        let (one, two) = (Counters::default(), Counters::default());
        one.answered(200, Duration::from_micros(70));
        two.answered(200, Duration::from_secs(9));
        two.answered(299, Duration::from_micros(1));
        one.sent(Mode::Nt, 7);
        two.sent(Mode::Nt, 5);
        let text = prometheus(&[&one, &two], &[("gauge", "open_objects", "Open.", 3)]);
        for line in [
            "storaged_requests_total{worker=\"0\",status=\"200\"} 1",
            "storaged_requests_total{worker=\"1\",status=\"0\"} 1",
            "storaged_sent_body_bytes_total{mode=\"nt\"} 12",
            "storaged_request_duration_seconds_bucket{le=\"0.00005\"} 1",
            "storaged_request_duration_seconds_bucket{le=\"0.0001\"} 2",
            "storaged_request_duration_seconds_bucket{le=\"+Inf\"} 3",
            "storaged_request_duration_seconds_count 3",
            "storaged_open_objects 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
