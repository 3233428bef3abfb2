//! The proxy's settings: a TOML file, the command line over it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use httpd::Address;
use httpd::head::MAX_HEADERS;
use rustls::ServerConfig;
use serde::Deserialize;

use crate::backend::Place;
use crate::mode::Mode;
use crate::policy::Policy;
use crate::tls::server_config;

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(pub String);

/// Everything that can be set.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Where plain HTTP is accepted.
    pub listen: Vec<Place>,
    /// Where HTTP over TLS is accepted.
    pub tls_listen: Vec<Place>,
    /// Where requests go.
    pub backends: Vec<Place>,
    /// Threads; 0 stands for one a CPU that this process may use.
    pub workers: usize,
    /// How clients are sent to.
    pub mode: Mode,
    /// Whether bodies may be spliced.
    pub splice: bool,
    /// Where `/metrics` is served, a TCP address.
    pub metrics: Option<Place>,
    /// Where exchanges are logged: a file, or `-` for standard output.
    pub access_log: Option<PathBuf>,
    /// What listeners let in.
    pub edge: Policy,
    /// TLS.
    pub tls: Tls,
    /// How long each phase may take.
    pub timeouts: Timeouts,
    /// How much of everything.
    pub limits: Limits,
    /// When a backend is passed over.
    pub health: Health,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: Vec::new(),
            tls_listen: Vec::new(),
            backends: Vec::new(),
            workers: 0,
            mode: Mode::default(),
            splice: true,
            metrics: None,
            access_log: None,
            edge: Policy::default(),
            tls: Tls::default(),
            timeouts: Timeouts::default(),
            limits: Limits::default(),
            health: Health::default(),
        }
    }
}

/// Who encrypts what goes to clients of TLS, once the handshake is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TlsBy {
    /// This process.
    #[default]
    User,
    /// The kernel, so that bodies are spliced; where it can't, this process.
    Ktls,
}

/// Files for TLS, in PEM form.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// Who encrypts after the handshake.
    pub by: TlsBy,
    /// The certificate chain, the server's own first.
    pub certificate: Option<PathBuf>,
    /// Its private key.
    pub key: Option<PathBuf>,
}

macro_rules! settings {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty = $value:expr,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $kind,)*
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $value,)* }
            }
        }
    };
}

settings! {
    /// How long each phase may take, in milliseconds.
    Timeouts {
        /// A TLS handshake.
        handshake_ms: u64 = 10_000,
        /// A request's head, from its first byte to its last.
        header_ms: u64 = 10_000,
        /// A body that makes no progress, in either direction.
        body_idle_ms: u64 = 30_000,
        /// A connection to a backend.
        connect_ms: u64 = 2_000,
        /// A response's head, from the request's last byte on.
        backend_header_ms: u64 = 30_000,
        /// A client's connection between requests.
        keep_alive_ms: u64 = 60_000,
        /// A backend's connection between requests.
        backend_idle_ms: u64 = 30_000,
        /// What is in flight when the proxy is asked to stop.
        shutdown_ms: u64 = 30_000,
    }
}

settings! {
    /// How much of everything there may be.
    Limits {
        /// Bytes of a head, the empty line included.
        head_bytes: usize = 16 << 10,
        /// Bytes of one line of a head.
        line_bytes: usize = 8 << 10,
        /// Header lines.
        headers: usize = 100,
        /// Bytes of a request's body; 0 stands for no limit.
        body_bytes: u64 = 0,
        /// Client connections, of all workers.
        connections: usize = 8192,
        /// And of one address, or of one /64; 0: no limit.
        connections_per_client: usize = 1024,
        /// Connections to one backend a worker; what comes beyond waits. 0: no limit.
        backend_connections: usize = 1024,
        /// Idle connections to backends a worker.
        backend_idle: usize = 256,
        /// Connections an exchange is tried on.
        tries: u32 = 3,
        /// Pipes a worker; without one a body is copied.
        pipes: usize = 1024,
        /// Bytes of a pipe.
        pipe_bytes: usize = 1 << 20,
        /// Bodies, and the insides of chunks, of at least this number of bytes are spliced: below,
        /// a copy costs less than the two calls of a splice.
        splice_min_bytes: u64 = 16 << 10,
    }
}

settings! {
    /// When a backend is passed over.
    Health {
        /// Failures in a row.
        failures: u32 = 3,
        /// For how long, in milliseconds.
        down_ms: u64 = 5_000,
    }
}

macro_rules! durations {
    ($($name:ident: $field:ident,)*) => {
        impl Timeouts {
            $(pub(crate) fn $name(&self) -> Duration {
                Duration::from_millis(self.$field)
            })*
        }
    };
}

durations! {
    handshake: handshake_ms,
    header: header_ms,
    body_idle: body_idle_ms,
    connect: connect_ms,
    backend_header: backend_header_ms,
    keep_alive: keep_alive_ms,
    backend_idle: backend_idle_ms,
    shutdown: shutdown_ms,
}

impl Limits {
    /// Those that concern heads and bodies alone.
    pub fn http(&self) -> httpd::Limits {
        httpd::Limits {
            head_bytes: self.head_bytes,
            line_bytes: self.line_bytes,
            headers: self.headers,
            body_bytes: self.body_bytes,
        }
    }
}

impl Config {
    /// Reads a file.
    pub fn from_file(path: &Path) -> Result<Config, ConfigError> {
        let wrong = |what: &str| ConfigError(format!("{}: {what}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
        toml::from_str(&text).map_err(|error| wrong(error.to_string().trim_end()))
    }

    /// Whether the values make sense together.
    pub fn check(&self) -> Result<(), ConfigError> {
        let wrong = |text: &str| Err(ConfigError(text.to_owned()));
        if self.listen.is_empty() && self.tls_listen.is_empty() {
            return wrong("nothing to listen on: give --listen, or set listen or tls_listen");
        }
        if self.backends.is_empty() {
            return wrong("no backend: give --backend");
        }
        let encrypted = !self.tls_listen.is_empty();
        if encrypted && (self.tls.certificate.is_none() || self.tls.key.is_none()) {
            return wrong("TLS needs tls.certificate and tls.key");
        }
        let limits = &self.limits;
        if limits.headers == 0 || limits.headers > MAX_HEADERS {
            return wrong("limits.headers must be 1 to 256");
        }
        if limits.line_bytes < 64 || limits.head_bytes < limits.line_bytes {
            return wrong("limits: 64 <= line_bytes <= head_bytes must hold");
        }
        if limits.head_bytes > 1 << 20 {
            return wrong("limits.head_bytes must be at most 1 MiB");
        }
        if limits.connections == 0 || limits.tries == 0 || limits.splice_min_bytes == 0 {
            return wrong("limits: connections, tries and splice_min_bytes must not be 0");
        }
        if self.health.failures == 0 {
            return wrong("health.failures must not be 0");
        }
        let mut metrics = self.metrics.iter().flat_map(Place::addresses);
        if metrics.any(|at| matches!(at, Address::Unix(_))) {
            return wrong("metrics must be a TCP address");
        }
        Ok(())
    }

    /// What clients of TLS are offered, from the files that are named; `None` if none are.
    pub fn offered(&self) -> Result<Option<Arc<ServerConfig>>, ConfigError> {
        let (Some(certificate), Some(key)) = (&self.tls.certificate, &self.tls.key) else {
            return Ok(None);
        };
        let offered = server_config(certificate, key);
        let mut offered = offered.map_err(|error| ConfigError(error.to_string()))?;
        // The kernel is given secrets only where it was asked for.
        offered.enable_secret_extraction = self.tls.by == TlsBy::Ktls;
        Ok(Some(Arc::new(offered)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("proxyd.toml");
        std::fs::write(&path, text).unwrap();
        Config::from_file(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_file_sets_what_it_names_and_leaves_the_rest() {
        let config = read(
            "listen = [\"tcp:127.0.0.1:80\"]\nbackends = [\"unix:/b\"]\nmode = \"nt\"\n\
             [timeouts]\nheader_ms = 5\n[limits]\nheaders = 7\n",
        )
        .unwrap();
        assert_eq!((config.mode, config.timeouts.header_ms), (Mode::Nt, 5));
        assert_eq!(config.timeouts.connect_ms, Timeouts::default().connect_ms);
        assert_eq!(config.limits.headers, 7);
        config.check().unwrap();
    }

    #[test]
    fn a_mistake_is_named_with_file_and_line() {
        for (text, named) in [
            ("\nlisten = [\"nowhere\"]\n", "nowhere"),
            ("\n[timeouts]\nheader = 5\n", "header"),
            ("\nmode = \"fast\"\n", "fast"),
            ("\nworkers = -1\n", "workers"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains("proxyd.toml: ") && error.contains("line "), "{error}");
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn values_that_make_no_sense_are_refused() {
        let good = Config {
            listen: vec!["tcp:127.0.0.1:0".parse().unwrap()],
            backends: vec!["unix:/b".parse().unwrap()],
            ..Config::default()
        };
        good.check().unwrap();
        let bad = |change: fn(&mut Config)| {
            let mut config = good.clone();
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        assert!(bad(|config| config.listen.clear()).contains("--listen"));
        assert!(bad(|config| config.backends.clear()).contains("--backend"));
        assert!(bad(|config| config.tls_listen = config.listen.clone()).contains("tls.key"));
        assert!(bad(|config| config.limits.headers = 257).contains("headers"));
        assert!(bad(|config| config.limits.line_bytes = 1 << 20).contains("line_bytes"));
        assert!(bad(|config| config.health.failures = 0).contains("failures"));
        assert!(bad(|config| config.metrics = Some("/m".parse().unwrap())).contains("metrics"));
    }
}
