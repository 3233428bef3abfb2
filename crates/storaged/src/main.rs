//! The program `storaged`: parses, calls, prints.
//!
//! Exit codes: 0 done; 1 failed; 2 usage.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use ntcopy::socket::Support;
use storaged::config::{GONE, LogLevel, Options};
use storaged::fault;
use storaged::serve::serve;
use tracing::level_filters::LevelFilter;

const USAGE: u8 = 2;

/// An object store daemon: HTTP/1.1 on unix sockets and TCP
#[derive(Parser)]
#[command(name = "storaged", version)]
#[command(after_help = "Signals: SIGTERM and SIGINT end what is in flight, then the daemon; a \
                        second one ends it at once. SIGHUP reloads --config and opens the access \
                        log anew.\n\nExit codes: 0 done; 1 failed; 2 usage.")]
struct Cli {
    /// File with the same options, in TOML; what is given here goes before it
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print what this build and this machine can do, a word a line
    #[arg(long)]
    capabilities: bool,
    #[command(flatten)]
    options: Options,
}

fn main() -> ExitCode {
    // A reader that is gone ends what prints, as it ends any program; `serve` ignores it.
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => return refuse(&error),
        Err(words) => return written(words.print().and_then(|()| io::stdout().flush())),
    };
    if let Err(error) = fault::init() {
        return fail(USAGE, &error);
    }
    if cli.capabilities {
        return written(print(&capabilities()));
    }
    run(cli.config, cli.options)
}

fn refuse(error: &clap::Error) -> ExitCode {
    let _ = error.print();
    let code = error.exit_code() as u8;
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && let Some((name, what)) = GONE.iter().find(|(name, _)| *option == format!("--{name}"))
    {
        return fail(code, &format_args!("--{name}: {what}"));
    }
    if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
        && word == "fsck"
    {
        return fail(code, &"fsck went: no checksums are kept beside the ETag");
    }
    ExitCode::from(code)
}

fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn written(result: io::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &format_args!("cannot write to standard output: {error}")),
    }
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
    tracing_subscriber::fmt()
        .with_writer(io::stderr)
        .with_target(false)
        .with_max_level(level)
        // A line that can't be written is lost: saying so in the same place would end the thread.
        .log_internal_errors(false)
        .init();
    match serve(config, move || read().map(|config| config.tunables)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(1, &error),
    }
}

/// What tests ask before they skip something.
fn capabilities() -> String {
    let mut words = vec!["splice", "sendfile", "vmsplice"];
    match ntcopy::socket::kernel_support() {
        Support::Kernel => words.push("nt-kernel"),
        Support::Module => words.push("nt-module"),
        Support::None => {}
    }
    if fault::OBEYED {
        words.push("fault-points");
    }
    words.join("\n") + "\n"
}

fn fail(code: u8, error: &dyn std::fmt::Display) -> ExitCode {
    // Where this can't be written either, there is the code.
    let _ = writeln!(io::stderr(), "storaged: {error}");
    ExitCode::from(code)
}
