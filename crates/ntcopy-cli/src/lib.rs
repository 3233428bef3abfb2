//! The program `ntcopy`: parses, calls, prints.
//!
//! Exit codes: 0 done; 1 failed; 2 usage; 3 not available here; 4 a byte was wrong; 5 done in part
//! (a survey, of which some nodes failed).

#[macro_use]
mod say;

mod cmd;
#[cfg(test)]
mod documented;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "ntcopy", version, long_about = None)]
#[command(
    about = "Find out whether large writes should bypass the CPU cache here, and what to set"
)]
#[command(after_help = "Exit codes: 0 done; 1 failed; 2 usage; 3 not available here, with the \
                        reason; 4 a byte was wrong; of try --at-least 5 \
                        unresolved, 6 not reached; of survey 5 done in part.")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Probe(cmd::probe::Args),
    Bench(Box<cmd::bench::Args>),
    Advise(cmd::advise::Args),
    Ddio(cmd::ddio::Args),
    Footprint(Box<cmd::footprint::Args>),
    Report(cmd::report::Args),
    Run(cmd::run::Args),
    Set(cmd::set::Args),
    Stat(cmd::stat::Args),
    Try(cmd::r#try::Args),
    #[cfg(feature = "survey")]
    Survey(Box<cmd::survey::Args>),
    #[command(subcommand)]
    Kernel(cmd::kernel::Args),
    #[command(subcommand)]
    Module(cmd::module::Args),
    UnixNtBench(cmd::unix_nt_bench::Args),
}

/// The command line that is parsed, and that completions and manual pages describe.
pub fn command() -> clap::Command {
    cmd::help::laid_out(Cli::command())
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let parsed = command().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => error.exit(),
        // Help, or the version.
        Err(error) => {
            say::all_written(error.print());
            return ExitCode::SUCCESS;
        }
    };
    let result = match cli.command {
        Command::Probe(args) => cmd::probe::run(args),
        Command::Bench(args) => cmd::bench::run(*args),
        Command::Advise(args) => cmd::advise::run(args),
        Command::Ddio(args) => cmd::ddio::run(args),
        Command::Footprint(args) => cmd::footprint::run(*args),
        Command::Report(args) => cmd::report::run(args),
        Command::Run(args) => cmd::run::run(args),
        Command::Set(args) => cmd::set::run(args),
        Command::Stat(args) => cmd::stat::run(args),
        Command::Try(args) => cmd::r#try::run(args),
        #[cfg(feature = "survey")]
        Command::Survey(args) => cmd::survey::run(*args),
        Command::Kernel(args) => cmd::kernel::run(args),
        Command::Module(args) => cmd::module::run(args),
        Command::UnixNtBench(args) => cmd::unix_nt_bench::run(args),
    };
    result.unwrap_or_else(|error| cmd::fail(&error))
}
