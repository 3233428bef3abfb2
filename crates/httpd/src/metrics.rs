//! What is counted, and its text for Prometheus (format 0.0.4).

use std::fmt::{Display, Write};
use std::sync::atomic::{AtomicU64, Ordering};

pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// A number that rises, or one that goes up and down.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

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

/// Makes a struct of [`Counter`]s, and `tell()`, which writes the sums of all workers.
///
/// ```
/// httpd::counters! {
///     /// What a worker counts.
///     pub struct Counters {
///         evicted: "counter" "evicted_total" "Idle connections closed to make room for others.",
///     }
/// }
/// let workers = [Counters::default(), Counters::default()];
/// workers[1].evicted.up();
/// let mut text = httpd::metrics::Text::new("d");
/// Counters::tell(workers.iter(), &mut text);
/// assert!(text.end().ends_with("# TYPE d_evicted_total counter\nd_evicted_total 1\n"));
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
            pub fn tell<'a>(
                workers: impl Iterator<Item = &'a $name> + Clone,
                text: &mut $crate::metrics::Text,
            ) {
                $(
                    let sum: u64 = workers.clone().map(|worker| worker.$field.get()).sum();
                    text.family($kind, $family, $help, sum);
                )*
            }
        }
    };
}

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

    pub fn family(&mut self, kind: &str, name: &str, help: &str, value: impl Display) {
        let prefix = self.prefix;
        let _ = writeln!(
            self.text,
            "# HELP {prefix}_{name} {help}\n# TYPE {prefix}_{name} {kind}\n{prefix}_{name} {value}"
        );
    }

    pub fn end(self) -> String {
        self.text
    }
}
