//! Experiment `memcpy`: its defaults and what a user may set.

use serde::Deserialize;

use super::bulk::Heat;

/// The defaults as they ship, with their comments.
pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/memcpy.toml");

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
    /// Threads that copy at once, each on its CPU.
    pub threads: Vec<u32>,
    /// The same with `--quick`.
    pub quick_threads: Vec<u32>,
    /// Times the last-level cache that a cold side's region is large.
    pub region_llcs: u64,
    /// Bytes of that region at least.
    pub least_region_bytes: u64,
    /// Bytes that go before a sample of a cold cell at most.
    pub most_warm_up_bytes: u64,
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

super::reads_defaults!("memcpy");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Names of the ways. Empty: the default ones.
    pub peers: Vec<String>,
    /// Bytes of one call. Empty: the default ones.
    pub size_bytes: Vec<u64>,
    /// The source's heat. Empty: both.
    pub source: Vec<Heat>,
    /// The destination's. Empty: both.
    pub destination: Vec<Heat>,
    /// Numbers of threads. Empty: the default ones.
    pub threads: Vec<u32>,
    /// Bytes of the region that a cold side walks through.
    pub region_bytes: Option<u64>,
    /// The C library's corrected threshold, instead of the one from CPUID.
    pub tuned_threshold_bytes: Option<u64>,
    /// How far into a page sources begin that destinations begin with.
    pub source_offset_bytes: u64,
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
    use super::super::bulk::Task;
    use super::*;

    #[test]
    fn defaults_parse_and_every_peer_exists() {
        let defaults = defaults();
        let task = Task::Copy { source: Heat::Cold, destination: Heat::Cold };
        assert_eq!(defaults.name, "memcpy");
        assert!(task.way(&defaults.baseline).is_ok());
        for peer in &defaults.peers {
            assert!(task.way(peer).is_ok(), "{peer}");
        }
        assert!(defaults.quick_size_bytes.iter().all(|size| defaults.size_bytes.contains(size)));
    }
}
