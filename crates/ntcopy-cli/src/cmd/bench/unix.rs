//! `ntcopy bench unix`: sends, and a reader that splices them away.

use std::process::ExitCode;

use ntcopy_bench::experiments::sends::unix::{self, Settings};
use ntcopy_record::ExperimentKind;

use super::against::AgainstArgs;
use super::args::Common;
use super::launch::{KernelCpus, Launch};

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench unix --kernel um --sockets 1,8,64      where do hinted sends pay?
  ntcopy bench unix --kernel um --sweep               everywhere: 144 cells, some minutes
  ntcopy bench unix --kernel um --sweep --quick --family tcp,udp
  ntcopy bench unix --kernel um --published           the three published configurations
  ntcopy bench unix --kernel um --against stock   relative to plain sends of a stock kernel
  ntcopy bench unix --kernel um --against module      ntcopy.ko relative to the patches
  ntcopy bench unix --kernel um --against out/series/7.3     relative to other patches
  ntcopy bench unix --kernel um --beside 64KiB        a small sender beside a bulk one

With --sockets or --sweep a round fills every socket with one object and then drains them all, so \
the bytes in flight are exactly sockets x object. Without them, sender and reader run freely on one \
socket.

Modes: plain (the baseline), hinted (with MSG_NTCOPY), vmsplice (no copy at all; its buffer must not be touched again until the \
reader is done with it).";

#[derive(clap::Args)]
pub struct UnixArgs {
    /// Boot two CPUs, for sender and reader, each on one of the host's with an L2 of its own
    #[arg(long)]
    own_caches: bool,
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    against: AgainstArgs,
}

impl UnixArgs {
    /// CPUs of a booted kernel. A round hands over, so one will do; a free run keeps two busy.
    fn kernel_cpus(&self) -> KernelCpus {
        let is_in_rounds = self.against.kernel().is_some() || self.settings.is_in_rounds();
        if is_in_rounds { KernelCpus::OnePinned } else { KernelCpus::Free(2) }
    }
}

pub fn run(common: &Common, args: &UnixArgs) -> anyhow::Result<ExitCode> {
    let settings = args.against.settings(&args.settings, &args.settings.modes, Settings::one_boot);
    let launch = Launch {
        common,
        experiment: ExperimentKind::Unix,
        kernel_cpus: args.kernel_cpus().or_own_caches(args.own_caches),
        worker_args: super::process_args("reader"),
        against: args.against.boots(
            common,
            &args.settings.modes,
            unix::defaults(common.extent.quick).pairs,
        ),
        plan: &|cpus| unix::plan(&settings, cpus),
        is_asked: &super::names_or_lacks(&args.settings.modes),
    };
    launch.run()
}
