//! `ntcopy bench retention`: what sends leave of the cache.

use std::process::ExitCode;

use ntcopy_bench::experiments::sends::retention::{self, Settings};
use ntcopy_record::ExperimentKind;

use super::against::AgainstArgs;
use super::args::Common;
use super::launch::{KernelCpus, Launch};

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench retention --kernel um                   256 KiB on one socket, 1 MiB on 64
  ntcopy bench retention --kernel um --hot-set 256KiB,1MiB --sockets 64
  ntcopy bench retention --kernel um --against stock     relative to a stock kernel

What do large sends cost another program on this CPU? That program has a hot set, reads it line \
after line in random order after every send, on the sender's CPU, and times itself. The traffic \
beside it is the same in every mode; idle is the time without traffic. A booted kernel is put on one \
CPU of the host, so that both share its caches. Modes: plain, hinted. What a copy in user \
space leaves of a cache is told by ntcopy footprint.";

#[derive(clap::Args)]
pub struct RetentionArgs {
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    against: AgainstArgs,
}

pub fn run(common: &Common, args: &RetentionArgs) -> anyhow::Result<ExitCode> {
    let asked = &args.settings.modes;
    let settings = args.against.settings(&args.settings, asked, Settings::one_boot);
    let launch = Launch {
        common,
        experiment: ExperimentKind::Retention,
        kernel_cpus: KernelCpus::OnePinned,
        worker_args: super::process_args("reader"),
        against: args.against.boots(common, asked, retention::defaults(common.extent.quick).pairs),
        plan: &|cpus| retention::plan(&settings, cpus),
        is_asked: &super::names_or_lacks(asked),
    };
    launch.run()
}
