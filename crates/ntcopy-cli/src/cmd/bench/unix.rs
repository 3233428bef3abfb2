//! `ntcopy bench unix`: sends, and a reader that splices them away.

use std::process::ExitCode;

use ntcopy_bench::experiment::{Family, Mode};
use ntcopy_bench::experiments::unix;
use ntcopy_bench::guest::against::Against;
use ntcopy_record::ExperimentKind;
use ntcopy_record::units::Bytes;

use super::against::AgainstArgs;
use super::args::Common;
use super::launch::{KernelCpus, Launch};

const EXAMPLES: &str = "\
Examples:
  ntcopy bench unix --kernel um --sockets 1,8,64      where do hinted sends pay?
  ntcopy bench unix --kernel um --sweep               everywhere: 72 cells, some minutes
  ntcopy bench unix --kernel um --sweep --quick --family tcp,udp
  ntcopy bench unix --kernel um --published           the three published configurations
  ntcopy bench unix --kernel um --against unpatched   relative to plain sends of a stock kernel
  ntcopy bench unix --kernel um --against module      ntcopy.ko relative to the patches
  ntcopy bench unix --kernel um --against out/series/7.3     relative to other patches
  ntcopy bench unix --kernel um --pieces 300 --sockets 1,16      an answer of 100 small values
  ntcopy bench unix --kernel um --beside 64KiB        a small sender beside a bulk one
  ntcopy bench unix --kernel um --senders 2 --dataset 64MiB      two CPUs that send at once

With --sockets or --sweep a round fills every socket with one object and then drains them all, so \
the bytes in flight are exactly sockets x object. Without them, sender and reader run freely on one \
socket.

Modes: copy (a plain send, the baseline), nt (MSG_NTCOPY, obeyed), adaptive (MSG_NTCOPY, and the \
kernel's rule decides), vmsplice (no copy at all; its buffer must not be touched again until the \
reader is done with it).";

/// Arguments of `bench unix`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES, args_override_self = true)]
pub struct UnixArgs {
    /// Boot two CPUs, for sender and reader, each on one of the host's with an L2 of its own
    #[arg(long)]
    own_caches: bool,
    /// Modes to compare with copy
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    modes: Vec<Mode>,
    /// Rounds over these numbers of sockets in flight
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    sockets: Vec<u32>,
    /// A bulk sender and a small one on one CPU: between the sends of the rounds [default: on 64
    /// sockets] it makes sends of these sizes, each drained at once, at random moments
    #[arg(long, value_name = "LIST", value_delimiter = ',',
          conflicts_with_all = ["published", "pieces", "sweep", "senders"])]
    beside: Vec<Bytes>,
    /// The three published configurations, on the CPUs that are here
    #[arg(long, conflicts_with_all = ["sockets", "object", "dataset", "pipe", "sndbuf", "against"])]
    published: bool,
    /// Object sizes [default: 1MiB]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    object: Vec<Bytes>,
    /// Sizes of the data set that objects are taken from [default: 256MiB with --sockets, else
    /// one object]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    dataset: Vec<Bytes>,
    /// Size of the reader's pipe [default: 512KiB; with --sockets one object, as far as allowed]
    #[arg(long, value_name = "SIZE")]
    pipe: Option<Bytes>,
    /// Send buffer [default: 512KiB; with --sockets what takes a whole object]
    #[arg(long, value_name = "SIZE")]
    sndbuf: Option<Bytes>,
    /// Pieces of 30, 30 and 1024 bytes, and so on, that one sendmsg() gathers an object from;
    /// the object is as large as they are together
    #[arg(long, value_name = "N",
          conflicts_with_all = ["object", "published", "sweep", "iterations"])]
    pieces: Option<u32>,
    /// Senders that run freely at the same time, each with a data set and a reader of its own;
    /// the result is the throughput of all together
    #[arg(long, value_name = "N",
          conflicts_with_all = ["sockets", "published", "sweep", "against"])]
    senders: Option<u32>,
    /// Sends in a free-running sample [default: as many as fill its time, at most 100000]
    #[arg(long, hide = true, value_name = "N", conflicts_with = "sockets")]
    iterations: Option<u64>,
    /// CPU of the sender and CPU of the reader, or one for both [default: the first two]; with
    /// --senders that of each with its reader, or two for each [default: the first ones]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    cpus: Vec<u32>,
    /// Address families, over the loopback: unix, tcp, tcp6, udp, udp6, udp-gso, udplite [default:
    /// unix]
    #[arg(long, value_name = "LIST", value_delimiter = ',', conflicts_with = "published")]
    family: Vec<Family>,
    /// Every combination of the sweep's sockets, data sets and objects (see --list)
    #[arg(long, conflicts_with_all = ["published", "iterations"])]
    sweep: bool,
    #[command(flatten)]
    against: AgainstArgs,
}

impl UnixArgs {
    /// The settings as the engine wants them.
    fn settings(&self, common: &Common) -> unix::Settings {
        let settings = self.as_asked(common);
        match (self.against.modes(&self.modes), self.against.kernel()) {
            (Some(modes), Some(against)) => one_boot(settings, modes, against),
            _ => settings,
        }
    }

    fn as_asked(&self, common: &Common) -> unix::Settings {
        let sizes = |sizes: &[Bytes]| sizes.iter().map(|size| size.0).collect();
        unix::Settings {
            modes: self.modes.clone(),
            object_bytes: sizes(&self.object),
            dataset_bytes: sizes(&self.dataset),
            sockets: self.sockets.clone(),
            beside: sizes(&self.beside),
            families: self.family.clone(),
            sweep: self.sweep,
            published: self.published,
            pipe_bytes: self.pipe.map(|size| size.0),
            sndbuf_bytes: self.sndbuf.map(|size| size.0),
            pieces: self.pieces,
            senders: self.senders,
            iterations: self.iterations,
            cpus: self.cpus.clone(),
            pairs: common.extent.pairs,
            quick: common.extent.quick,
        }
    }

    /// CPUs of a booted kernel. A round hands over, so one will do; a free run keeps two busy.
    fn kernel_cpus(&self) -> KernelCpus {
        if self.in_rounds() { KernelCpus::OnePinned } else { KernelCpus::Free(2) }
    }

    /// Whether sender and reader take turns.
    fn in_rounds(&self) -> bool {
        let is_named = !self.sockets.is_empty() || !self.beside.is_empty();
        self.sweep || self.against.kernel().is_some() || is_named
    }
}

/// What one boot measures of two that are compared, briefly.
fn one_boot(mut settings: unix::Settings, modes: Vec<Mode>, against: &Against) -> unix::Settings {
    let (sockets, object_bytes) = match against {
        Against::Module => (vec![1, 32, 128], vec![1 << 20]),
        _ => (vec![1, 16], vec![4 << 10, 64 << 10, 1 << 20]),
    };
    settings.modes = modes;
    settings.quick = true;
    settings.pairs = Some(5);
    if settings.sockets.is_empty() && settings.beside.is_empty() && !settings.sweep {
        settings.sockets = sockets;
    }
    if settings.object_bytes.is_empty() && settings.pieces.is_none() && settings.beside.is_empty() {
        settings.object_bytes = object_bytes;
    }
    if settings.dataset_bytes.is_empty() && settings.beside.is_empty() {
        settings.dataset_bytes = vec![1 << 20];
    }
    settings
}

pub fn run(common: &Common, args: &UnixArgs) -> anyhow::Result<ExitCode> {
    let settings = args.settings(common);
    let defaults = unix::defaults();
    let launch = Launch {
        common,
        experiment: ExperimentKind::Unix,
        kernel_cpus: args.kernel_cpus().or_own_caches(args.own_caches),
        worker_args: super::reader_args(),
        against: args.against.boots(common, &args.modes, (defaults.pairs, defaults.quick_pairs)),
        plan: &|cpus| unix::plan(&settings, cpus),
        is_asked: &super::names_or_lacks(&args.modes),
    };
    launch.run()
}
