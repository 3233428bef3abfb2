//! The daemon's settings: its command line, and a file for what that leaves out.

use std::path::{Path, PathBuf};
use std::time::Duration;

use httpd::Address;
pub use httpd::config::ConfigError;
use httpd::config::{ModeBits, Seconds, Size, read, within};
use serde::Deserialize;

use crate::request::Reader;
use crate::send::ModeSetting;

const OBJECT_MAX: Size = Size(4 << 30);
/// Settings that went, and what to do.
pub const GONE: [(&str, &str); 3] = [
    ("zstd", "objects are stored as they come: leave it out, and compress before the PUT"),
    ("decoded-max", "no object is decoded any more: leave it out"),
    ("verify", "no checksums are kept beside the ETag: leave it out, and have the disk verify"),
];

/// Words for how much is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// What went wrong here.
    Error,
    /// And what may go wrong.
    Warn,
    /// And what begins and ends.
    Info,
    /// And what clients did wrong.
    Debug,
}

/// The options of the daemon, as they are given. The file has them by the same names, without
/// the dashes in front.
#[derive(Debug, Clone, Default, PartialEq, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Options {
    /// Where to listen: unix:/PATH or tcp:ADDRESS:PORT; may be given several times
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Vec<Address>,
    /// Folder of the objects, made if it isn't there
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Threads that serve connections [default: one a CPU]
    #[arg(long, value_name = "N")]
    pub workers: Option<usize>,
    /// Threads that wait for the disk [default: 4]
    #[arg(long, value_name = "N")]
    pub disk_threads: Option<usize>,
    /// How bodies are sent [default: auto]
    #[arg(long, value_enum)]
    pub mode: Option<ModeSetting>,
    /// Who reads bodies next, where a request doesn't say [default: unknown]
    #[arg(long, value_enum)]
    pub reader: Option<Reader>,
    /// Largest object [default: 4GiB]
    #[arg(long, value_name = "SIZE")]
    pub object_max: Option<Size>,
    /// Objects that stay open [default: 1024]
    #[arg(long, value_name = "N")]
    pub open_objects: Option<usize>,
    /// Connections at one time [default: 10000]
    #[arg(long, value_name = "N")]
    pub connections_max: Option<usize>,
    /// Send buffer of connections [default: the system's]
    #[arg(long, value_name = "SIZE")]
    pub sndbuf: Option<Size>,
    /// Mode bits of unix sockets, in octal [default: what the umask leaves]
    #[arg(long, value_name = "BITS")]
    pub socket_mode: Option<ModeBits>,
    /// Seconds for the head of a request [default: 10]
    #[arg(long, value_name = "SECONDS")]
    pub head_timeout: Option<Seconds>,
    /// Seconds between two requests of a connection [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub idle_timeout: Option<Seconds>,
    /// Seconds for each 16 KiB of a body to arrive [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub body_timeout: Option<Seconds>,
    /// Seconds for each 16 KiB of a response to leave [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub send_timeout: Option<Seconds>,
    /// Seconds for what is in flight when the daemon is asked to end [default: 10]
    #[arg(long, value_name = "SECONDS")]
    pub drain_timeout: Option<Seconds>,
    /// Log of requests, a JSON object a line
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
    /// Where Prometheus asks: ADDRESS:PORT, or an address as for --listen
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Address>,
    /// What is logged on standard error [default: info]
    #[arg(long, value_enum)]
    pub log_level: Option<LogLevel>,
}

/// What can change while the daemon runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tunables {
    pub mode: ModeSetting,
    pub reader: Reader,
    pub object_max: u64,
    /// For a head.
    pub head_timeout: Duration,
    /// Between two requests.
    pub idle_timeout: Duration,
    /// For 16 KiB of a body.
    pub body_timeout: Duration,
    /// For 16 KiB of a response.
    pub send_timeout: Duration,
}

/// The options with their defaults.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Where to listen; at least one.
    pub listen: Vec<Address>,
    pub data: PathBuf,
    pub workers: usize,
    pub disk_threads: usize,
    pub open_objects: usize,
    pub connections_max: usize,
    pub sndbuf: Option<usize>,
    pub socket_mode: Option<u32>,
    /// For what is in flight at the end.
    pub drain_timeout: Duration,
    pub access_log: Option<PathBuf>,
    pub metrics: Option<Address>,
    pub log_level: LogLevel,
    pub tunables: Tunables,
}

impl Options {
    /// Adds what the file says to what is not given here.
    pub fn with_file(self, path: &Path) -> Result<Options, ConfigError> {
        let file = read(path, &GONE)?;
        Ok(self.or(file))
    }

    fn or(self, other: Options) -> Options {
        Options {
            listen: if self.listen.is_empty() { other.listen } else { self.listen },
            data: self.data.or(other.data),
            workers: self.workers.or(other.workers),
            disk_threads: self.disk_threads.or(other.disk_threads),
            mode: self.mode.or(other.mode),
            reader: self.reader.or(other.reader),
            object_max: self.object_max.or(other.object_max),
            open_objects: self.open_objects.or(other.open_objects),
            connections_max: self.connections_max.or(other.connections_max),
            sndbuf: self.sndbuf.or(other.sndbuf),
            socket_mode: self.socket_mode.or(other.socket_mode),
            head_timeout: self.head_timeout.or(other.head_timeout),
            idle_timeout: self.idle_timeout.or(other.idle_timeout),
            body_timeout: self.body_timeout.or(other.body_timeout),
            send_timeout: self.send_timeout.or(other.send_timeout),
            drain_timeout: self.drain_timeout.or(other.drain_timeout),
            access_log: self.access_log.or(other.access_log),
            metrics: self.metrics.or(other.metrics),
            log_level: self.log_level.or(other.log_level),
        }
    }

    /// Fills in the defaults.
    pub fn resolve(self) -> Result<Config, ConfigError> {
        let missing = |what: &str| ConfigError::Value(format!("{what} is missing"));
        if self.listen.is_empty() {
            return Err(missing("where to listen: --listen unix:/PATH"));
        }
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        let seconds =
            |given: Option<Seconds>, or| given.map_or(Duration::from_secs(or), |given| given.0);
        let sndbuf = self.sndbuf.map(|size| usize::try_from(size.0).unwrap_or(usize::MAX));
        Ok(Config {
            data: self.data.ok_or_else(|| missing("the folder of the objects: --data DIR"))?,
            workers: within("workers", self.workers.unwrap_or_else(cpus), 1..=1024)?,
            disk_threads: within("disk-threads", self.disk_threads.unwrap_or(4), 1..=1024)?,
            open_objects: within("open-objects", self.open_objects.unwrap_or(1024), 1..=60_000)?,
            connections_max: within(
                "connections-max",
                self.connections_max.unwrap_or(10_000),
                1..=1_000_000,
            )?,
            sndbuf: sndbuf.map(|bytes| within("sndbuf", bytes, 4096..=1 << 30)).transpose()?,
            socket_mode: self.socket_mode.map(|bits| bits.0),
            drain_timeout: seconds(self.drain_timeout, 10),
            access_log: self.access_log,
            metrics: self.metrics,
            log_level: self.log_level.unwrap_or(LogLevel::Info),
            tunables: Tunables {
                mode: self.mode.unwrap_or_default(),
                reader: self.reader.unwrap_or_default(),
                object_max: self.object_max.unwrap_or(OBJECT_MAX).0,
                head_timeout: seconds(self.head_timeout, 10),
                idle_timeout: seconds(self.idle_timeout, 60),
                body_timeout: seconds(self.body_timeout, 30),
                send_timeout: seconds(self.send_timeout, 300),
            },
            listen: self.listen,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<Options, ConfigError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Options::default().with_file(file.path())
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        let file = file(
            "listen = [\"unix:/run/s\"]\ndata = \"/d\"\nmode = \"nt\"\nobject-max = \"16MiB\"\n\
             sndbuf = 65536\nidle-timeout = 2\nhead-timeout = 0.5\nsocket-mode = \"660\"\n\
             metrics = \"127.0.0.1:9\"\n",
        );
        let given = Options { mode: Some(ModeSetting::Copy), ..Options::default() };
        let config = given.or(file.unwrap()).resolve().unwrap();
        assert_eq!(config.tunables.mode, ModeSetting::Copy);
        assert_eq!(config.tunables.object_max, 16 << 20);
        assert_eq!(config.sndbuf, Some(65_536));
        assert_eq!(config.socket_mode, Some(0o660));
        assert_eq!(config.tunables.idle_timeout, Duration::from_secs(2));
        assert_eq!(config.tunables.head_timeout, Duration::from_millis(500));
    }

    #[test]
    fn a_mistake_in_the_file_is_named_with_its_line() {
        for (text, words) in [
            ("\nmod = \"nt\"\n", ["line 2", "mod"]),
            ("mode = \"fast\"\n", ["line 1", "fast"]),
            ("listen = [\"nowhere\"]\n", ["line 1", "nowhere"]),
            ("\nzstd = 3\n", ["line 2", "compress before the PUT"]),
            ("verify = \"once\"\n", ["line 1", "leave it out"]),
        ] {
            let error = file(text).unwrap_err().to_string();
            assert!(words.iter().all(|word| error.contains(word)), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_must_be_there_and_what_is_out_of_bounds() {
        let whole = Options {
            listen: vec!["unix:/s".parse().unwrap()],
            data: Some("/d".into()),
            ..Options::default()
        };
        assert!(whole.clone().resolve().is_ok());
        assert!(Options { listen: Vec::new(), ..whole.clone() }.resolve().is_err());
        assert!(Options { data: None, ..whole.clone() }.resolve().is_err());
        assert!(Options { workers: Some(0), ..whole.clone() }.resolve().is_err());
        assert!(Options { sndbuf: Some(Size(1)), ..whole }.resolve().is_err());
    }
}
