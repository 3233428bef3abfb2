//! Experiment `retention`: its defaults and what a user may set.
//!
//! It has two forms: sends on sockets, here, and the library's copies, in
//! [`copies`].

pub mod copies;
mod sends;

use serde::Deserialize;

pub use self::sends::plan as plan_sends;
use ntcopy_record::ExperimentKind;

use crate::experiment::{Family, Mode, reads_defaults, with_baseline};

/// The defaults as they ship, with their comments.
pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/retention.toml");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub name: ExperimentKind,
    /// What it does, in a line.
    pub about: String,
    pub copies: copies::Defaults,
    /// The defaults of the form with sends.
    pub sends: Sends,
}

/// The defaults of the form with sends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sends {
    /// The mode that the others are compared with.
    pub baseline: String,
    /// Modes that are measured when none are asked for, beside `idle`.
    pub modes: Vec<String>,
    /// Size of the victim's hot set in bytes.
    pub hot_set_bytes: u64,
    /// Sockets, and bytes of an object, of each cell.
    pub cells: Vec<(u32, u64)>,
    /// Size of the data set in bytes.
    pub dataset_bytes: u64,
    pub pairs: u32,
    /// Interleaved groups with `--quick`.
    pub quick_pairs: u32,
    /// How long a sample lasts at least, in milliseconds.
    pub sample_ms: u64,
    pub quick_sample_ms: u64,
}

reads_defaults!("retention");

/// What a user asks for of the form with sends; what is left open comes from [`defaults`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The modes; the baseline and `idle` are always among them. Empty: the default ones.
    pub modes: Vec<Mode>,
    /// Sizes of the hot set in bytes. Empty: the default one.
    pub hot_set_bytes: Vec<u64>,
    /// Numbers of sockets. Empty, with no objects named: the default cells.
    pub sockets: Vec<u32>,
    pub object_bytes: Vec<u64>,
    /// Size of the data set in bytes.
    pub dataset_bytes: Option<u64>,
    pub family: Option<Family>,
    pub pairs: Option<u32>,
    /// Fewer groups, shorter samples.
    pub quick: bool,
}

impl Settings {
    /// The modes to measure: the baseline, `idle`, and those asked for.
    ///
    /// # Panics
    ///
    /// The same as [`defaults`].
    #[must_use]
    pub fn modes(&self) -> Vec<Mode> {
        let default = || -> Vec<Mode> {
            let names = &defaults().sends.modes;
            names.iter().map(|name| name.parse().expect("the default modes exist")).collect()
        };
        let asked = if self.modes.is_empty() { default() } else { self.modes.clone() };
        let mut modes = with_baseline(Mode::Copy, &asked);
        modes.insert(1, Mode::Idle);
        modes
    }

    #[must_use]
    pub fn cells(&self) -> Vec<(u32, u64)> {
        if self.sockets.is_empty() && self.object_bytes.is_empty() {
            return defaults().sends.cells.clone();
        }
        let sockets = if self.sockets.is_empty() { vec![1] } else { self.sockets.clone() };
        let objects =
            if self.object_bytes.is_empty() { vec![1 << 20] } else { self.object_bytes.clone() };
        let pairs = |object: u64| sockets.iter().map(move |sockets| (*sockets, object));
        objects.into_iter().flat_map(pairs).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_always_measured() {
        assert_eq!(defaults().name, ExperimentKind::Retention);
        let settings = Settings { modes: vec![Mode::Nt], ..Settings::default() };
        assert_eq!(settings.modes(), [Mode::Copy, Mode::Idle, Mode::Nt]);
        assert_eq!(Settings::default().modes().len(), 4);
    }

    #[test]
    fn cells_multiply_when_named() {
        assert_eq!(Settings::default().cells(), [(1, 256 << 10), (64, 1 << 20)]);
        let settings = Settings { sockets: vec![1, 8], ..Settings::default() };
        assert_eq!(settings.cells(), [(1, 1 << 20), (8, 1 << 20)]);
    }
}
