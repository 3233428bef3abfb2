//! Experiment `net`: its defaults and what a user may set.

mod plan;
mod sample;

use serde::Deserialize;

pub use self::plan::{NetCell, NetPlan, plan};
use ntcopy_record::ExperimentKind;

use crate::experiment::{Closed, Family, NetMode, Open, Rate, reads_defaults};

/// The defaults as they ship, with their comments.
pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/net.toml");

/// The families that requests and responses can go through.
pub const FAMILIES: [Family; 5] =
    [Family::Tcp, Family::Tcp6, Family::Udp, Family::Udp6, Family::UdpGso];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub name: ExperimentKind,
    /// What it does, in a line.
    pub about: String,
    /// The mode that the others are compared with.
    pub baseline: String,
    /// Modes that are measured when none are asked for, over the loopback.
    pub modes: Vec<String>,
    pub veth_modes: Vec<String>,
    /// Families that are measured when none are asked for.
    pub families: Vec<String>,
    pub quick_families: Vec<String>,
    pub request_bytes: Vec<u64>,
    pub response_bytes: Vec<u64>,
    pub connections: Vec<u32>,
    pub quick_connections: Vec<u32>,
    /// The largest packet of the devices in bytes.
    pub mtu_bytes: u32,
    pub pairs: u32,
    pub quick_pairs: u32,
    /// The defaults of the form that asks without a pause.
    pub closed: Closed,
    /// The defaults of the form that asks on a schedule.
    pub open: Open,
}

reads_defaults!("net");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// The modes; the baseline is always among them.
    pub modes: Vec<NetMode>,
    pub families: Vec<Family>,
    pub request_bytes: Vec<u64>,
    pub response_bytes: Vec<u64>,
    pub connections: Vec<u32>,
    pub rate: Option<Rate>,
    /// Two network namespaces and a pair of devices between them, instead of the loopback.
    pub veth: bool,
    /// CPUs of client and server, or one for both.
    pub cpus: Vec<u32>,
    pub pairs: Option<u32>,
    /// Fewer groups, shorter samples.
    pub quick: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_name_what_there_is() {
        let defaults = defaults();
        assert_eq!(defaults.name, ExperimentKind::Net);
        assert_eq!(defaults.baseline.parse(), Ok(NetMode::Copy));
        for modes in [&defaults.modes, &defaults.veth_modes] {
            assert!(modes.iter().all(|mode| mode.parse::<NetMode>().is_ok()), "{modes:?}");
            assert_eq!(modes[0], defaults.baseline);
        }
        for families in [&defaults.families, &defaults.quick_families] {
            let has = |family: &String| FAMILIES.iter().any(|known| known.as_str() == family);
            assert!(families.iter().all(has), "{families:?}");
        }
        assert!(defaults.quick_pairs >= 5 && defaults.pairs >= defaults.quick_pairs);
    }
}
