//! The command line, and what can be had here, for tests that skip what can't.

use std::path::PathBuf;

use clap::Parser;
use ntcopy::socket::{Support, kernel_support};
use tracing::level_filters::LevelFilter;

use crate::backend::Place;
use crate::config::{Config, ConfigError};
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

    /// Pass requests on to here, to the first of a host's addresses that takes the connection; may
    /// be repeated, they take turns
    #[arg(long, value_name = "ADDRESS")]
    pub backend: Vec<Place>,

    /// How clients are sent to
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,

    /// Check the configuration and the files that it names, then end
    #[arg(long)]
    pub check: bool,

    /// Say what can be had here, a word a line, then end
    #[arg(long)]
    pub capabilities: bool,

    /// What is logged on standard error: error, warn, info, or debug, every exchange that fails
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LevelFilter,
}

impl Cli {
    /// The file's settings, and over them the command line's.
    pub fn settings(&self) -> Result<Config, ConfigError> {
        let mut config = match &self.config {
            Some(path) => Config::from_file(path)?,
            None => Config::default(),
        };
        if !self.listen.is_empty() {
            config.listen.clone_from(&self.listen);
        }
        if !self.backend.is_empty() {
            config.backends.clone_from(&self.backend);
        }
        config.mode = self.mode.unwrap_or(config.mode);
        Ok(config)
    }
}

/// The words of `--capabilities`, in a fixed order; those that can't be had are left out.
pub fn capabilities() -> Vec<&'static str> {
    let support = kernel_support();
    [
        ("splice", true),
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
