//! The daemon's settings: its command line, and a file for what that leaves out.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command, CommandFactory, Parser};
use httpd::Address;
use httpd::config::{ModeBits, seconds, size};
use tracing::level_filters::LevelFilter;

use crate::request::Reader;
use crate::send::ModeSetting;

/// An object store daemon: HTTP/1.1 on unix sockets and TCP
#[derive(Debug, Parser)]
#[command(name = "storaged", version)]
#[command(after_help = "Signals: SIGTERM and SIGINT end what is in flight, then the daemon; a \
                        second one ends it at once. SIGHUP opens the access log anew.\n\n\
                        Exit codes: 0 done; 1 failed; 2 usage.")]
pub struct Config {
    /// File with the same options, in TOML, without the dashes in front; what is given here goes
    /// before it
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print what this build and this machine can do, a word a line
    #[arg(long)]
    pub capabilities: bool,
    /// Where to listen: unix:/PATH or tcp:ADDRESS:PORT; may be given several times
    #[arg(long, value_name = "ADDRESS", required = true)]
    pub listen: Vec<Address>,
    /// Folder of the objects, made if it isn't there
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Threads that serve connections [default: one a CPU]
    #[arg(long, value_name = "N", value_parser = number(1024))]
    pub workers: Option<usize>,
    /// Objects that are opened at one time, and changes that wait for the disk
    #[arg(long, value_name = "N", default_value = "4", value_parser = number(1024))]
    pub disk_threads: usize,
    /// How bodies are sent
    #[arg(long, default_value = "auto")]
    pub mode: ModeSetting,
    /// Who reads bodies next, where a request doesn't say
    #[arg(long, default_value = "unknown")]
    pub reader: Reader,
    /// Largest object: a number of bytes, or one with KiB, MiB or GiB
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = size)]
    pub object_max: u64,
    /// Objects that stay open
    #[arg(long, value_name = "N", default_value = "1024", value_parser = number(60_000))]
    pub open_objects: usize,
    /// Connections at one time: beyond, the longest idle makes room; if none is, a client gets 503
    #[arg(long, value_name = "N", default_value = "10000", value_parser = number(1_000_000))]
    pub connections_max: usize,
    /// Send buffer of connections [default: the system's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub sndbuf: Option<u64>,
    /// Mode bits of unix sockets, in octal [default: what the umask leaves]
    #[arg(long, value_name = "BITS")]
    pub socket_mode: Option<ModeBits>,
    /// For the head of a request
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub head_timeout: Duration,
    /// Between two requests of a connection
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub idle_timeout: Duration,
    /// For each 16 KiB of a body to arrive
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds)]
    pub body_timeout: Duration,
    /// For each 16 KiB of a response to leave
    #[arg(long, value_name = "SECONDS", default_value = "300", value_parser = seconds)]
    pub send_timeout: Duration,
    /// For what is in flight when the daemon is asked to end
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = seconds)]
    pub drain_timeout: Duration,
    /// Log of requests, a JSON object a line
    #[arg(long, value_name = "FILE")]
    pub access_log: Option<PathBuf>,
    /// Where Prometheus asks: ADDRESS:PORT, or an address as for --listen
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<Address>,
    /// What is logged on standard error: error, warn, info or debug
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    pub log_level: LevelFilter,
}

fn number(most: u64) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..=most)
}

impl Config {
    /// What these words say, the program's name first; `None` if it is what can be done here.
    ///
    /// # Errors
    ///
    /// There is a mistake, or help was asked for: clap's error prints either, and has the exit code.
    pub fn of_words(words: Vec<OsString>) -> Result<Option<Config>, clap::Error> {
        let mut command = Config::command();
        let optional = command.clone().mut_args(|arg| arg.required(false));
        let given = optional.try_get_matches_from(&words);
        // Its usage has the options that there must be.
        let given = given.map_err(|error| Config::try_parse_from(&words).err().unwrap_or(error))?;
        if given.get_flag("capabilities") {
            return Ok(None);
        }
        let mut words = words.into_iter();
        let mut all: Vec<OsString> = words.next().into_iter().collect();
        if let Some(path) = given.get_one::<PathBuf>("config") {
            let left_out = words_of_file(path, &command, &given);
            all.extend(left_out.map_err(|why| {
                command.error(ErrorKind::ValueValidation, format!("{}: {why}", path.display()))
            })?);
        }
        all.extend(words);
        Config::try_parse_from(all).map(Some)
    }

    pub fn worker_threads(&self) -> usize {
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        self.workers.unwrap_or_else(cpus)
    }
}

/// The options of the file that are not `given`, as the command line has them.
fn words_of_file(
    path: &Path,
    command: &Command,
    given: &ArgMatches,
) -> Result<Vec<OsString>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let file: toml::Table = text.parse().map_err(|error: toml::de::Error| error.to_string())?;
    let mut words = Vec::new();
    for (name, value) in file {
        let option = command.get_arguments().find(|arg| {
            arg.get_long() == Some(&*name) && !matches!(arg.get_action(), ArgAction::SetTrue)
        });
        let option = option.ok_or_else(|| format!("there is no option {name:?}"))?;
        if given.value_source(option.get_id().as_str()) == Some(ValueSource::CommandLine) {
            continue;
        }
        let values = match value {
            toml::Value::Array(list) => list,
            one => vec![one],
        };
        for value in values {
            let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            words.push(format!("--{name}={value}").into());
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, words: &[&str]) -> Result<Config, String> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let path = file.path().to_str().unwrap();
        let words = [&["storaged", "--config", path], words].concat();
        let config = Config::of_words(words.into_iter().map(OsString::from).collect());
        config.map(Option::unwrap).map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_goes_before_the_file() {
        Config::command().debug_assert();
        let config = parse(
            "listen = [\"unix:/run/s\", \"unix:/run/t\"]\ndata = \"/d\"\nmode = \"nt\"\n\
             object-max = \"16MiB\"\nsndbuf = 65536\nidle-timeout = 2\nhead-timeout = 0.5\n\
             socket-mode = \"660\"\n",
            &["--mode", "copy", "--listen", "tcp:127.0.0.1:1"],
        );
        let config = config.unwrap();
        assert_eq!(config.mode, ModeSetting::Copy);
        assert_eq!(config.listen, ["tcp:127.0.0.1:1".parse().unwrap()]);
        assert_eq!((config.object_max, config.sndbuf), (16 << 20, Some(65_536)));
        assert_eq!((config.disk_threads, config.socket_mode), (4, Some(ModeBits(0o660))));
        assert_eq!(config.idle_timeout, Duration::from_secs(2));
        assert_eq!(config.head_timeout, Duration::from_millis(500));
    }

    #[test]
    fn a_mistake_is_named() {
        for (text, words, named) in [
            ("mod = \"nt\"\n", &[][..], "no option \"mod\""),
            ("capabilities = true\n", &[], "no option"),
            ("mode = \"fast\"\n", &[], "fast"),
            ("\nlisten = [\n", &[], "line 2"),
            ("listen = [\"nowhere\"]\n", &[], "nowhere"),
            ("data = \"/d\"\n", &[], "--listen"),
            ("listen = \"unix:/s\"\n", &[], "--data"),
            ("", &["--workers", "0"], "1..=1024"),
        ] {
            let error = parse(text, words).unwrap_err();
            assert!(error.contains(named), "{text:?}: {error}");
        }
    }
}
