//! The program `proxyd`: settings, signals, exit codes.

use std::process::ExitCode;

use proxyd::cli::{Cli, complain, print};
use proxyd::net::ListenError;
use proxyd::server::{Server, StartError};
use proxyd::worker::Stop;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing_subscriber::EnvFilter;

/// The settings make no sense.
const USAGE: u8 = 2;
/// An address is taken, or is not this machine's.
const NOT_AVAILABLE: u8 = 3;

fn main() -> ExitCode {
    on_broken_pipe(libc::SIG_DFL);
    let cli = match Cli::of_process() {
        Ok(cli) => cli,
        Err(code) => return ExitCode::from(code),
    };
    if cli.capabilities {
        let printed = print(&capabilities(cli.json));
        return printed.map_or_else(ExitCode::from, |()| ExitCode::SUCCESS);
    }
    on_broken_pipe(libc::SIG_IGN);
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
                StartError::Config(_) => USAGE,
                StartError::Listen(ListenError::Live(_)) => NOT_AVAILABLE,
                StartError::Listen(_) | StartError::System { .. } => 1,
            })
        }
    }
}

/// A reader that is gone ends what prints, as it ends any program, and is an error to the server.
fn on_broken_pipe(action: libc::sighandler_t) {
    // SAFETY: neither action runs code of ours.
    unsafe { libc::signal(libc::SIGPIPE, action) };
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

fn run(cli: &Cli) -> Result<(), StartError> {
    let config = cli.settings()?;
    if cli.check {
        proxyd::config::Settings::new(&config)?;
        config.offered()?;
        return Ok(());
    }
    raise_descriptor_limit();
    // Before the workers: a signal that comes while they start is not lost.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|cause| StartError::System { what: "catch signals".to_owned(), cause })?;
    let certificate = config.tls.certificate.clone();
    let mut server = Server::start(config)?;
    let addresses = server.addresses();
    for address in addresses.plain.iter().chain(&addresses.tls) {
        tracing::info!(%address, "listening");
    }
    for address in &addresses.metrics {
        tracing::info!(%address, "metrics");
    }
    let waiting = signals.handle();
    server
        .when_over(move || waiting.close())
        .map_err(|cause| StartError::System { what: "start a thread".to_owned(), cause })?;
    let mut stopping = false;
    for signal in &mut signals {
        match signal {
            SIGHUP => reload(certificate.as_deref(), &server),
            _ if stopping => server.stop(Stop::Now),
            _ => {
                tracing::info!("stopping; a second signal stops at once");
                stopping = true;
                server.stop(Stop::Graceful);
            }
        }
    }
    Ok(())
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

fn reload(certificate: Option<&std::path::Path>, server: &Server) {
    say_if_copied(certificate);
    match server.reload() {
        Ok(()) => tracing::info!(
            "certificate and key are read again, the access log is opened again; \
             other settings take a restart"
        ),
        Err(error) => tracing::error!(%error, "the old certificate stays"),
    }
}

/// Connections and pipes need descriptors: as many as this process may have.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(errno) = setrlimit(Resource::Nofile, limit) {
        tracing::debug!(%errno, "the limit of open files stays");
    }
}
