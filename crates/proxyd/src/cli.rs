//! The command line, and what can be had here, for tests that skip what can't.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use clap::Parser;
use clap::error::ContextKind;
use httpd::config::ConfigError;
use ntcopy::socket::{Support, kernel_support};

use crate::backend::Place;
use crate::config::{Config, TlsBy};
use crate::mode::Mode;

/// HTTP reverse proxy that splices bodies, and sends what it must write past the CPU caches.
#[derive(Debug, Parser)]
#[command(name = "proxyd", version)]
#[command(after_help = "Signals: TERM, INT: finish what is in flight, then end; a second one: \
    end at once. HUP: read the certificate and its key again, open the access log again.\n\nExit status: 0 done; 1 failed; 2 usage; 3 not available here.")]
pub struct Cli {
    /// TOML file; what is given here wins over it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Accept HTTP here, at every address of a host: tcp:HOST:PORT or unix:PATH; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<Place>,

    /// Accept HTTP over TLS here; may be repeated
    #[arg(long, value_name = "ADDRESS")]
    pub tls_listen: Vec<Place>,

    /// Pass requests on to here, to the first of a host's addresses that takes the connection; may
    /// be repeated, they take turns
    #[arg(long, value_name = "ADDRESS")]
    pub backend: Vec<Place>,

    /// How clients are sent to
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,

    /// Threads; by default one a CPU that this process may use
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,

    /// Copy bodies, never splice them
    #[arg(long)]
    pub no_splice: bool,

    /// Who encrypts after a TLS handshake: this process, or the kernel where it can
    #[arg(long, value_name = "BY")]
    pub tls: Option<TlsBy>,

    /// The certificate chain for TLS, PEM
    #[arg(long, value_name = "FILE")]
    pub cert: Option<PathBuf>,

    /// The certificate's private key, PEM
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,

    /// Serve /metrics for Prometheus here, a TCP address
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Place>,

    /// Log exchanges to a file, or to standard output: -
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,

    /// Check the configuration and the files that it names, then end
    #[arg(long)]
    pub check: bool,

    /// Say what can be had here, a word a line, then end
    #[arg(long)]
    pub capabilities: bool,

    /// With --capabilities: as JSON
    #[arg(long, requires = "capabilities")]
    pub json: bool,
}

/// Options of earlier versions, and what to do instead.
const GONE: [(&str, &str); 1] =
    [("--quic", "offer TLS by --tls-listen, and let the edge before proxyd speak HTTP/3")];

/// A line on standard error. Where it can't be written, there is the code to end with.
pub fn complain(what: &dyn fmt::Display) {
    let _ = writeln!(io::stderr(), "proxyd: {what}");
}

/// Prints to standard output; the error is the code to end with.
pub fn print(text: &str) -> Result<(), u8> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|cause| unwritten(&cause))
}

fn unwritten(cause: &io::Error) -> u8 {
    complain(&format_args!("cannot write to standard output: {cause}"));
    1
}

impl Cli {
    /// What the program was called with. Of help, of the version and of a mistake, the words are
    /// printed, and the code to end with is the error.
    pub fn of_process() -> Result<Cli, u8> {
        Cli::try_parse().map_err(|error| {
            let named = error.get(ContextKind::InvalidArg).map(ToString::to_string);
            let gone = GONE.iter().find(|(option, _)| named.as_deref() == Some(*option));
            if let Some((option, instead)) = gone {
                complain(&format_args!("{option} went: {instead}"));
            }
            match error.print().and_then(|()| io::stdout().flush()) {
                Err(cause) if !error.use_stderr() => unwritten(&cause),
                _ => error.exit_code() as u8,
            }
        })
    }

    /// The file's settings, and over them the command line's.
    pub fn settings(&self) -> Result<Config, ConfigError> {
        let mut config = match &self.config {
            Some(path) => Config::from_file(path)?,
            None => Config::default(),
        };
        fn replace<T: Clone>(to: &mut Vec<T>, with: &[T]) {
            if !with.is_empty() {
                *to = with.to_vec();
            }
        }
        replace(&mut config.listen, &self.listen);
        replace(&mut config.tls_listen, &self.tls_listen);
        replace(&mut config.backends, &self.backend);
        config.mode = self.mode.unwrap_or(config.mode);
        config.workers = self.workers.unwrap_or(config.workers);
        config.splice &= !self.no_splice;
        config.tls.by = self.tls.unwrap_or(config.tls.by);
        config.tls.certificate = self.cert.clone().or(config.tls.certificate);
        config.tls.key = self.key.clone().or(config.tls.key);
        config.metrics = self.metrics.clone().or(config.metrics);
        config.access_log = self.access_log.clone().or(config.access_log);
        Ok(config)
    }
}

/// The words of `--capabilities`, in a fixed order; those that can't be had are left out.
pub fn capabilities() -> Vec<&'static str> {
    let support = kernel_support();
    [
        ("splice", crate::splice::probe()),
        ("nt-kernel", support == Support::Kernel),
        ("nt-module", support == Support::Module),
        ("tls", true),
        ("ktls", crate::ktls::is_available()),
    ]
    .into_iter()
    .filter_map(|(word, had)| had.then_some(word))
    .collect()
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_wins_over_the_file() {
        Cli::command().debug_assert();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("p.toml");
        std::fs::write(&path, "backends = [\"unix:/a\"]\nworkers = 3\nmode = \"nt\"\n").unwrap();
        let path = path.to_str().unwrap();
        let cli =
            Cli::parse_from(["proxyd", "--config", path, "--mode", "copy", "--backend", "unix:/b"]);
        let config = cli.settings().unwrap();
        assert_eq!((config.workers, config.mode, config.splice), (3, Mode::Copy, true));
        assert_eq!(config.backends, ["unix:/b".parse().unwrap()]);
    }
}
