//! `ntcopy bench net`: requests and responses over TCP and UDP, in this kernel or in a booted one.

use std::process::ExitCode;

use ntcopy_bench::experiment::{Family, NetMode, Rate};
use ntcopy_bench::experiments::net::{self, Settings};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Unavailable};

use super::args::Common;
use super::launch::{KernelCpus, Launch};

const EXAMPLES: &str = "\
Examples:
  ntcopy bench net --kernel um                       TCP and UDP, in the kernel with the flag
  ntcopy bench net --kernel um --veth                the flag beside tx-nocache-copy, on devices
  ntcopy bench net --veth --modes nocache            tx-nocache-copy on this kernel
  ntcopy bench net --family tcp6 --request 64 --response 1MiB --connections 16 --rate off

Each cell is measured twice. Without a pause, every connection asks again as soon as it is \
answered: transactions per second, CPU time of client and server for each, and how long each took. On \
a schedule, requests come at an offered rate, the same in every mode, whether or not others have \
been answered: how long does a response take, from the moment its request was due?

Modes: copy (plain sends, the baseline), nt (MSG_NTCOPY, obeyed), adaptive (MSG_NTCOPY, and the \
kernel's rule decides); with --veth also nocache, the feature tx-nocache-copy of both devices. Both \
sides send alike.

--veth puts client and server into two network namespaces that this program makes, joined by a pair \
of devices for each mode. They have no names and end with the program; the namespace it was started \
in is not touched. This takes root, or a system that lets users make namespaces.";

/// Arguments of `bench net`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct NetArgs {
    /// Modes to compare with copy [default: nt,adaptive; with --veth also nocache]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<NetMode>,
    /// Families: tcp, tcp6, udp, udp6, udp-gso (UDP with segmentation offload) [default: tcp,udp; with --quick tcp]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    family: Vec<Family>,
    /// Sizes of requests [default: 14000]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    request: Vec<Bytes>,
    /// Sizes of responses [default: 14000]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    response: Vec<Bytes>,
    /// Connections of the client [default: 1,16,128; with --quick 1,16]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    connections: Vec<u32>,
    /// Offered when latencies are measured: a part of what the baseline does without a pause,
    /// requests per second, or off [default: 0.7]
    #[arg(long, value_name = "FRACTION|REQ/S")]
    rate: Option<Rate>,
    /// Through a pair of devices between two network namespaces, instead of the loopback
    #[arg(long)]
    veth: bool,
    /// CPUs of client and server, or one for both [default: wherever the system likes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Vec<u32>,
}

impl NetArgs {
    fn settings(&self, common: &Common) -> Settings {
        let sizes = |sizes: &[Bytes]| sizes.iter().map(|size| size.0).collect();
        Settings {
            modes: self.modes.clone(),
            families: self.family.clone(),
            request_bytes: sizes(&self.request),
            response_bytes: sizes(&self.response),
            connections: self.connections.clone(),
            rate: self.rate,
            veth: self.veth,
            cpus: self.cpus.clone(),
            pairs: common.extent.pairs,
            quick: common.extent.quick,
        }
    }
}

pub fn run(common: &Common, args: &NetArgs) -> anyhow::Result<ExitCode> {
    // A mode that says nothing of one family may well be had in another.
    let is_asked = |line: &Unavailable| {
        line.cell.is_none() && args.modes.iter().any(|mode| mode.as_str() == line.mode)
    };
    let launch = Launch {
        common,
        experiment: ExperimentKind::Net,
        // Its processes take turns, and what one of them costs then shows.
        kernel_cpus: KernelCpus::Free(1),
        worker_args: super::server_args(),
        against: None,
        plan: &|cpus| net::plan(&args.settings(common), cpus),
        is_asked: &is_asked,
    };
    launch.run()
}
