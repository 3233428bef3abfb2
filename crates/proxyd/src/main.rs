//! The program `proxyd`: settings, signals, exit codes.

use std::process::ExitCode;

use clap::Parser;
use httpd::program::{Program, USAGE};
use httpd::{ListenError, Signals, StartError, raise_file_limit};
use proxyd::cli::{Cli, capabilities};
use proxyd::server::{Failure, Server};

/// An address is taken, or is not this machine's.
const NOT_AVAILABLE: u8 = 3;

fn main() -> ExitCode {
    let program = Program::begin("proxyd");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return program.usage(&error),
    };
    if cli.capabilities {
        return program.print(capabilities().join("\n") + "\n");
    }
    program.log(cli.log_level);
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let code = match error {
                Failure::Config(_) => USAGE,
                Failure::Start(StartError::Listen(ListenError::InUse(_))) => NOT_AVAILABLE,
                Failure::Start(_) | Failure::Log(_) => 1,
            };
            program.fail(code, error)
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    let config = cli.settings()?;
    if cli.check {
        config.check()?;
        config.offered()?;
        return Ok(());
    }
    // Connections and pipes need descriptors: as many as this process may have.
    raise_file_limit();
    let failed = |doing| move |cause| Failure::Start(StartError::System { doing, cause });
    let signals = Signals::catch().map_err(failed("catch signals"))?;
    let certificate = config.tls.certificate.clone();
    let server = Server::start(config)?;
    let addresses = server.addresses();
    for address in addresses.plain.iter().chain(&addresses.tls) {
        tracing::info!(%address, "listening");
    }
    for address in &addresses.metrics {
        tracing::info!(%address, "metrics");
    }
    let reload = server.reloader();
    let reload = || {
        say_if_copied(certificate.as_deref());
        match reload() {
            Ok(()) => tracing::info!(
                "certificate and key are read again, the access log is opened again; \
                 other settings take a restart"
            ),
            Err(error) => tracing::error!(%error, "what is in use stays"),
        }
    };
    signals.obey(server.into_inner(), reload).map_err(failed("start a thread"))
}

/// systemd copies credentials when it starts a service, and not again: what was renewed since is
/// not in them.
fn say_if_copied(certificate: Option<&std::path::Path>) {
    let folder = std::env::var_os("CREDENTIALS_DIRECTORY");
    if let (Some(folder), Some(certificate)) = (folder, certificate)
        && certificate.starts_with(folder)
    {
        tracing::warn!(
            certificate = %certificate.display(),
            "the certificate is systemd's copy from the start of the service: restart it to take up \
             a renewed one, or name the original in the settings"
        );
    }
}
