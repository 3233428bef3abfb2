//! `ntcopy bench retention`: what copies, or sends, leave of the cache.

use std::process::ExitCode;
use std::str::FromStr;

use ntcopy::cpu::Cpu;
use ntcopy_bench::experiment::{Family, Mode};
use ntcopy_bench::experiments::retention::copies::plan::{self as copies_plan, CopiesPlan, Here};
use ntcopy_bench::experiments::retention::{self, copies};
use ntcopy_bench::run;
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Unavailable};

use super::against::AgainstArgs;
use super::args::Common;
use super::launch::{InThisKernel, KernelCpus, Launch, usage};
use super::not_available;

const EXAMPLES: &str = "\
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
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct RetentionArgs {
    /// Modes to measure beside idle [default: copy,nt,nt-both; of sends copy,nt,adaptive]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<String>,
    /// Where the other program is beside copies: same-core, neighbour [default: both]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["sockets", "family"])]
    victim: Vec<copies::Victim>,
    /// Sizes of the other program's hot set [default: of copies from half of L2 up to the last-level
    /// cache; of sends 512KiB]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    hot_set: Vec<Bytes>,
    /// Offered to the streamer of copies, in GB/s, MB/s, or bare bytes per second [default: 10GB/s]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with_all = ["sockets", "family"])]
    rate: Vec<BytesPerSecond>,
    /// Measure sends: sockets that are filled before all are drained
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    sockets: Vec<u32>,
    /// Sizes of one copy or send [default: of copies 256KiB; of sends 1MiB if --sockets is given]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    object: Vec<Bytes>,
    /// Size of the data set that sends are taken from [default: 256MiB]; or of the source, and of
    /// the destination, of copies [default: twice the last-level cache, at most 1GiB]
    #[arg(long, value_name = "SIZE")]
    dataset: Option<Bytes>,
    /// Measure sends, through this address family [default: unix]
    #[arg(long, value_name = "FAMILY")]
    family: Option<Family>,
    #[command(flatten)]
    against: AgainstArgs,
}

pub fn run(common: &Common, args: &RetentionArgs) -> anyhow::Result<ExitCode> {
    if args.is_of_sends(common) { sends(common, args) } else { of_copies(common, args) }
}

impl RetentionArgs {
    /// Whether sends are asked for: by what only they have, or by a kernel to measure in.
    fn is_of_sends(&self, common: &Common) -> bool {
        // Inside a booted kernel, --kernel is host and --measure-only is set.
        let in_a_kernel = common.kernel != "host" || common.measure_only;
        let of_sends = !self.sockets.is_empty() || self.family.is_some();
        in_a_kernel || of_sends || self.against.kernel().is_some()
    }

    fn sizes(sizes: &[Bytes]) -> Vec<u64> {
        sizes.iter().map(|size| size.0).collect()
    }

    fn settings_of_sends(&self, common: &Common, modes: Vec<Mode>) -> retention::Settings {
        let boots = self.against.modes(&modes);
        let quick_pairs = retention::defaults().sends.quick_pairs;
        retention::Settings {
            pairs: boots.as_ref().map_or(common.extent.pairs, |_| Some(quick_pairs)),
            quick: common.extent.quick || boots.is_some(),
            modes: boots.unwrap_or(modes),
            hot_set_bytes: Self::sizes(&self.hot_set),
            sockets: self.sockets.clone(),
            object_bytes: Self::sizes(&self.object),
            dataset_bytes: self.dataset.map(|size| size.0),
            family: self.family,
        }
    }

    fn settings_of_copies(
        &self,
        common: &Common,
        modes: Vec<copies::CopyMode>,
    ) -> copies::Settings {
        copies::Settings {
            modes,
            victims: self.victim.clone(),
            hot_set_bytes: Self::sizes(&self.hot_set),
            object_bytes: Self::sizes(&self.object),
            rates_bytes_per_s: self.rate.iter().map(|rate| rate.0).collect(),
            dataset_bytes: self.dataset.map(|size| size.0),
            pairs: common.extent.pairs,
            quick: common.extent.quick,
        }
    }
}

/// The modes that were named, or the exit code for a name that there is not; `hint` is what else to
/// write.
fn parsed<M: FromStr<Err = String>>(names: &[String], hint: &str) -> Result<Vec<M>, ExitCode> {
    let one = |name: &String| name.parse().map_err(|why| usage(format!("--modes {why}{hint}")));
    names.iter().map(one).collect()
}

fn sends(common: &Common, args: &RetentionArgs) -> anyhow::Result<ExitCode> {
    let of_copies = [("victim", !args.victim.is_empty()), ("rate", !args.rate.is_empty())];
    if let Some((option, _)) = of_copies.iter().find(|(_, is_given)| *is_given) {
        return Ok(usage(format!("--{option} is of copies: with --kernel, sends are measured")));
    }
    let modes: Vec<Mode> = match parsed(&args.modes, "") {
        Ok(modes) => modes,
        Err(code) => return Ok(code),
    };
    let settings = args.settings_of_sends(common, modes.clone());
    let defaults = &retention::defaults().sends;
    let launch = Launch {
        common,
        experiment: ExperimentKind::Retention,
        kernel_cpus: KernelCpus::OnePinned,
        worker_args: super::reader_args(),
        against: args.against.boots(common, &modes, (defaults.pairs, defaults.quick_pairs)),
        plan: &|cpus| retention::plan_sends(&settings, cpus),
        is_asked: &super::names_or_lacks(&modes),
    };
    launch.run()
}

fn of_copies(common: &Common, args: &RetentionArgs) -> anyhow::Result<ExitCode> {
    if common.list {
        super::list(&ExperimentKind::Retention);
        return Ok(ExitCode::SUCCESS);
    }
    // A bad NTCOPY_ISA would otherwise be measured as if it had not been set.
    if let Err(error) = ntcopy::init() {
        return Ok(usage(error));
    }
    let hint = "; to measure sends, name --sockets, --family or a --kernel";
    let modes = match parsed(&args.modes, hint) {
        Ok(modes) => modes,
        Err(code) => return Ok(code),
    };
    let plan = match copies_plan::plan(&args.settings_of_copies(common, modes), &here()?) {
        Ok(plan) => plan,
        Err(error) => return Ok(usage(error)),
    };
    if let Some(why) = nothing_to_measure(&plan) {
        return Ok(not_available(why));
    }
    // Without --victim, a machine of one CPU has measured what there is.
    let is_asked = |line: &Unavailable| args.modes.contains(&line.mode) || !args.victim.is_empty();
    InThisKernel::from(common).measure(&plan, &is_asked)
}

/// The machine as the plan has to know it.
fn here() -> anyhow::Result<Here> {
    let allowed = run::cpus()?.allowed;
    let victim_cpu = allowed.first().copied().unwrap_or(0);
    let detected = Cpu::detect();
    let l2 = detected.caches.iter().chain(&detected.sysfs_caches).find(|cache| cache.level == 2);
    let llc_bytes = detected.llc_bytes();
    Ok(Here {
        allowed,
        victim_cpu,
        sharing_llc: copies::run::sharing_llc(victim_cpu),
        sharing_core: copies::run::sharing_core(victim_cpu),
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

/// Bytes per second: `10GB/s`, `2.5GB/s`, `800MB/s`, or bare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BytesPerSecond(u64);

impl FromStr for BytesPerSecond {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refused = || {
            format!("`{text}` is not a rate: write 10GB/s, 2.5GB/s, 800MB/s or bytes per second")
        };
        let bare = text.trim().trim_end_matches("/s");
        let units = [("GB", 1_000_000_000_u64), ("MB", 1_000_000), ("", 1)];
        let found = units.into_iter().find_map(|(unit, factor)| {
            bare.strip_suffix(unit).map(|number| (number.trim(), factor))
        });
        let (number, factor) = found.ok_or_else(refused)?;
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let is_number = |digits: &str| digits.chars().all(|digit| digit.is_ascii_digit());
        if whole.is_empty() || !is_number(whole) || !is_number(fraction) || number.ends_with('.') {
            return Err(refused());
        }
        let mut rate = whole.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
        let mut place = factor;
        for digit in fraction.bytes() {
            place /= 10;
            rate = rate.and_then(|rate| rate.checked_add(place * u64::from(digit - b'0')));
        }
        rate.map(BytesPerSecond).ok_or_else(refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_in_powers_of_ten() {
        for (text, rate) in [
            ("10GB/s", 10_000_000_000),
            ("2.5GB/s", 2_500_000_000),
            ("800MB", 800_000_000),
            ("0.5 GB/s", 500_000_000),
            ("1000000", 1_000_000),
        ] {
            assert_eq!(text.parse(), Ok(BytesPerSecond(rate)), "{text}");
        }
    }

    #[test]
    fn what_is_no_rate_is_refused_with_an_example() {
        for text in ["", "GB/s", "fast", "10GiB/s", "-1GB/s", "1.GB/s", "99999999999GB/s"] {
            let error = text.parse::<BytesPerSecond>().unwrap_err();
            assert!(error.contains("10GB/s"), "{error}");
        }
    }
}
