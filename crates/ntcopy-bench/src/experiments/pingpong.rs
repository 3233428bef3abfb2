//! Experiment `pingpong`: its defaults and what a user may set.

mod plan;
mod sample;

use serde::Deserialize;

pub use self::plan::{PingPongCell, PingPongPlan, plan};

use crate::experiment::{Family, NetMode, reads_defaults, size};

pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/pingpong.toml");

pub const FAMILIES: [Family; 5] =
    [Family::Unix, Family::Tcp, Family::Tcp6, Family::Udp, Family::Udp6];

/// The fewest bytes of a message, which begins with its number.
pub const SMALLEST_MESSAGE_BYTES: u64 = 8;

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

reads_defaults!();

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Modes to compare with copy [default: nt,adaptive]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<NetMode>,
    /// Families: unix, tcp, tcp6, udp, udp6 [default: unix,tcp,udp]
    #[arg(long = "family", value_name = "LIST", value_delimiter = ',')]
    pub families: Vec<Family>,
    /// Sizes of the message [default: 256,14000,60000; with --quick 256,14000]
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
