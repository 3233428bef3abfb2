//! The form with copies: a streamer copies by the library, a victim walks.

pub mod plan;
#[cfg(not(feature = "fake-lanes"))]
pub mod run;
#[cfg(feature = "fake-lanes")]
#[path = "copies/fake.rs"]
pub mod run;
mod sample;

use std::fmt;
use std::str::FromStr;

use serde::Deserialize;

use super::defaults;

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

impl CopyMode {
    /// Every mode, the baseline first.
    pub const ALL: [CopyMode; 4] = [CopyMode::Idle, CopyMode::Copy, CopyMode::Nt, CopyMode::NtBoth];

    /// The mode's name in commands and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            CopyMode::Idle => "idle",
            CopyMode::Copy => "copy",
            CopyMode::Nt => "nt",
            CopyMode::NtBoth => "nt-both",
        }
    }
}

impl fmt::Display for CopyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A mode's name that this form does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "--modes {0}: copies have copy, nt and nt-both, and idle is always measured; leave it out, or \
     name --sockets, --family or a --kernel to measure sends"
)]
pub struct UnknownCopyMode(String);

impl FromStr for CopyMode {
    type Err = UnknownCopyMode;

    fn from_str(text: &str) -> Result<Self, UnknownCopyMode> {
        let mode = CopyMode::ALL.into_iter().find(|mode| mode.as_str() == text);
        mode.ok_or_else(|| UnknownCopyMode(text.to_owned()))
    }
}

/// Where the victim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// On the streamer's core: a pass of the victim and an object of the streamer take turns.
    SameCore,
    /// On another core with the same last-level cache, while the streamer copies.
    Neighbour,
}

impl Victim {
    pub const ALL: [Victim; 2] = [Victim::SameCore, Victim::Neighbour];

    /// The name in commands and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Victim::SameCore => "same-core",
            Victim::Neighbour => "neighbour",
        }
    }
}

impl fmt::Display for Victim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A place that no victim can be in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown victim `{0}`: this version has same-core and neighbour")]
pub struct UnknownVictim(String);

impl FromStr for Victim {
    type Err = UnknownVictim;

    fn from_str(text: &str) -> Result<Self, UnknownVictim> {
        let victim = Victim::ALL.into_iter().find(|victim| victim.as_str() == text);
        victim.ok_or_else(|| UnknownVictim(text.to_owned()))
    }
}

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
        CopyMode::ALL.into_iter().filter(is_asked).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_the_errors_name_all() {
        for mode in CopyMode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
        for victim in Victim::ALL {
            assert_eq!(victim.to_string().parse(), Ok(victim));
        }
        let text = "vmsplice".parse::<CopyMode>().unwrap_err().to_string();
        assert!(CopyMode::ALL.iter().all(|mode| text.contains(mode.as_str())), "{text}");
        assert!("core".parse::<Victim>().unwrap_err().to_string().contains("same-core"));
    }

    #[test]
    fn idle_comes_first_and_no_mode_twice() {
        let settings = Settings { modes: vec![CopyMode::Nt, CopyMode::Nt], ..Settings::default() };
        assert_eq!(settings.modes(), [CopyMode::Idle, CopyMode::Nt]);
        assert_eq!(Settings::default().modes(), CopyMode::ALL);
        assert_eq!(defaults().copies.victims, Victim::ALL);
    }
}
