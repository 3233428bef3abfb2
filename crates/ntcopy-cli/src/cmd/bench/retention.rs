//! `ntcopy bench retention`: what copies, or sends, leave of the cache.

use std::process::ExitCode;

use ntcopy::cpu::Cpu;
use ntcopy_bench::experiments::retention::copies::plan::{self as copies_plan, CopiesPlan, Here};
use ntcopy_bench::experiments::retention::{self, Settings};
use ntcopy_bench::machine::HostFacts;
use ntcopy_bench::run;
use ntcopy_record::{CpuList, ExperimentKind, Unavailable};

use super::against::AgainstArgs;
use super::args::Common;
use super::launch::{How, KernelCpus, Launch};
use crate::cmd::{not_available, usage};

pub const EXAMPLES: &str = "\
Examples:
  ntcopy bench retention                               copies, on this kernel
  ntcopy bench retention --victim neighbour --hot-set 4MiB,64MiB --rate 5GB/s,10GB/s
  ntcopy bench retention --kernel um                   sends: 256 KiB on one socket, 1 MiB on 64
  ntcopy bench retention --kernel um --hot-set 256KiB,1MiB --sockets 64
  ntcopy bench retention --kernel um --against unpatched     relative to a stock kernel

What do large copies, or sends, cost another program on this CPU? That program has a hot set, reads \
it line after line in random order, and times itself. The traffic beside it is the same in every \
mode; idle is the time without traffic.

Copies are measured, unless --sockets, --family or --kernel asks for sends. The other program is on \
the same core, where one pass of it and one copy take turns, or on a neighbour that shares the \
last-level cache, while copies run at the offered rate. Where a mode cannot copy as much, every \
mode is offered less, and the cell is marked. Modes: copy (normal), nt (non-temporal destination), \
nt-both (and a non-temporal source).

Sends. The other program reads its hot set after every send, on the sender's CPU. A booted kernel \
is put on one CPU of the host, so that both share its caches. Modes: copy, nt, adaptive.";

/// Arguments of `bench retention`.
#[derive(clap::Args)]
pub struct RetentionArgs {
    #[command(flatten)]
    pub settings: Settings,
    #[command(flatten)]
    against: AgainstArgs,
}

pub fn run(common: &Common, args: &RetentionArgs) -> anyhow::Result<ExitCode> {
    if args.is_of_sends(common) { sends(common, args) } else { copies(common, &args.settings) }
}

impl RetentionArgs {
    /// Whether sends are asked for: by what only they have, or by a kernel to measure in.
    fn is_of_sends(&self, common: &Common) -> bool {
        // Inside a booted kernel, --kernel is host and --measure-only is set.
        let in_a_kernel = common.place.kernel != "host" || common.place.measure_only;
        let of_sends = !self.settings.sockets.is_empty() || self.settings.family.is_some();
        in_a_kernel || of_sends || self.against.kernel().is_some()
    }
}

fn sends(common: &Common, args: &RetentionArgs) -> anyhow::Result<ExitCode> {
    let mut settings = args.settings.clone();
    let of_copies = [
        ("victim", !settings.victims.is_empty()),
        ("rate", !settings.rates_bytes_per_s.is_empty()),
    ];
    if let Some((option, _)) = of_copies.iter().find(|(_, is_given)| *is_given) {
        return Err(usage(format!("--{option} is of copies: with --kernel, sends are measured")));
    }
    let asked = &args.settings.modes;
    if let Some(modes) = args.against.modes(asked) {
        settings = Settings {
            modes,
            quick: true,
            pairs: Some(retention::defaults(true).sends.pairs),
            ..settings
        };
    }
    let launch = Launch {
        common,
        experiment: ExperimentKind::Retention,
        kernel_cpus: KernelCpus::OnePinned,
        worker_args: super::process_args("reader"),
        against: args.against.boots(
            common,
            asked,
            retention::defaults(common.extent.quick).sends.pairs,
        ),
        plan: &|cpus| retention::plan_sends(&settings, cpus),
        is_asked: &super::names_or_lacks(asked),
    };
    launch.run()
}

fn copies(common: &Common, settings: &Settings) -> anyhow::Result<ExitCode> {
    if common.list {
        super::list(&ExperimentKind::Retention);
        return Ok(ExitCode::SUCCESS);
    }
    // A bad NTCOPY_ISA would otherwise be measured as if it had not been set.
    ntcopy::init().map_err(usage)?;
    let plan = copies_plan::plan(settings, &here()?).map_err(usage)?;
    if let Some(why) = nothing_to_measure(&plan) {
        return Err(not_available(why));
    }
    // Without --victim, a machine of one CPU has measured what there is.
    let is_asked =
        |line: &Unavailable| settings.modes.contains(&line.mode) || !settings.victims.is_empty();
    How::from(common).measure(&plan, &is_asked)
}

/// The machine as the plan has to know it.
fn here() -> anyhow::Result<Here> {
    let allowed = run::cpus()?.allowed;
    let victim_cpu = allowed.first().copied().unwrap_or(0);
    let detected = Cpu::detect();
    let l2 = detected.caches.iter().chain(&detected.sysfs_caches).find(|cache| cache.level == 2);
    let llc_bytes = detected.llc_bytes();
    let topology = HostFacts::detect().topology;
    let with_it = |lists: &[CpuList]| {
        let mut lists = lists.iter().map(CpuList::numbers);
        lists.find(|cpus| cpus.contains(&victim_cpu)).map(<[u32]>::to_vec)
    };
    let caches = topology.iter().flat_map(|all| &all.caches);
    let caches = caches.filter_map(|cache| Some((cache.level, with_it(&cache.cpus)?)));
    Ok(Here {
        allowed,
        victim_cpu,
        sharing_llc: caches.max_by_key(|(level, _)| *level).map(|(_, cpus)| cpus),
        sharing_core: topology.as_ref().and_then(|all| with_it(&all.cores)),
        // Where the caches are not known, a common size of L2 makes the first hot set.
        l2_bytes: l2.map_or(1 << 20, |cache| cache.size_bytes),
        llc_bytes,
    })
}

/// Why no cell can be measured, if none can.
fn nothing_to_measure(plan: &CopiesPlan) -> Option<&str> {
    if plan.cells.iter().any(|cell| cell.streamer.is_ok()) {
        return None;
    }
    plan.cells.iter().find_map(|cell| cell.streamer.as_ref().err()).map(String::as_str)
}
