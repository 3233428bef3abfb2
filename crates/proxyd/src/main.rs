//! The program `proxyd`: settings, signals, exit codes.

use std::process::ExitCode;

use httpd::{ListenError, Signals, StartError, raise_file_limit};
use proxyd::cli::{Cli, complain, print};
use proxyd::server::{Failure, Server};
use tracing_subscriber::EnvFilter;

/// The settings make no sense.
const USAGE: u8 = 2;
/// An address is taken, or is not this machine's.
const NOT_AVAILABLE: u8 = 3;

fn main() -> ExitCode {
    // A reader that is gone ends what prints, as it ends any program; the server's signals say else.
    // SAFETY: the default action runs no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    let cli = match Cli::of_process() {
        Ok(cli) => cli,
        Err(code) => return ExitCode::from(code),
    };
    if cli.capabilities {
        let printed = print(&capabilities(cli.json));
        return printed.map_or_else(ExitCode::from, |()| ExitCode::SUCCESS);
    }
    let filter = EnvFilter::try_from_env("PROXYD_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    // A line that can't be written is lost: saying so in the same place would end the thread.
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false)
        .init();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&error);
            ExitCode::from(match error {
                Failure::Config(_) => USAGE,
                Failure::Start(StartError::Listen(ListenError::InUse(_))) => NOT_AVAILABLE,
                Failure::Start(_) | Failure::Log(_) => 1,
            })
        }
    }
}

fn capabilities(json: bool) -> String {
    let words = proxyd::cli::capabilities();
    if json {
        let words: Vec<_> = words.iter().map(|word| format!("{word:?}")).collect();
        format!("{{\"capabilities\": [{}]}}\n", words.join(", "))
    } else {
        words.join("\n") + "\n"
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
