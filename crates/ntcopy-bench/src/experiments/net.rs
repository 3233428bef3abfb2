//! Experiment `net`: its defaults and what a user may set.

mod plan;
mod sample;

use serde::Deserialize;

pub use self::plan::{NetCell, NetPlan, plan};

use crate::experiment::{Family, NetMode, Rate, Times, reads_defaults, size};

pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/net.toml");

pub const FAMILIES: [Family; 5] =
    [Family::Tcp, Family::Tcp6, Family::Udp, Family::Udp6, Family::UdpGso];

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: NetMode,
    pub modes: Vec<NetMode>,
    pub veth_modes: Vec<NetMode>,
    pub families: Vec<Family>,
    pub request_bytes: Vec<u64>,
    pub response_bytes: Vec<u64>,
    pub connections: Vec<u32>,
    pub mtu_bytes: u32,
    pub pairs: u32,
    pub rate: Rate,
    pub closed: Times,
    pub open: Times,
}

reads_defaults!();

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Modes to compare with copy [default: nt,adaptive; with --veth also nocache]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<NetMode>,
    /// Families: tcp, tcp6, udp, udp6, udp-gso (UDP with segmentation offload) [default: tcp,udp; with --quick tcp]
    #[arg(long = "family", value_name = "LIST", value_delimiter = ',')]
    pub families: Vec<Family>,
    /// Sizes of requests [default: 14000]
    #[arg(long = "request", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub request_bytes: Vec<u64>,
    /// Sizes of responses [default: 14000]
    #[arg(long = "response", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub response_bytes: Vec<u64>,
    /// Connections of the client [default: 1,16,128; with --quick 1,16]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub connections: Vec<u32>,
    /// Offered when latencies are measured: a part of what the baseline does without a pause,
    /// requests per second, or off [default: 0.7]
    #[arg(long, value_name = "FRACTION|REQ/S")]
    pub rate: Option<Rate>,
    /// Through a pair of devices between two network namespaces, instead of the loopback
    #[arg(long)]
    pub veth: bool,
    /// CPUs of client and server, or one for both [default: wherever the system likes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<u32>,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}
