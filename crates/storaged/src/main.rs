//! The program `storaged`: parses, calls, prints.
//!
//! Exit codes: 0 done; 1 failed; 2 usage; 3 not available here; 4 a byte was wrong.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{Parser, Subcommand};
use ntcopy::socket::Support;
use storaged::config::{GONE, LogLevel, Options};
use storaged::fault;
use storaged::server::serve;
use storaged::store::{Finding, fsck};
use tracing::level_filters::LevelFilter;

const USAGE: u8 = 2;
const WRONG_BYTE: u8 = 4;

/// An object store daemon: HTTP/1.1 on unix sockets and TCP
#[derive(Parser)]
#[command(name = "storaged", version, args_conflicts_with_subcommands = true)]
#[command(after_help = "Signals: SIGTERM and SIGINT end what is in flight, then the daemon; a \
                        second one ends it at once. SIGHUP reloads --config and opens the access \
                        log anew.\n\nExit codes: 0 done; 1 failed; 2 usage; 3 not available here; \
                        4 a byte was wrong.")]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// File with the same options, in TOML; what is given here goes before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print what this build and this machine can do, a word a line
    #[arg(long)]
    capabilities: bool,
    #[command(flatten)]
    options: Options,
}

#[derive(Subcommand)]
enum Command {
    /// Verify every byte of every object; a daemon may be at work there meanwhile
    Fsck {
        /// The folder of the objects
        dir: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return refuse(&error),
    };
    if let Err(error) = fault::init() {
        return fail(USAGE, &error);
    }
    match cli.command {
        Some(Command::Fsck { dir, json }) => check(&dir, json),
        None if cli.capabilities => {
            capabilities();
            ExitCode::SUCCESS
        }
        None => run(cli.config, cli.options),
    }
}

/// Words for a command line that is not understood, and for those that ask for words.
fn refuse(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && let Some((name, what)) = GONE.iter().find(|(name, _)| *option == format!("--{name}"))
    {
        eprintln!("storaged: --{name}: {what}");
    }
    ExitCode::from(error.exit_code() as u8)
}

fn run(file: Option<PathBuf>, options: Options) -> ExitCode {
    let read = move || {
        let options = options.clone();
        match &file {
            Some(file) => options.with_file(file)?.resolve(),
            None => options.resolve(),
        }
    };
    let config = match read() {
        Ok(config) => config,
        Err(error) => return fail(USAGE, &error),
    };
    let level = match config.log_level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
    };
    let ansi = rustix::termios::isatty(std::io::stderr());
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_ansi(ansi)
        .with_target(false)
        .with_max_level(level)
        .init();
    match serve(config, move || read().map(|config| config.tunables)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

/// What tests ask before they skip something.
fn capabilities() {
    let mut words = vec!["splice", "sendfile", "vmsplice"];
    match ntcopy::socket::kernel_support() {
        Support::Kernel => words.push("nt-kernel"),
        Support::Module => words.push("nt-module"),
        Support::None => {}
    }
    if fault::OBEYED {
        words.push("fault-points");
    }
    println!("{}", words.join("\n"));
}

fn check(dir: &std::path::Path, json: bool) -> ExitCode {
    let mut findings = Vec::new();
    let mut report = |finding: Finding| {
        if !json {
            println!("{}: {}", finding.path.display(), finding.problem);
        }
        findings.push(finding);
    };
    let summary = match fsck(dir, &mut report) {
        Ok(summary) => summary,
        Err(error) => return fail(1, &error),
    };
    if json {
        println!("{}", serde_json::json!({ "summary": summary, "findings": findings }));
    } else {
        println!(
            "{} objects whole ({} bytes, {} on disk), {} damaged, {} unreadable, {} foreign files",
            summary.whole,
            summary.content_bytes,
            summary.stored_bytes,
            summary.damaged,
            summary.unreadable,
            summary.foreign,
        );
    }
    match (summary.damaged, summary.unreadable) {
        (0, 0) => ExitCode::SUCCESS,
        (0, _) => ExitCode::FAILURE,
        _ => ExitCode::from(WRONG_BYTE),
    }
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("storaged: {error}");
    ExitCode::from(code)
}
