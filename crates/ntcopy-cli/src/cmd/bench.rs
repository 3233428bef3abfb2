//! `ntcopy bench`.

mod against;
mod app;
mod args;
mod boot;
mod client_server;
mod http;
mod launch;
mod pages;
mod retention;
mod unix;
mod user_space;

use std::fmt::Display;
use std::process::ExitCode;

use ntcopy_bench::experiments::{self, bulk, messages, sends};
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

/// The experiments, in the order of the help: what each is asked, by what it is run, and the file of its
/// defaults.
macro_rules! experiments {
    ($($(#[$help:meta])* $kind:ident($asked:ty) by $run:path, of $defaults:path;)+) => {
        #[derive(clap::Subcommand)]
        enum Experiment {
            $($(#[$help])* #[command(args_override_self = true)] $kind(Box<$asked>),)+
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

        /// Each with the file of its defaults, comments included.
        pub const EXPERIMENTS: &[(ExperimentKind, &str)] =
            &[$((ExperimentKind::$kind, $defaults)),+];

        impl Experiment {
            fn run(self, common: &Common) -> anyhow::Result<ExitCode> {
                match self {
                    $(Experiment::$kind(asked) => $run(common, &*asked),)+
                    Experiment::List => {
                        EXPERIMENTS.iter().for_each(|(experiment, _)| list(experiment));
                        Ok(ExitCode::SUCCESS)
                    }
                    Experiment::Reader => Ok(sends::run::reader::main()),
                    Experiment::Server => Ok(messages::run::server_main()),
                    Experiment::Worker => Ok(bulk::run::worker_main()),
                }
            }
        }
    };
}

experiments! {
    /// One process sends, another takes the bytes: unix sockets, TCP and UDP
    #[command(after_help = unix::EXAMPLES)]
    Unix(unix::UnixArgs) by unix::run, of sends::unix::DEFAULTS_TOML;
    /// Client, proxy, backend: throughput, CPU time, latency at an offered rate
    #[command(after_help = http::EXAMPLES)]
    Http(http::HttpArgs) by http::run, of experiments::http::DEFAULTS_TOML;
    /// Small requests beside large ones, in an unmodified program: memcached
    #[command(after_help = app::EXAMPLES)]
    App(app::AppArgs) by app::run, of experiments::app::DEFAULTS_TOML;
    /// Client and server: requests and responses over TCP and UDP, tx-nocache-copy, the hint
    #[command(after_help = messages::net::EXAMPLES)]
    Net(messages::net::Settings) by client_server::run, of messages::net::DEFAULTS_TOML;
    /// One message there and back at a time: half of the round trip
    #[command(after_help = messages::pingpong::EXAMPLES)]
    Pingpong(messages::pingpong::Settings) by client_server::run, of messages::pingpong::DEFAULTS_TOML;
    /// Copies in user space: the library against every other, by size, hot and cold
    #[command(after_help = bulk::memcpy::EXAMPLES)]
    Memcpy(bulk::memcpy::Settings) by user_space::run, of bulk::memcpy::DEFAULTS_TOML;
    /// Fills in user space: the library, the C library and perf's functions
    #[command(after_help = bulk::memset::EXAMPLES)]
    Memset(bulk::memset::Settings) by user_space::run, of bulk::memset::DEFAULTS_TOML;
    /// Clearing and copying pages as a kernel does, then reading them back; and the fork() loop
    #[command(after_help = pages::EXAMPLES)]
    Pages(bulk::pages::Settings) by pages::run, of bulk::pages::DEFAULTS_TOML;
    /// What copies, or sends, leave of the cache to other programs on this CPU
    #[command(after_help = retention::EXAMPLES)]
    Retention(retention::RetentionArgs) by retention::run, of sends::retention::DEFAULTS_TOML;
    /// A matrix by rows and by columns, with normal and with non-temporal stores
    #[command(after_help = bulk::order::EXAMPLES)]
    Order(bulk::order::Settings) by user_space::run, of bulk::order::DEFAULTS_TOML;
}

/// The arguments that lead to a hidden process of an experiment: reader, server or worker.
pub fn process_args(name: &str) -> Vec<String> {
    ["bench", name].map(str::to_owned).into()
}

pub fn run(mut args: Args) -> anyhow::Result<ExitCode> {
    if !args.common.list {
        args.common.place.choose()?;
    }
    args.experiment.run(&args.common)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_of_their_experiments() {
        for (experiment, defaults) in EXPERIMENTS {
            let name = defaults.lines().find_map(|line| line.strip_prefix("name = "));
            assert_eq!(name, Some(&*format!("{:?}", experiment.as_str())));
        }
    }
}
