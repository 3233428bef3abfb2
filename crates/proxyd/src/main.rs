//! The program `proxyd`: settings, signals, exit codes.

use std::process::ExitCode;

use anyhow::Context as _;
use httpd::program::{Program, USAGE};
use httpd::{Signals, raise_file_limit};
use proxyd::backend::addresses;
use proxyd::config::Config;
use proxyd::server::Server;

fn main() -> ExitCode {
    let program = Program::begin("proxyd");
    let config: Config = match program.settings() {
        Ok(config) => config,
        Err(code) => return code,
    };
    let _log = match program.log(config.options.log_level) {
        Ok(log) => log,
        Err(code) => return code,
    };
    // A mistake in the files that are named is one of usage.
    match config.offered() {
        Err(error) => return program.fail(USAGE, format_args!("{error:#}")),
        Ok(_) if config.options.check => return ExitCode::SUCCESS,
        Ok(_) => {}
    }
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program.fail(1, format_args!("{error:#}")),
    }
}

fn run(config: Config) -> anyhow::Result<()> {
    // Connections and pipes need descriptors: as many as this process may have.
    raise_file_limit();
    // While a name is waited for, a signal ends this at once.
    let backend = addresses(&config.backend)?;
    let signals = Signals::catch().context("cannot catch signals")?;
    let server = Server::start(config, backend)?;
    for address in &server.http.addresses {
        tracing::info!(%address, "listening");
    }
    if let Some(address) = &server.http.metrics_address {
        tracing::info!(%address, "metrics");
    }
    let reload = server.reloader();
    signals.obey(server.http, reload).context("cannot wait for signals")
}
