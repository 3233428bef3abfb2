//! Experiment `retention`: its defaults and what a user may set.
//!
//! It has two forms: sends on sockets, here, and the library's copies, in
//! [`copies`].

pub mod copies;
mod sends;

use serde::Deserialize;

pub use self::sends::plan as plan_sends;

use crate::experiment::{Family, Mode, bytes_per_second, reads_defaults, size, with_baseline};
use crate::plan::{PlanError, modes, or};

pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/retention.toml");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub copies: copies::Defaults,
    pub sends: Sends,
}

/// The defaults of the form with sends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sends {
    pub baseline: Mode,
    pub modes: Vec<Mode>,
    pub hot_set_bytes: u64,
    pub cells: Vec<(u32, u64)>,
    pub dataset_bytes: u64,
    pub pairs: u32,
    pub sample_ms: u64,
}

reads_defaults!();

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Modes to measure beside idle [default: copy,nt,nt-both; of sends copy,nt,adaptive]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<String>,
    /// Where the other program is beside copies: same-core, neighbour [default: both]
    #[arg(long = "victim", value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["sockets", "family"])]
    pub victims: Vec<copies::Victim>,
    /// Sizes of the other program's hot set [default: of copies from half of L2 up to the last-level
    /// cache; of sends 512KiB]
    #[arg(long = "hot-set", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub hot_set_bytes: Vec<u64>,
    /// Offered to the streamer of copies, in GB/s, MB/s, or bare bytes per second [default: 10GB/s]
    #[arg(long = "rate", value_name = "LIST", value_delimiter = ',', value_parser = bytes_per_second,
          conflicts_with_all = ["sockets", "family"])]
    pub rates_bytes_per_s: Vec<u64>,
    /// Measure sends: sockets that are filled before all are drained
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub sockets: Vec<u32>,
    /// Sizes of one copy or send [default: of copies 256KiB; of sends 1MiB if --sockets is given]
    #[arg(long = "object", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub object_bytes: Vec<u64>,
    /// Size of the data set that sends are taken from [default: 256MiB]; or of the source, and of
    /// the destination, of copies [default: twice the last-level cache, at most 1GiB]
    #[arg(long = "dataset", value_name = "SIZE", value_parser = size)]
    pub dataset_bytes: Option<u64>,
    /// Measure sends, through this address family [default: unix]
    #[arg(long, value_name = "FAMILY")]
    pub family: Option<Family>,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}

impl Settings {
    /// The modes to measure of sends: the baseline, `idle`, and those asked for.
    fn modes_of_sends(&self) -> Result<Vec<Mode>, PlanError> {
        let mut modes =
            with_baseline(Mode::Copy, &modes(&self.modes, &defaults(self.quick).sends.modes)?);
        modes.insert(1, Mode::Idle);
        Ok(modes)
    }

    pub fn cells(&self) -> Vec<(u32, u64)> {
        if self.sockets.is_empty() && self.object_bytes.is_empty() {
            return defaults(self.quick).sends.cells.clone();
        }
        let (sockets, objects) = (or(&self.sockets, &[1]), or(&self.object_bytes, &[1 << 20]));
        let pairs = |object: u64| sockets.iter().map(move |sockets| (*sockets, object));
        objects.into_iter().flat_map(pairs).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_always_measured() {
        let settings = Settings { modes: vec!["nt".to_owned()], ..Settings::default() };
        assert_eq!(settings.modes_of_sends().unwrap(), [Mode::Copy, Mode::Idle, Mode::Nt]);
        assert_eq!(Settings::default().modes_of_sends().unwrap().len(), 4);
    }

    #[test]
    fn cells_multiply_when_named() {
        assert_eq!(Settings::default().cells(), [(1, 256 << 10), (64, 1 << 20)]);
        let settings = Settings { sockets: vec![1, 8], ..Settings::default() };
        assert_eq!(settings.cells(), [(1, 1 << 20), (8, 1 << 20)]);
    }
}
