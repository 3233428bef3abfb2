//! `ntcopy bench app`: small requests beside large ones in an unmodified program, in this kernel or
//! in a booted one.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ntcopy_bench::experiments::app::{self, AppMode, AppPlan, Hinting, LargeRate, Settings};
use ntcopy_bench::plan::{Cpus, PlanError};
use ntcopy_record::{ExperimentKind, Record};

use super::against::{AgainstArgs, KernelPair};
use super::args::Common;
use super::launch::{KernelCpus, Launch};
use crate::cmd::hinted::Family;
use crate::cmd::{not_available, run as hint, usage};

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench app --kernel um                       memcached, in the kernel with the flag
  ntcopy bench app --kernel um --quick --modes hinted
  ntcopy bench app --kernel um --connections 16 --large-rate 0.25,0.5,0.75,max    a curve
  ntcopy bench app --kernel um --against stock   relative to a stock kernel

One client asks memcached for 100 hot keys at a time, at random moments, whether or not others \
have been answered; a latency counts from the moment its request was due. Beside that, connections \
fetch large values and drop them in the socket unread, at an offered rate or without a pause. It \
is the distribution's package, has one thread and listens on a unix socket. Another program: \
ntcopy try.

Modes: plain (the program as it is, the baseline), idle (the same without large requests), hinted \
(under `ntcopy run`, its large sends hinted). Servers are started again for each mode and pair.

A booted kernel has one CPU for program and client, or two with --own-caches. There and on this \
kernel the program is kept on the first CPU that this process may run on, and the client on the \
second.

With --against what is offered is found out in the first boot: --large-rate is no fraction then \
[default: 1GB/s], --connections [default: 16,64]. idle is the other kernel's.

Every value is compared when the servers have started; after each sample all hot values and one \
large one; during it one value of each multiget, and both ends of each large one.";

#[derive(clap::Args)]
pub struct AppArgs {
    /// Boot two CPUs, for program and client, each on one of the host's with an L2 of its own
    #[arg(long)]
    own_caches: bool,
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    against: AgainstArgs,
    /// The library of `ntcopy run`, if not the one that belongs to this program
    #[arg(long, hide = true, value_name = "FILE")]
    library: Option<PathBuf>,
}

/// What multigets all boots after the first are offered.
fn multigets(first: &Record) -> Vec<OsString> {
    let per_s = app::settled_per_s(first);
    per_s.map(|rate| vec!["--rate".into(), rate.to_string().into()]).unwrap_or_default()
}

impl AppArgs {
    /// The boots of two kernels, if any are asked for.
    fn boots<'a>(&'a self, common: &'a Common) -> Option<KernelPair<'a>> {
        let pairs = app::defaults(common.extent.quick).pairs;
        Some(self.against.boots(common, &self.settings.modes, pairs)?.settling(multigets))
    }

    fn plan(&self, program: &Path, cpus: &Cpus) -> Result<AppPlan, PlanError> {
        let hinting: BTreeMap<AppMode, Hinting> = [(AppMode::Hinted, self.hinted(program))].into();
        let settings =
            self.against.settings(&self.settings, &self.settings.modes, Settings::of_one_boot);
        app::plan(&settings, program.to_path_buf(), hinting, cpus)
    }

    /// How the program is hinted, as `ntcopy run` would.
    fn hinted(&self, program: &Path) -> Hinting {
        let asked = hint::Hint {
            min_bytes: None,
            family: vec![Family::Unix],
            library: self.library.clone(),
        };
        match hint::Hinting::of(&asked, program.as_os_str()) {
            Ok(hinting) if hinting.in_the_way().next().is_none() => Ok(hinting.environment),
            Ok(hinting) => Err(hinting.in_the_way().cloned().collect::<Vec<_>>().join("; ")),
            Err(_) => Err(format!("{} cannot be run", program.display())),
        }
    }
}

pub fn run(common: &Common, args: &AppArgs) -> anyhow::Result<ExitCode> {
    let is_fraction = |rate: &&LargeRate| matches!(rate, LargeRate::OfBaseline(_));
    if let Some(rate) = args
        .settings
        .large_rates
        .iter()
        .find(is_fraction)
        .filter(|_| args.against.kernel().is_some())
    {
        let rate = rate.asked();
        return Err(usage(format!(
            "--large-rate {rate}: both kernels are offered the same: say bytes per second, or max"
        )));
    }
    let program = match app::find() {
        Ok(program) => program,
        Err(_) if common.list => PathBuf::new(),
        Err(why) => return Err(not_available(why)),
    };
    let launch = Launch {
        common,
        experiment: ExperimentKind::App,
        // Program and client take turns, and share the caches of one CPU.
        kernel_cpus: KernelCpus::OnePinned.or_own_caches(args.own_caches),
        worker_args: Vec::new(),
        against: args.boots(common),
        plan: &|cpus| args.plan(&program, cpus),
        is_asked: &super::names(&args.settings.modes),
    };
    launch.run()
}
