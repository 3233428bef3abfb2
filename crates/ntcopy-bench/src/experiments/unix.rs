//! Experiment `unix`: its defaults and what a user may set. What it runs and samples are the sends
//! that `retention` has too.

mod plan;
mod published;

use serde::Deserialize;

pub use self::plan::plan;
pub use self::published::{Published, published};
use crate::experiment::{Family, Mode, reads_defaults, size, with_baseline};
use crate::plan::or;

pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/unix.toml");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: Mode,
    pub modes: Vec<Mode>,
    pub object_bytes: u64,
    pub pairs: u32,
    pub rounds: RoundDefaults,
    pub sweep: SweepDefaults,
    pub free_running: FreeDefaults,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundDefaults {
    pub dataset_bytes: u64,
    pub two_senders_sockets: u32,
    pub small_per_object: Vec<u32>,
    pub sample_ms: u64,
    pub warm_up_ms: u64,
}

/// The sweep: every combination of these, in rounds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepDefaults {
    pub modes: Vec<Mode>,
    pub sockets: Vec<u32>,
    pub dataset_bytes: Vec<u64>,
    pub object_bytes: Vec<u64>,
    pub pairs: u32,
    pub sample_ms: u64,
    pub warm_up_ms: u64,
    pub verified_sockets: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreeDefaults {
    pub pipe_bytes: u64,
    pub sndbuf_bytes: u64,
    pub iterations: u64,
    pub sample_ms: u64,
}

reads_defaults!();

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Modes to compare with copy
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<Mode>,
    /// Rounds over these numbers of sockets in flight
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub sockets: Vec<u32>,
    /// A bulk sender and a small one on one CPU: between the sends of the rounds [default: on 64
    /// sockets] it makes sends of these sizes, each drained at once, at random moments
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size,
          conflicts_with_all = ["published", "sweep"])]
    pub beside: Vec<u64>,
    /// The three published configurations, on the CPUs that are here
    #[arg(long, conflicts_with_all = [
        "sockets", "object_bytes", "dataset_bytes", "pipe_bytes", "sndbuf_bytes", "against"
    ])]
    pub published: bool,
    /// Object sizes [default: 1MiB]
    #[arg(long = "object", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub object_bytes: Vec<u64>,
    /// Sizes of the data set that objects are taken from [default: 256MiB with --sockets, else
    /// one object]
    #[arg(long = "dataset", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub dataset_bytes: Vec<u64>,
    /// Size of the reader's pipe [default: 512KiB; with --sockets one object, as far as allowed]
    #[arg(long = "pipe", value_name = "SIZE", value_parser = size)]
    pub pipe_bytes: Option<u64>,
    /// Send buffer [default: 512KiB; with --sockets what takes a whole object]
    #[arg(long = "sndbuf", value_name = "SIZE", value_parser = size)]
    pub sndbuf_bytes: Option<u64>,
    /// Sends in a free-running sample [default: as many as fill its time, at most 100000]
    #[arg(long, hide = true, value_name = "N", conflicts_with = "sockets")]
    pub iterations: Option<u64>,
    /// CPU of the sender and CPU of the reader, or one for both [default: the first two]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<u32>,
    /// Address families, over the loopback: unix, tcp, tcp6, udp, udp6, udp-gso, udplite [default:
    /// unix]
    #[arg(
        long = "family",
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "published"
    )]
    pub families: Vec<Family>,
    /// Every combination of the sweep's sockets, data sets and objects (see --list)
    #[arg(long, conflicts_with_all = ["published", "iterations"])]
    pub sweep: bool,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}

impl Settings {
    pub fn families(&self) -> Vec<Family> {
        let mut families = self.families.clone();
        families.sort_unstable();
        families.dedup();
        if families.is_empty() { vec![Family::Unix] } else { families }
    }

    /// The modes to measure, the baseline first, each once.
    pub fn modes(&self) -> Vec<Mode> {
        let defaults = defaults(self.quick);
        let usual = if self.sweep { &defaults.sweep.modes } else { &defaults.modes };
        // Pages cannot be spliced into datagrams of a size that one chooses.
        let has_no_pages =
            !self.beside.is_empty() || self.families().iter().any(|family| family.is_datagram());
        let mut asked = or(&self.modes, usual);
        asked.retain(|mode| !self.modes.is_empty() || !has_no_pages || *mode != Mode::Vmsplice);
        with_baseline(Mode::Copy, &asked)
    }

    pub fn pairs(&self) -> u32 {
        let defaults = defaults(self.quick);
        self.pairs.unwrap_or(if self.sweep { defaults.sweep.pairs } else { defaults.pairs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_has_modes_and_pairs_of_its_own_unless_told_otherwise() {
        let sweep = Settings { sweep: true, ..Settings::default() };
        assert_eq!(sweep.modes(), [Mode::Copy, Mode::Nt, Mode::Adaptive]);
        assert_eq!(sweep.pairs(), defaults(false).sweep.pairs);
        let told = Settings { modes: vec![Mode::Vmsplice], pairs: Some(9), ..sweep };
        assert_eq!((told.modes(), told.pairs()), (vec![Mode::Copy, Mode::Vmsplice], 9));
        let defaults = &defaults(false).sweep;
        let cells = [defaults.sockets.len(), defaults.dataset_bytes.len()];
        assert_eq!(cells.iter().product::<usize>() * defaults.object_bytes.len(), 72);
    }

    #[test]
    fn families_come_once_and_pages_are_not_spliced_into_datagrams() {
        let settings = Settings { families: vec![Family::Udp, Family::Udp], ..Settings::default() };
        assert_eq!(settings.families(), [Family::Udp]);
        assert!(!settings.modes().contains(&Mode::Vmsplice));
        assert_eq!(Settings::default().families(), [Family::Unix]);
    }
}
