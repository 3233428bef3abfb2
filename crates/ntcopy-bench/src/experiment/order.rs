//! Experiment `order`: its defaults and what a user may set.

use serde::Deserialize;

use super::bulk::MatrixTask;

/// The defaults as they ship, with their comments.
pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/order.toml");

/// Bytes of an element.
pub const ELEMENT_BYTES: u64 = 8;

/// The defaults.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The experiment's name.
    pub name: String,
    /// What it does, in a line.
    pub about: String,
    /// The walk that the others are compared with.
    pub baseline: String,
    /// The others.
    pub peers: Vec<String>,
    /// Rows, and columns, of the matrix.
    pub side: Vec<u64>,
    /// The same with `--quick`.
    pub quick_side: Vec<u64>,
    /// What is done with it.
    pub tasks: Vec<MatrixTask>,
    /// How long a sample lasts about, in milliseconds; at least one walk.
    pub sample_ms: u64,
    /// The same with `--quick`.
    pub quick_sample_ms: u64,
    /// Interleaved groups.
    pub pairs: u32,
    /// The same with `--quick`.
    pub quick_pairs: u32,
}

super::reads_defaults!("order");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Names of the walks. Empty: all.
    pub peers: Vec<String>,
    /// Rows, and columns. Empty: the default ones.
    pub side: Vec<u64>,
    /// What is done. Empty: all.
    pub tasks: Vec<MatrixTask>,
    /// Pages of 4 KiB instead of transparent huge ones.
    pub small_pages: bool,
    /// The CPU. Empty: the first.
    pub cpus: Vec<u32>,
    /// Interleaved groups.
    pub pairs: Option<u32>,
    /// Smaller matrices, fewer groups, shorter samples.
    pub quick: bool,
}

#[cfg(test)]
mod tests {
    use super::super::bulk::Task;
    use super::*;

    #[test]
    fn defaults_parse_and_every_walk_exists() {
        let defaults = defaults();
        assert_eq!(defaults.name, "order");
        for peer in defaults.peers.iter().chain([&defaults.baseline]) {
            assert!(Task::Matrix(MatrixTask::Sum).way(peer).is_ok(), "{peer}");
        }
    }
}
