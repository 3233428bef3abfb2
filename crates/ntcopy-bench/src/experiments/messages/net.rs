//! Experiment `net`: its defaults, what a user may set, and the plan of it.

mod sample;

use ntcopy_record::{ExperimentKind, Params, Unavailable};
use serde::Deserialize;

use super::plan::{Between, Sides, fits_datagram};
use super::{Asked, NetMode};
use crate::experiment::{
    Family, Lengths, LoadForm, Rate, Times, one_of, reads_defaults, size, with_baseline,
};
use crate::plan::error::{
    TWO_CPUS, check_connections, check_pairs, check_sizes, check_zeros, places,
};
use crate::plan::{Cpus, PlanError, Sysctl, or, params};

/// More would measure the descriptor tables of two processes.
const MOST_CONNECTIONS: u32 = 2048;
/// What one connection's sockets hold beside the messages, at most.
const SOCKETS_BYTES: u64 = 512 << 10;
const WITH_VETH: &str = "say --veth too";

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

reads_defaults!("net.toml");

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench net --kernel um                       TCP and UDP, in the kernel with the flag
  ntcopy bench net --kernel um --veth                the flag beside tx-nocache-copy, on devices
  ntcopy bench net --veth --modes nocache            tx-nocache-copy on this kernel
  ntcopy bench net --family tcp6 --request 64 --response 1MiB --connections 16 --rate off

Each cell is measured twice. Without a pause, every connection asks again as soon as it is \
answered: transactions per second, CPU time of client and server for each, and how long each took. On \
a schedule, requests come at an offered rate, the same in every mode, whether or not others have \
been answered: how long does a response take, from the moment its request was due?

Modes: plain (the baseline), hinted (with MSG_NTCOPY); with --veth also nocache, the feature tx-nocache-copy of both devices. Both \
sides send alike.

--veth puts client and server into two network namespaces that this program makes, joined by a pair \
of devices for each mode. They have no names and end with the program; the namespace it was started \
in is not touched. This takes root, or a system that lets users make namespaces.";

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Modes to compare with plain; --veth adds nocache
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<NetMode>,
    /// Families; udp-gso is UDP with segmentation offload
    #[arg(long = "family", value_name = "LIST", value_delimiter = ',',
          value_parser = one_of(&FAMILIES, |family| family.as_str()))]
    pub families: Vec<Family>,
    /// Sizes of requests
    #[arg(long = "request", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub request_bytes: Vec<u64>,
    /// Sizes of responses
    #[arg(long = "response", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub response_bytes: Vec<u64>,
    /// Connections of the client
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub connections: Vec<u32>,
    /// Offered when latencies are measured: a part of what the baseline does without a pause,
    /// requests per second, or off
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetCell {
    pub family: Family,
    pub request_bytes: u64,
    pub response_bytes: u64,
    pub connections: u32,
    pub form: LoadForm,
}

impl NetCell {
    pub fn transaction_bytes(&self) -> u64 {
        self.request_bytes + self.response_bytes
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetPlan {
    pub cells: Vec<NetCell>,
    pub sides: Sides,
    pub rate: Rate,
    pub lengths: Lengths,
}

impl NetPlan {
    pub fn samples(&self) -> u64 {
        self.sides.samples(self.cells.len())
    }

    pub fn params(&self, cell: &NetCell, offered_per_1000_s: Option<u64>) -> Params {
        let (between, mtu_bytes) = match self.sides.between {
            Between::Loopback => ("loopback", None),
            Between::Veth { mtu_bytes } => ("veth", Some(mtu_bytes)),
        };
        let [client, server] = self.sides.cpus();
        params([
            ("form", cell.form.as_str().into()),
            ("family", cell.family.as_str().into()),
            ("request_bytes", cell.request_bytes.into()),
            ("response_bytes", cell.response_bytes.into()),
            ("connections", cell.connections.into()),
            ("between", between.into()),
            ("mtu_bytes", mtu_bytes.into()),
            ("offered_requests_per_1000_s", offered_per_1000_s.into()),
            ("client_cpu", client.into()),
            ("server_cpu", server.into()),
        ])
    }

    /// Memory in bytes that the largest cell needs of a kernel that is booted for it: each mode
    /// has its own connections, and each end of one a message to send and room for another.
    pub fn memory_bytes(&self) -> u64 {
        let one = |cell: &NetCell| {
            u64::from(cell.connections) * (4 * cell.transaction_bytes() + SOCKETS_BYTES)
        };
        self.sides.memory_bytes(self.cells.iter().map(one).max().unwrap_or(0))
    }

    pub fn sysctls(&self) -> Vec<Sysctl> {
        let one = |cell: &NetCell| u64::from(cell.connections) * cell.transaction_bytes();
        vec![Sysctl::for_tcp(self.cells.iter().map(one).max().unwrap_or(0))]
    }
}

impl Asked for Settings {
    const EXPERIMENT: ExperimentKind = ExperimentKind::Net;

    type Plan = NetPlan;

    fn plan(&self, cpus: &Cpus) -> Result<NetPlan, PlanError> {
        let defaults = defaults(self.quick);
        let pairs = check_pairs(self.pairs.unwrap_or(defaults.pairs))?;
        let rate = self.rate.unwrap_or(defaults.rate);
        let cells = cells(self, rate)?;
        let sides = Sides {
            modes: modes(self)?,
            between: match self.veth {
                true => Between::Veth { mtu_bytes: defaults.mtu_bytes },
                false => Between::Loopback,
            },
            families: cells.iter().map(|cell| cell.family).collect(),
            connections: cells.iter().map(|cell| cell.connections).max().unwrap_or(0),
            places: places(&self.cpus, cpus, TWO_CPUS)?,
            pairs,
        };
        Ok(NetPlan {
            cells,
            sides,
            rate,
            lengths: Lengths { closed: defaults.closed, open: defaults.open },
        })
    }

    /// One that says nothing of one family may well be had in another.
    fn names(&self, missing: &Unavailable) -> bool {
        missing.cell.is_none() && self.modes.iter().any(|mode| mode.as_str() == missing.mode)
    }
}

/// The baseline, and what was asked for or is measured by default.
fn modes(settings: &Settings) -> Result<Vec<NetMode>, PlanError> {
    let defaults = defaults(settings.quick);
    let usual = if settings.veth { &defaults.veth_modes } else { &defaults.modes };
    let asked = or(&settings.modes, usual);
    if asked.contains(&NetMode::Nocache) && !settings.veth {
        return Err(PlanError::no_device(WITH_VETH));
    }
    Ok(with_baseline(NetMode::Plain, &asked))
}

fn cells(settings: &Settings, rate: Rate) -> Result<Vec<NetCell>, PlanError> {
    let defaults = defaults(settings.quick);
    let families = or(&settings.families, &defaults.families);
    let requests = or(&settings.request_bytes, &defaults.request_bytes);
    let responses = or(&settings.response_bytes, &defaults.response_bytes);
    let connections = or(&settings.connections, &defaults.connections);
    check_zeros(&[("request", requests.contains(&0)), ("response", responses.contains(&0))])?;
    check_connections(&connections, MOST_CONNECTIONS)?;
    check_sizes(&[], &requests)?;
    check_sizes(&[], &responses)?;
    let mut cells = Vec::new();
    for family in families {
        for (request_bytes, response_bytes) in
            requests.iter().flat_map(|one| responses.iter().map(move |other| (*one, *other)))
        {
            fits_datagram(family, request_bytes.max(response_bytes))?;
            for connections in connections.iter().copied() {
                let form = LoadForm::Closed;
                let cell = NetCell { family, request_bytes, response_bytes, connections, form };
                cells.push(cell);
                if rate != Rate::Off {
                    cells.push(NetCell { form: LoadForm::Open, ..cell });
                }
            }
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests;
