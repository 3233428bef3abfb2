//! The program `proxyd`: settings, signals, exit codes.

use std::process::ExitCode;

use httpd::program::{Program, USAGE};
use httpd::{Signals, StartError, raise_file_limit};
use ntcopy::socket::{Support, kernel_support};
use proxyd::config::Config;
use proxyd::server::{Failure, Server};

fn main() -> ExitCode {
    let program = Program::begin("proxyd");
    let config: Config = match program.settings(capabilities) {
        Ok(config) => config,
        Err(code) => return code,
    };
    program.log(config.options.log_level);
    match run(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => program.fail(if matches!(error, Failure::Tls(_)) { USAGE } else { 1 }, error),
    }
}

/// What tests ask before they skip something.
fn capabilities() -> Vec<&'static str> {
    let support = kernel_support();
    let words = [
        ("splice", true),
        ("nt-kernel", support == Support::Kernel),
        ("nt-module", support == Support::Module),
        ("tls", true),
        ("ktls", proxyd::ktls::is_available()),
    ];
    words.into_iter().filter_map(|(word, had)| had.then_some(word)).collect()
}

fn run(config: Config) -> Result<(), Failure> {
    if config.check {
        config.offered()?;
        return Ok(());
    }
    // Connections and pipes need descriptors: as many as this process may have.
    raise_file_limit();
    let failed = |doing| move |cause| Failure::Start(StartError::System { doing, cause });
    let signals = Signals::catch().map_err(failed("catch signals"))?;
    let server = Server::start(config)?;
    for address in server.http.addresses() {
        tracing::info!(%address, "listening");
    }
    if let Some(address) = server.http.metrics_address() {
        tracing::info!(%address, "metrics");
    }
    let reload = server.reloader();
    signals.obey(server.http, reload).map_err(failed("start a thread"))
}
