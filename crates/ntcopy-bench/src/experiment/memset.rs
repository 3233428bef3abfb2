//! Experiment `memset`: its defaults and what a user may set.

use serde::Deserialize;

/// The defaults as they ship, with their comments.
pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/memset.toml");

/// The defaults.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The experiment's name.
    pub name: String,
    /// What it does, in a line.
    pub about: String,
    /// The way that the others are compared with.
    pub baseline: String,
    /// The others.
    pub peers: Vec<String>,
    /// Bytes of one call.
    pub size_bytes: Vec<u64>,
    /// The same with `--quick`.
    pub quick_size_bytes: Vec<u64>,
    /// Threads that fill at once, each on its CPU.
    pub threads: Vec<u32>,
    /// The byte that is stored.
    pub value: u8,
    /// How long a way runs before each sample without being clocked, in milliseconds.
    pub warm_up_ms: u64,
    /// How long a sample lasts about, in milliseconds.
    pub sample_ms: u64,
    /// The same with `--quick`.
    pub quick_sample_ms: u64,
    /// Interleaved groups.
    pub pairs: u32,
    /// The same with `--quick`.
    pub quick_pairs: u32,
}

super::reads_defaults!("memset");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Names of the ways. Empty: the default ones that store this value.
    pub peers: Vec<String>,
    /// Bytes of one call. Empty: the default ones.
    pub size_bytes: Vec<u64>,
    /// Numbers of threads. Empty: the default ones.
    pub threads: Vec<u32>,
    /// The byte that is stored.
    pub value: Option<u8>,
    /// The C library's other threshold, in way `libc-tuned`.
    pub tuned_threshold_bytes: Option<u64>,
    /// Pages of 4 KiB instead of transparent huge ones.
    pub small_pages: bool,
    /// The CPUs, one a thread. Empty: the first ones.
    pub cpus: Vec<u32>,
    /// Interleaved groups.
    pub pairs: Option<u32>,
    /// Fewer sizes and groups, shorter samples.
    pub quick: bool,
}

#[cfg(test)]
mod tests {
    use super::super::bulk::{Heat, Task};
    use super::*;

    #[test]
    fn defaults_parse_and_every_peer_exists() {
        let defaults = defaults();
        assert_eq!(defaults.name, "memset");
        for peer in defaults.peers.iter().chain([&defaults.baseline]) {
            assert!(Task::Fill { value: 0, destination: Heat::Hot }.way(peer).is_ok(), "{peer}");
        }
    }
}
