//! Experiment `phase`: its defaults and what a user may set.

use serde::Deserialize;

use super::Family;

/// The defaults as they ship, with their comments.
pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/phase.toml");

/// The experiment's name.
pub const NAME: &str = "phase";

/// The defaults.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The experiment's name.
    pub name: String,
    /// What it does, in a line.
    pub about: String,
    /// Size of the object in bytes.
    pub object_bytes: u64,
    /// Size of the data set in bytes.
    pub dataset_bytes: u64,
    /// Sockets in flight in the middle phase.
    pub sockets: u32,
    /// How long a phase lasts at least, in milliseconds.
    pub phase_ms: u64,
    /// The same with `--quick`.
    pub quick_phase_ms: u64,
    /// How long a window lasts at least, in milliseconds.
    pub window_ms: u64,
    /// Repetitions.
    pub pairs: u32,
    /// Repetitions with `--quick`.
    pub quick_pairs: u32,
}

super::reads_defaults!("phase");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Size of the object in bytes.
    pub object_bytes: Option<u64>,
    /// Size of the data set in bytes.
    pub dataset_bytes: Option<u64>,
    /// Sockets in flight in the middle phase.
    pub sockets: Option<u32>,
    /// How long a phase lasts at least, in milliseconds.
    pub phase_ms: Option<u64>,
    /// The address family.
    pub family: Option<Family>,
    /// CPUs of sender and reader; one CPU means both on it.
    pub cpus: Vec<u32>,
    /// Repetitions.
    pub pairs: Option<u32>,
    /// Fewer repetitions, shorter phases.
    pub quick: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_parse_and_a_phase_has_many_windows() {
        let defaults = defaults();
        assert_eq!(defaults.name, NAME);
        assert!(defaults.quick_phase_ms >= 20 * defaults.window_ms);
        assert!(defaults.quick_pairs >= 5);
    }
}
