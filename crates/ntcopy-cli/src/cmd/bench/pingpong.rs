//! `ntcopy bench pingpong`: one message there and back at a time, in this kernel or in a booted
//! one.

use std::process::ExitCode;

use ntcopy_bench::experiments::pingpong::{self, Settings};
use ntcopy_record::{ExperimentKind, Unavailable};

use super::args::Common;
use super::launch::{KernelCpus, Launch};

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench pingpong --kernel um                          in the kernel with the flag
  ntcopy bench pingpong --family udp --message 256 --duration 10 --modes copy
  ntcopy bench pingpong --family tcp --message 14000,60000 --cpus 0,1

A message goes, comes back, and the next one goes, as `sockperf ping-pong` does it. A latency is \
half of a round trip's time. Modes are compared by interleaved samples.

Modes: copy (plain sends, the baseline), nt (MSG_NTCOPY, obeyed), adaptive (MSG_NTCOPY, and the \
kernel's rule decides). Both sides send alike. Messages below a page are never \
copied non-temporally: there the modes show what asking costs.";

pub fn run(common: &Common, settings: &Settings) -> anyhow::Result<ExitCode> {
    let is_asked =
        |line: &Unavailable| settings.modes.iter().any(|mode| mode.as_str() == line.mode);
    let launch = Launch {
        common,
        experiment: ExperimentKind::Pingpong,
        // Its processes take turns.
        kernel_cpus: KernelCpus::Free(1),
        worker_args: super::server_args(),
        against: None,
        plan: &|cpus| pingpong::plan(settings, cpus),
        is_asked: &is_asked,
    };
    launch.run()
}
