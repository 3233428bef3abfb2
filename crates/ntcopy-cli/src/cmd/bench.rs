//! `ntcopy bench`.

mod against;
mod app;
mod args;
mod boot;
mod bulk;
mod http;
mod launch;
mod net;
mod pages;
mod retention;
mod unix;

use std::fmt::Display;
use std::process::ExitCode;

use ntcopy_bench::experiments::{self, EXPERIMENTS};
use ntcopy_bench::run;
use ntcopy_kernel::boot::HostCpus;
use ntcopy_record::{ExperimentKind, Unavailable};

use self::args::Common;
pub use self::args::Place;
pub use self::launch::{IsAsked, NO_TIMING, Runner, complain};
use super::not_available;

const HELP: &str = "\
Examples:
  ntcopy bench unix --kernel auto --sockets 1,8,64   where do hinted sends pay?
  ntcopy bench http --kernel auto --quick            client, proxy and backend
  ntcopy bench memcpy --quick                        copies in user space; needs no other kernel

Sizes are 65536, 64k or 64KiB, with M and G alike; lists are separated by commas.
Exit codes: 0 done; 1 a run failed; 2 usage; 3 something that was asked for is not available here; \
4 a byte was wrong.";

#[derive(clap::Args)]
#[command(
    about = "Measure: run an experiment, write its record, and say what it shows",
    after_help = HELP,
    arg_required_else_help = true,
    subcommand_value_name = "NAME",
    subcommand_help_heading = "Experiments"
)]
pub struct Args {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(clap::Subcommand)]
enum Experiment {
    /// One process sends, another takes the bytes: unix sockets, TCP and UDP
    #[command(after_help = unix::EXAMPLES, args_override_self = true)]
    Unix(Box<unix::UnixArgs>),
    /// Client, proxy, backend: throughput, CPU time, latency at an offered rate
    #[command(after_help = http::EXAMPLES, args_override_self = true)]
    Http(Box<http::HttpArgs>),
    /// Small requests beside large ones, in an unmodified program: memcached
    #[command(after_help = app::EXAMPLES, args_override_self = true)]
    App(Box<app::AppArgs>),
    /// Client and server: requests and responses over TCP and UDP, tx-nocache-copy, the hint
    #[command(after_help = net::NET_EXAMPLES, args_override_self = true)]
    Net(Box<experiments::messages::net::Settings>),
    /// One message there and back at a time: half of the round trip
    #[command(after_help = net::PINGPONG_EXAMPLES, args_override_self = true)]
    Pingpong(Box<experiments::messages::pingpong::Settings>),
    /// Copies in user space: the library against every other, by size, hot and cold
    #[command(after_help = bulk::MEMCPY_EXAMPLES, args_override_self = true)]
    Memcpy(Box<experiments::bulk::memcpy::Settings>),
    /// Fills in user space: the library, the C library and perf's functions
    #[command(after_help = bulk::MEMSET_EXAMPLES, args_override_self = true)]
    Memset(Box<experiments::bulk::memset::Settings>),
    /// Clearing and copying pages as a kernel does, then reading them back; and the fork() loop
    #[command(after_help = pages::EXAMPLES, args_override_self = true)]
    Pages(Box<experiments::bulk::pages::Settings>),
    /// What copies, or sends, leave of the cache to other programs on this CPU
    #[command(after_help = retention::EXAMPLES, args_override_self = true)]
    Retention(Box<retention::RetentionArgs>),
    /// A matrix by rows and by columns, with normal and with non-temporal stores
    #[command(after_help = bulk::ORDER_EXAMPLES, args_override_self = true)]
    Order(Box<experiments::bulk::order::Settings>),
    /// Print every experiment with its defaults
    List,
    /// The reading process of an experiment; not for people
    #[command(hide = true)]
    Reader,
    /// The answering process of an experiment; not for people
    #[command(hide = true)]
    Server,
    /// The copying process of an experiment; not for people
    #[command(hide = true)]
    Worker,
}

/// The arguments that lead to a hidden process of an experiment: reader, server or worker.
pub fn process_args(name: &str) -> Vec<String> {
    ["bench", name].map(str::to_owned).into()
}

pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if !args.common.list {
        args.common.place.choose()?;
    }
    let common = &args.common;
    match args.experiment {
        Experiment::Unix(args) => unix::run(common, &args),
        Experiment::Http(args) => http::run(common, &args),
        Experiment::App(args) => app::run(common, &args),
        Experiment::Net(settings) => net::net(common, &settings),
        Experiment::Pingpong(settings) => net::pingpong(common, &settings),
        Experiment::Memcpy(settings) => bulk::memcpy(common, &settings),
        Experiment::Memset(settings) => bulk::memset(common, &settings),
        Experiment::Pages(settings) => pages::run(common, &settings),
        Experiment::Retention(args) => retention::run(common, &args),
        Experiment::Order(settings) => bulk::order(common, &settings),
        Experiment::List => {
            EXPERIMENTS.iter().for_each(|(experiment, _)| list(experiment));
            Ok(ExitCode::SUCCESS)
        }
        Experiment::Reader => Ok(experiments::sends::run::reader::main()),
        Experiment::Server => Ok(experiments::messages::run::server_main()),
        Experiment::Worker => Ok(experiments::bulk::run::worker_main()),
    }
}

/// Whether one of these modes is not available, or any is not in one cell: a family was asked for.
fn names_or_lacks<M: Display>(modes: &[M]) -> impl Fn(&Unavailable) -> bool {
    move |line| line.cell.is_some() || names(modes)(line)
}

/// Whether one of these modes is not available.
fn names<M: Display>(modes: &[M]) -> impl Fn(&Unavailable) -> bool {
    move |line| modes.iter().any(|mode| mode.to_string() == line.mode)
}

/// The first CPU that this process may run on, for all of a booted kernel. Where processes take
/// turns, one CPU is quieter than two, between which the host moves the kernel's threads; and what
/// shares a CPU's own caches is then the same in every sample.
fn on_one_cpu() -> anyhow::Result<HostCpus> {
    let first = run::cpus()?.allowed.first().copied();
    Ok(first.map_or(HostCpus::Any, |cpu| HostCpus::One(cpu as usize)))
}

fn list(experiment: &ExperimentKind) {
    for (_, defaults) in EXPERIMENTS.iter().filter(|(known, _)| known == experiment) {
        println!("{}", defaults.trim_end());
    }
}

/// Why figures of this machine would be no timing.
pub fn not_a_clock(why: &str) -> anyhow::Error {
    not_available(format!("what is measured here is not a timing ({why})"))
}
