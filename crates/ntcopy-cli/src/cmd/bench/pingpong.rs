//! `ntcopy bench pingpong`: one message there and back at a time, in this kernel or in a booted
//! one.

use std::process::ExitCode;

use ntcopy_bench::experiment::{Family, NetMode};
use ntcopy_bench::experiments::pingpong::{self, Settings};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Unavailable};

use super::args::Common;
use super::launch::{KernelCpus, Launch};

const EXAMPLES: &str = "\
Examples:
  ntcopy bench pingpong --kernel um                          in the kernel with the flag
  ntcopy bench pingpong --family udp --message 256 --duration 10 --modes copy
  ntcopy bench pingpong --family tcp --message 14000,60000 --cpus 0,1

A message goes, comes back, and the next one goes, as `sockperf ping-pong` does it. A latency is \
half of a round trip's time. Modes are compared by interleaved samples.

Modes: copy (plain sends, the baseline), nt (MSG_NTCOPY, obeyed), adaptive (MSG_NTCOPY, and the \
kernel's rule decides). Both sides send alike. Messages below a page are never \
copied non-temporally: there the modes show what asking costs.";

/// Arguments of `bench pingpong`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct PingPongArgs {
    /// Modes to compare with copy [default: nt,adaptive]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<NetMode>,
    /// Families: unix, tcp, tcp6, udp, udp6 [default: unix,tcp,udp]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    family: Vec<Family>,
    /// Sizes of the message [default: 256,14000,60000; with --quick 256,14000]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    message: Vec<Bytes>,
    /// Seconds that each mode runs in each cell, all its samples together [default: 3; with --quick
    /// 0.25]
    #[arg(long, value_name = "SECONDS")]
    duration: Option<f64>,
    /// CPUs of client and server, or one for both [default: wherever the system likes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Vec<u32>,
}

impl PingPongArgs {
    fn settings(&self, common: &Common) -> Settings {
        Settings {
            modes: self.modes.clone(),
            families: self.family.clone(),
            message_bytes: self.message.iter().map(|size| size.0).collect(),
            duration_s: self.duration,
            cpus: self.cpus.clone(),
            pairs: common.extent.pairs,
            quick: common.extent.quick,
        }
    }
}

pub fn run(common: &Common, args: &PingPongArgs) -> anyhow::Result<ExitCode> {
    let is_asked = |line: &Unavailable| args.modes.iter().any(|mode| mode.as_str() == line.mode);
    let launch = Launch {
        common,
        experiment: ExperimentKind::Pingpong,
        // Its processes take turns.
        kernel_cpus: KernelCpus::Free(1),
        worker_args: super::server_args(),
        against: None,
        plan: &|cpus| pingpong::plan(&args.settings(common), cpus),
        is_asked: &is_asked,
    };
    launch.run()
}
