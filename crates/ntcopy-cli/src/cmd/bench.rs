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
mod pingpong;
mod retention;
mod unix;

use std::process::ExitCode;

use ntcopy_bench::experiment::Mode;
use ntcopy_bench::experiments::EXPERIMENTS;
use ntcopy_bench::run;
use ntcopy_kernel::boot::HostCpus;
use ntcopy_record::{ExperimentKind, Unavailable};

pub use self::args::Pin;
pub use self::boot::{failed, judged, measured, record_dir};
pub use self::bulk::worker_args;
pub use self::launch::judge;
use super::NOT_AVAILABLE;

/// Measure: run an experiment, write its record, and say what it shows.
#[derive(clap::Subcommand)]
#[command(about = "Measure: run an experiment, write its record, and say what it shows")]
pub enum Args {
    /// A parent sends, a child splices socket -> pipe -> /dev/null; unix sockets, TCP and UDP
    Unix(Box<unix::UnixArgs>),
    /// What do copies, or sends, leave of the cache for another program?
    Retention(Box<retention::RetentionArgs>),
    /// Copies in user space: our choice against every peer, by size, hot and cold
    Memcpy(Box<bulk::MemcpyArgs>),
    /// Fills: perf's functions, the C library and ours
    Memset(Box<bulk::MemsetArgs>),
    /// A matrix by rows and by columns, with normal and with non-temporal stores
    Order(Box<bulk::OrderArgs>),
    /// Clearing and copying pages as a kernel does, then reading them back; and the fork() loop
    Pages(Box<pages::PagesArgs>),
    /// Client, proxy, backend: throughput, CPU time, latency at an offered rate
    Http(Box<http::HttpArgs>),
    /// Client and server: requests and responses over TCP and UDP, tx-nocache-copy, the hint
    Net(Box<net::NetArgs>),
    /// One message there and back at a time: latency as sockperf reports it
    Pingpong(Box<pingpong::PingPongArgs>),
    /// Small requests beside large ones, in an unmodified program: memcached, Redis, nginx
    App(Box<app::AppArgs>),
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

/// The arguments that lead to the reading process.
pub fn reader_args() -> Vec<String> {
    ["bench", "reader"].map(str::to_owned).into()
}

/// The arguments that lead to the answering process.
fn server_args() -> Vec<String> {
    ["bench", "server"].map(str::to_owned).into()
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    match args {
        Args::Unix(args) => unix::run(&args),
        Args::Retention(args) => retention::run(&args),
        Args::Memcpy(args) => bulk::memcpy(&args),
        Args::Memset(args) => bulk::memset(&args),
        Args::Order(args) => bulk::order(&args),
        Args::Pages(args) => pages::run(&args),
        Args::Http(args) => http::run(&args),
        Args::Net(args) => net::run(&args),
        Args::Pingpong(args) => pingpong::run(&args),
        Args::App(args) => app::run(&args),
        Args::List => {
            EXPERIMENTS.iter().for_each(|listed| list(&listed.experiment));
            Ok(ExitCode::SUCCESS)
        }
        Args::Reader => Ok(run::reader::main()),
        Args::Server => Ok(run::net::server_main()),
        Args::Worker => Ok(run::bulk::worker_main()),
    }
}

/// Whether one of these modes is not available, or any is not in one cell: a family was asked for.
fn names_or_lacks(modes: &[Mode]) -> impl Fn(&Unavailable) -> bool {
    move |line| line.cell.is_some() || modes.iter().any(|mode| mode.as_str() == line.mode)
}

/// The CPU of the host that a booted kernel is put on, if not each CPU on one of its own: the one
/// that was named, else the first one if there is to be one. Where processes take turns, one CPU is
/// quieter than two, between which the host moves the kernel's threads; and what shares a
/// CPU's own caches is then the same in every sample.
pub fn pinned(pin: Option<Pin>, by_default: bool) -> anyhow::Result<HostCpus> {
    match pin {
        Some(Pin::Cpu(cpu)) => Ok(HostCpus::One(cpu)),
        None if by_default => {
            let first = run::cpus()?.allowed.first().copied();
            Ok(first.map_or(HostCpus::Any, |cpu| HostCpus::One(cpu as usize)))
        }
        Some(Pin::None) | None => Ok(HostCpus::Any),
    }
}

fn list(experiment: &ExperimentKind) {
    for listed in EXPERIMENTS.iter().filter(|listed| listed.experiment == *experiment) {
        println!("{}", listed.defaults.trim_end());
    }
}

/// The exit code of a program that a signal ended, as shells have it.
pub fn signalled(signal: i32) -> ExitCode {
    ExitCode::from(u8::try_from(128 + signal).unwrap_or(u8::MAX))
}

/// Says why figures of this machine would be no timing, and gives the exit code for that.
pub fn not_a_clock(why: &str) -> ExitCode {
    not_available(&format!("what is measured here is not a timing ({why})"))
}

/// Says why it cannot be done here, and gives the exit code for that.
pub fn not_available(why: &str) -> ExitCode {
    eprintln!("ntcopy: not available: {why}");
    ExitCode::from(NOT_AVAILABLE)
}
