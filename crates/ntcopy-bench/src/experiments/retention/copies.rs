//! The form with copies: a streamer copies by the library, a victim walks.

pub mod plan;
#[cfg(not(feature = "fake-lanes"))]
pub mod run;
#[cfg(feature = "fake-lanes")]
#[path = "copies/fake.rs"]
pub mod run;
mod sample;

use serde::Deserialize;

use super::defaults;
use crate::experiment::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyMode {
    /// No copy at all: what the victim does when left alone. Always measured; the baseline.
    Idle,
    /// A normal copy: temporal loads and stores.
    Copy,
    /// A non-temporal destination; the source is read as usual.
    Nt,
    /// A non-temporal destination and a non-temporal source.
    NtBoth,
}

words!(CopyMode, Idle = "idle", Copy = "copy", Nt = "nt", NtBoth = "nt-both");

/// Where the victim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// On the streamer's core: a pass of the victim and an object of the streamer take turns.
    SameCore,
    /// On another core with the same last-level cache, while the streamer copies.
    Neighbour,
}

words!(Victim, SameCore = "same-core", Neighbour = "neighbour");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// Modes that are measured when none are asked for, beside `idle`.
    pub modes: Vec<String>,
    /// Where the victim is, each in cells of its own.
    pub victims: Vec<Victim>,
    pub object_bytes: u64,
    /// Bytes per second that the neighbour's streamer is offered.
    pub rate_bytes_per_s: u64,
    /// Source and destination each are this many times the last-level cache.
    pub dataset_by_llc: u64,
    pub most_dataset_bytes: u64,
    pub pairs: u32,
    /// Interleaved groups with `--quick`.
    pub quick_pairs: u32,
    /// How long a sample lasts at least, in milliseconds.
    pub sample_ms: u64,
    pub quick_sample_ms: u64,
    /// How long the mode runs before a sample, at least, in milliseconds.
    pub warm_up_ms: u64,
}

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The modes; `idle` is always among them. Empty: the default ones.
    pub modes: Vec<CopyMode>,
    /// Where the victim is. Empty: both.
    pub victims: Vec<Victim>,
    /// Sizes of the hot set in bytes. Empty: from half of L2 to the last-level cache.
    pub hot_set_bytes: Vec<u64>,
    /// Sizes of the object in bytes. Empty: the default one.
    pub object_bytes: Vec<u64>,
    /// Offered rates in bytes per second. Empty: the default one.
    pub rates_bytes_per_s: Vec<u64>,
    /// Bytes of the source, and of the destination.
    pub dataset_bytes: Option<u64>,
    pub pairs: Option<u32>,
    /// Fewer groups, shorter samples, fewer hot sets.
    pub quick: bool,
}

impl Settings {
    /// The modes to measure, each once: `idle`, and those asked for.
    ///
    /// # Panics
    ///
    /// The same as [`defaults`].
    #[must_use]
    pub fn modes(&self) -> Vec<CopyMode> {
        let default = || -> Vec<CopyMode> {
            let names = &defaults().copies.modes;
            names.iter().map(|name| name.parse().expect("the default modes exist")).collect()
        };
        let asked = if self.modes.is_empty() { default() } else { self.modes.clone() };
        let is_asked = |mode: &CopyMode| *mode == CopyMode::Idle || asked.contains(mode);
        CopyMode::ALL.iter().copied().filter(is_asked).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_comes_first_and_no_mode_twice() {
        let settings = Settings { modes: vec![CopyMode::Nt, CopyMode::Nt], ..Settings::default() };
        assert_eq!(settings.modes(), [CopyMode::Idle, CopyMode::Nt]);
        assert_eq!(Settings::default().modes(), CopyMode::ALL);
        assert_eq!(defaults().copies.victims, Victim::ALL);
    }
}
