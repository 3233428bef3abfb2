//! The proxy's settings: its command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgGroup, Parser};
use httpd::options::{seconds, size};
use httpd::{Options, Place, is_handed_sockets};
use ntcopy::socket::{Setting, Support, kernel_support};
use ntcopy::uapi;
use rustls::ServerConfig;

use crate::paths::prefix;
use crate::tls::server_config;

const METHODS: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/// HTTP reverse proxy that splices bodies, and sends what it must write past the CPU caches
#[derive(Debug, Clone, Parser)]
#[command(name = "proxyd", version, args_override_self = true)]
#[command(group(ArgGroup::new("door").args(["listen", "tls_listen"]).required(!is_handed_sockets()).multiple(true)))]
#[command(
    after_help = "Signals: SIGTERM and SIGINT end what is in flight, then the proxy; a second one \
                        ends it at once. SIGHUP reads certificate and key again.\n\nExit codes: 0 \
                        done; 1 failed; 2 usage."
)]
pub struct Config {
    #[command(flatten)]
    pub options: Options,
    /// Where to listen for TLS
    #[arg(long, value_name = "ADDRESS", requires_all = ["certificate", "key"])]
    pub tls_listen: Vec<Place>,
    /// PEM file of the certificate chain, the server's own first
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// PEM file of its private key
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Where requests go: the first address of a host that takes the connection. A name is looked up
    /// again every few seconds
    #[arg(long, value_name = "ADDRESS")]
    pub backend: Place,
    /// How clients are sent to
    #[arg(long, default_value = "copy")]
    pub mode: Mode,
    /// Methods that are passed on
    #[arg(long, value_name = "NAME", default_values = METHODS)]
    pub method: Vec<String>,
    /// Paths that are passed on, with all below them; may be repeated [default: all]
    #[arg(long, value_name = "PREFIX", value_parser = prefix)]
    pub path: Vec<String>,
    /// Connections to the backend per worker: beyond, exchanges wait
    #[arg(long, value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u16).range(1..))]
    pub backend_connections: u16,
    /// Of these, connections that are kept idle
    #[arg(long, value_name = "N", default_value = "256")]
    pub backend_idle: usize,
    /// For a connection to each of the backend's addresses
    #[arg(long, value_name = "SECONDS", default_value = "2", value_parser = seconds)]
    pub connect_timeout: Duration,
    /// For the head of an answer, from the request's last byte on
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub answer_timeout: Duration,
    /// Between two requests of a connection to the backend
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub backend_idle_timeout: Duration,
    /// Pipes per worker: beyond, bodies are copied; 0: all of them
    #[arg(long, value_name = "N", default_value = "1024")]
    pub pipes: usize,
    /// What a pipe holds
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = size)]
    pub pipe_size: u64,
}

impl Config {
    /// What clients of TLS are offered, from the files that are named; `None` if none are.
    pub fn offered(&self) -> anyhow::Result<Option<ServerConfig>> {
        let (Some(certificate), Some(key)) = (&self.certificate, &self.key) else {
            return Ok(None);
        };
        Ok(Some(server_config(certificate, key)?))
    }
}

/// How clients are sent to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Plainly.
    Copy,
    /// Hinted from a page on.
    Nt,
}

impl Mode {
    /// What a client's socket is set to, if the kernel takes that; the module attaches no TCP.
    pub fn setting(self) -> Option<Setting> {
        let setting = match self {
            Mode::Copy => None,
            Mode::Nt => Some(Setting::From(uapi::MIN_BYTES.cast_unsigned())),
        };
        setting.filter(|_| kernel_support() == Support::Kernel)
    }
}
