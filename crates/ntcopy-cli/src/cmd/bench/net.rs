//! `ntcopy bench net` and `ntcopy bench pingpong`: requests and responses over TCP and UDP, and one
//! message there and back at a time, in this kernel or in a booted one.

use std::process::ExitCode;

use ntcopy_bench::experiments::messages::{net, pingpong};
use ntcopy_bench::plan::{Cpus, PlanError};
use ntcopy_bench::sample::Bootable;
use ntcopy_record::{ExperimentKind, Unavailable};

use super::args::Common;
use super::launch::{IsAsked, KernelCpus, Launch};
use super::names;

pub const NET_EXAMPLES: &str = "\
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

pub const PINGPONG_EXAMPLES: &str = "\
Examples:
  ntcopy bench pingpong --kernel um                          in the kernel with the flag
  ntcopy bench pingpong --family udp --message 256 --duration 10 --modes plain
  ntcopy bench pingpong --family tcp --message 14000,60000 --cpus 0,1

A message goes, comes back, and the next one goes, as `sockperf ping-pong` does it. A latency is \
half of a round trip's time. Modes are compared by interleaved samples.

Modes: plain (the baseline), hinted (with MSG_NTCOPY). Both sides send alike. Messages below a page are never \
copied non-temporally: there the modes show what asking costs.";

pub fn net(common: &Common, settings: &net::Settings) -> anyhow::Result<ExitCode> {
    // A mode that says nothing of one family may well be had in another.
    let is_asked = |line: &Unavailable| line.cell.is_none() && names(&settings.modes)(line);
    served(common, ExperimentKind::Net, &|cpus| net::plan(settings, cpus), &is_asked)
}

pub fn pingpong(common: &Common, settings: &pingpong::Settings) -> anyhow::Result<ExitCode> {
    let plan = |cpus: &Cpus| pingpong::plan(settings, cpus);
    served(common, ExperimentKind::Pingpong, &plan, &names(&settings.modes))
}

/// Measures a client and a server.
fn served<P: Bootable>(
    common: &Common,
    experiment: ExperimentKind,
    plan: &dyn Fn(&Cpus) -> Result<P, PlanError>,
    is_asked: IsAsked<'_>,
) -> anyhow::Result<ExitCode> {
    let launch = Launch {
        common,
        experiment,
        // Its processes take turns, and what one of them costs then shows.
        kernel_cpus: KernelCpus::Free(1),
        worker_args: super::process_args("server"),
        against: None,
        plan,
        is_asked,
    };
    launch.run()
}
