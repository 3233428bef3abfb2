//! Experiment `pingpong`: its defaults, what a user may set, and the plan of it.

mod sample;

use std::time::Duration;

use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Params, Unavailable};
use serde::Deserialize;

use super::plan::{Between, Sides, fits_datagram};
use super::{Asked, NetMode};
use crate::experiment::{Family, one_of, reads_defaults, size, with_baseline};
use crate::plan::error::{TWO_CPUS, check_pairs, check_sizes, places};
use crate::plan::{Cpus, PlanError, or, params};

pub const FAMILIES: [Family; 5] =
    [Family::Unix, Family::Tcp, Family::Tcp6, Family::Udp, Family::Udp6];

/// The fewest bytes of a message, which begins with its number.
const SMALLEST_MESSAGE_BYTES: u64 = 8;
/// Shorter, and a mode's figure is of a handful of messages.
const SHORTEST_S: f64 = 0.05;
const LONGEST_S: f64 = 86_400.0;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: NetMode,
    pub modes: Vec<NetMode>,
    pub families: Vec<Family>,
    pub message_bytes: Vec<u64>,
    pub duration_ms: u64,
    pub warm_up_ms: u64,
    pub pairs: u32,
}

reads_defaults!("pingpong.toml");

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench pingpong --kernel um                          in the kernel with the flag
  ntcopy bench pingpong --family udp --message 256 --duration 10 --modes plain
  ntcopy bench pingpong --family tcp --message 14000,60000 --cpus 0,1

A message goes, comes back, and the next one goes, as `sockperf ping-pong` does it. A latency is \
half of a round trip's time. Modes are compared by interleaved samples.

Modes: plain (the baseline), hinted (with MSG_NTCOPY). Both sides send alike. Messages below a page are never \
copied non-temporally: there the modes show what asking costs.";

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Modes to compare with plain
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<NetMode>,
    /// Families
    #[arg(long = "family", value_name = "LIST", value_delimiter = ',',
          value_parser = one_of(&FAMILIES, |family| family.as_str()))]
    pub families: Vec<Family>,
    /// Sizes of the message
    #[arg(long = "message", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub message_bytes: Vec<u64>,
    /// Seconds that each mode runs in each cell, all its samples together [default: 3; with --quick
    /// 0.25]
    #[arg(long = "duration", value_name = "SECONDS")]
    pub duration_s: Option<f64>,
    /// CPUs of client and server, or one for both [default: wherever the system likes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<u32>,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PingPongCell {
    pub family: Family,
    pub message_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PingPongPlan {
    pub cells: Vec<PingPongCell>,
    pub sides: Sides,
    pub sample: Duration,
    pub warm_up: Duration,
}

impl PingPongPlan {
    pub fn samples(&self) -> u64 {
        self.sides.samples(self.cells.len())
    }

    pub fn params(&self, cell: &PingPongCell) -> Params {
        let [client, server] = self.sides.cpus();
        params([
            ("form", "pingpong".into()),
            ("family", cell.family.as_str().into()),
            ("message_bytes", cell.message_bytes.into()),
            ("client_cpu", client.into()),
            ("server_cpu", server.into()),
        ])
    }

    pub fn memory_bytes(&self) -> u64 {
        let message = self.cells.iter().map(|cell| cell.message_bytes).max().unwrap_or(0);
        self.sides.memory_bytes(8 * message)
    }
}

impl Asked for Settings {
    const EXPERIMENT: ExperimentKind = ExperimentKind::Pingpong;

    type Plan = PingPongPlan;

    fn plan(&self, cpus: &Cpus) -> Result<PingPongPlan, PlanError> {
        let defaults = defaults(self.quick);
        let pairs = check_pairs(self.pairs.unwrap_or(defaults.pairs))?;
        let duration = match self.duration_s {
            None => Duration::from_millis(defaults.duration_ms),
            Some(seconds) if (SHORTEST_S..=LONGEST_S).contains(&seconds) => {
                Duration::from_secs_f64(seconds)
            }
            Some(seconds) => {
                return Err(format!("--duration {seconds}: seconds, from 0.05 to 86400").into());
            }
        };
        let asked = or(&self.modes, &defaults.modes);
        if asked.contains(&NetMode::Nocache) {
            return Err(PlanError::no_device("`ntcopy bench net --veth` has one"));
        }
        let cells = cells(self)?;
        let sides = Sides {
            modes: with_baseline(NetMode::Plain, &asked),
            between: Between::Loopback,
            families: cells.iter().map(|cell| cell.family).collect(),
            connections: 1,
            places: places(&self.cpus, cpus, TWO_CPUS)?,
            pairs,
        };
        Ok(PingPongPlan {
            cells,
            sides,
            sample: duration / pairs,
            warm_up: Duration::from_millis(defaults.warm_up_ms),
        })
    }

    fn names(&self, missing: &Unavailable) -> bool {
        self.modes.iter().any(|mode| mode.as_str() == missing.mode)
    }
}

fn cells(settings: &Settings) -> Result<Vec<PingPongCell>, PlanError> {
    let defaults = defaults(settings.quick);
    let families = or(&settings.families, &defaults.families);
    let messages = or(&settings.message_bytes, &defaults.message_bytes);
    if let Some(small) = messages.iter().find(|bytes| **bytes < SMALLEST_MESSAGE_BYTES) {
        let small = Bytes(*small);
        let what = "a message begins with its number, which takes 8 bytes";
        return Err(format!("--message {small}: {what}").into());
    }
    check_sizes(&[], &messages)?;
    let mut cells = Vec::new();
    for family in families {
        for message_bytes in messages.iter().copied() {
            fits_datagram(family, message_bytes)?;
            cells.push(PingPongCell { family, message_bytes });
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(settings: &Settings) -> Result<PingPongPlan, PlanError> {
        settings.plan(&Cpus::two())
    }

    #[test]
    fn the_duration_is_that_of_all_samples_of_a_mode() {
        let settings = Settings { duration_s: Some(10.0), pairs: Some(20), ..Settings::default() };
        let plan = made(&settings).unwrap();
        assert_eq!(plan.sample, Duration::from_millis(500));
        assert_eq!(plan.cells.len(), 9);
        assert_eq!(plan.params(&plan.cells[0])["message_bytes"], 256);
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let settings = Settings { duration_s: Some(seconds), ..Settings::default() };
            let error = made(&settings).unwrap_err().to_string();
            assert!(error.starts_with("--duration"), "{error}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let refused = |settings: Settings| made(&settings).unwrap_err().to_string();
        let all = Settings::default;
        assert!(refused(Settings { message_bytes: vec![7], ..all() }).contains("takes 8 bytes"));
        let large = Settings { message_bytes: vec![70_000], ..all() };
        assert!(refused(large).contains("more than a datagram holds"));
        let nocache = Settings { modes: vec![NetMode::Nocache], ..all() };
        assert!(made(&nocache).is_err());
    }
}
