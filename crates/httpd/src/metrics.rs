//! What is counted, and its text for Prometheus (format 0.0.4).

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The content type of what [`Text`] makes.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// A number that rises, or one that goes up and down.
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

    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Kind (`counter` or `gauge`), name, help.
pub type Family = (&'static str, &'static str, &'static str);

/// Makes a struct of [`Counter`]s; `FAMILIES` and `all()` have them in their order.
///
/// ```
/// httpd::counters! {
///     /// What a worker counts.
///     pub struct Counters {
///         evicted: "counter" "evicted_total" "Idle connections closed to make room for others.",
///     }
/// }
/// assert_eq!(Counters::default().all()[0].get(), 0);
/// ```
#[macro_export]
macro_rules! counters {
    ($(#[$doc:meta])* $vis:vis struct $name:ident {
        $($field:ident: $kind:literal $family:literal $help:literal,)*
    }) => {
        $(#[$doc])*
        #[derive(Debug, Default)]
        $vis struct $name {
            $(#[doc = $help] pub $field: $crate::metrics::Counter,)*
        }

        impl $name {
            pub const FAMILIES: &[$crate::metrics::Family] = &[$(($kind, $family, $help),)*];

            pub fn all(&self) -> Vec<&$crate::metrics::Counter> {
                vec![$(&self.$field,)*]
            }
        }
    };
}

/// Upper bounds of a [`Histogram`]'s buckets, in microseconds; one more has no bound.
const BOUNDS_US: [u64; 15] = [
    50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000,
    1_000_000, 5_000_000,
];

/// How long things took.
#[derive(Debug, Default)]
struct Histogram {
    buckets: [Counter; BOUNDS_US.len() + 1],
    us: Counter,
}

impl Histogram {
    fn took(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS_US.iter().position(|bound| us <= *bound);
        self.buckets[at.unwrap_or(BOUNDS_US.len())].up();
        self.us.add(us);
    }
}

/// What a worker counts of its answers.
#[derive(Debug, Default)]
pub struct Answers {
    /// By the first digit of their status, 1 to 5.
    classes: [Counter; 5],
    durations: Histogram,
}

impl Answers {
    pub fn answered(&self, status: u16, took: Duration) {
        self.classes[usize::from(status / 100).clamp(1, 5) - 1].up();
        self.durations.took(took);
    }

    pub fn all(&self) -> u64 {
        self.classes.iter().map(Counter::get).sum()
    }
}

/// The text, under construction. It has the sums of all workers.
#[derive(Debug)]
pub struct Text {
    prefix: &'static str,
    text: String,
}

impl Text {
    /// Names begin with `prefix` and an underscore.
    pub fn new(prefix: &'static str) -> Text {
        Text { prefix, text: String::new() }
    }

    pub fn family(&mut self, (kind, name, help): Family) {
        let prefix = self.prefix;
        let _ = writeln!(self.text, "# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}");
    }

    /// `labels` are as they stand in braces; empty for none.
    pub fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let prefix = self.prefix;
        let _ = match labels {
            "" => writeln!(self.text, "{prefix}_{name} {value}"),
            labels => writeln!(self.text, "{prefix}_{name}{{{labels}}} {value}"),
        };
    }

    pub fn counters(&mut self, families: &[Family], workers: &[Vec<&Counter>]) {
        for (at, family) in families.iter().enumerate() {
            self.family(*family);
            let sum: u64 = workers.iter().map(|counters| counters[at].get()).sum();
            self.sample(family.1, "", sum);
        }
    }

    pub fn answers<'a>(&mut self, workers: impl Iterator<Item = &'a Answers> + Clone) {
        self.family(("counter", "responses_total", "Answers by class of status."));
        for class in 0..5 {
            let count: u64 = workers.clone().map(|worker| worker.classes[class].get()).sum();
            self.sample("responses_total", &format!("class=\"{}xx\"", class + 1), count);
        }
        let name = "request_duration_seconds";
        self.family(("histogram", name, "From a request's head to the answer's last byte."));
        let mut below = 0;
        for at in 0..=BOUNDS_US.len() {
            let buckets = workers.clone().map(|worker| worker.durations.buckets[at].get());
            below += buckets.sum::<u64>();
            let bound = BOUNDS_US.get(at).map_or("+Inf".to_owned(), |us| {
                Duration::from_micros(*us).as_secs_f64().to_string()
            });
            self.sample(&format!("{name}_bucket"), &format!("le=\"{bound}\""), below);
        }
        let us = workers.map(|worker| worker.durations.us.get()).sum();
        self.sample(&format!("{name}_sum"), "", Duration::from_micros(us).as_secs_f64());
        self.sample(&format!("{name}_count"), "", below);
    }

    pub fn end(self) -> String {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    counters! {
        struct Some {
            first: "counter" "first_total" "The first.",
            second: "gauge" "second" "The second.",
        }
    }

    #[test]
    fn the_text_adds_up() {
        let workers = [Some::default(), Some::default()];
        workers[1].first.add(3);
        workers[0].first.add(1);
        workers[0].second.set(7);
        let (one, two) = (Answers::default(), Answers::default());
        one.answered(200, Duration::from_micros(70));
        one.answered(404, Duration::from_micros(1));
        two.answered(206, Duration::from_secs(9));
        let mut text = Text::new("d");
        text.counters(Some::FAMILIES, &workers.each_ref().map(Some::all));
        text.answers([&one, &two].into_iter());
        let text = text.end();
        for line in [
            "# HELP d_first_total The first.",
            "# TYPE d_first_total counter",
            "d_first_total 4",
            "d_second 7",
            "d_responses_total{class=\"2xx\"} 2",
            "d_responses_total{class=\"4xx\"} 1",
            "d_request_duration_seconds_bucket{le=\"0.00005\"} 1",
            "d_request_duration_seconds_bucket{le=\"0.0001\"} 2",
            "d_request_duration_seconds_bucket{le=\"+Inf\"} 3",
            "d_request_duration_seconds_sum 9.000071",
            "d_request_duration_seconds_count 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
