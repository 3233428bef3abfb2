//! The three counters: the kernel's in `/proc/net/netstat`, the module's in `/proc/net/ntcopy`.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use crate::uapi;

/// What was sent on sockets that opted in, in bytes that the calls accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// By all sends.
    pub bytes: u64,
    /// By hinted sends: less than all where a socket's number is longer than its sends.
    pub hinted_bytes: u64,
    /// By hinted sends of which at least one piece went past the caches: less than the hinted
    /// ones where the kernel declined, since it reads the bytes itself, or the socket cannot.
    pub bypassed_bytes: u64,
}

/// Why the counters could not be had.
#[derive(Debug)]
#[non_exhaustive]
pub enum CountersError {
    /// The file is there but cannot be read.
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file has some of the counters, or one that is no number.
    Parse {
        /// The file.
        path: PathBuf,
        /// The counter.
        name: &'static str,
    },
    /// A counter fell between two readings.
    Fell {
        /// The counter.
        name: &'static str,
        /// Its first reading.
        before: u64,
        /// Its second reading.
        after: u64,
    },
}

impl fmt::Display for CountersError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CountersError::Read { path, cause } => {
                write!(out, "cannot read {}: {cause}", path.display())
            }
            CountersError::Parse { path, name } => {
                write!(out, "{}: {name} is not there, or is no number", path.display())
            }
            CountersError::Fell { name, before, after } => write!(
                out,
                "the counter {name} went from {before} to {after}: counters only rise; were both \
                 readings taken in the same network namespace?"
            ),
        }
    }
}

impl Error for CountersError {}

/// The heading of the line of `/proc/net/netstat` that has the kernel's counters.
const HEADING: &str = "TcpExt:";

impl Counters {
    /// Their names.
    pub const NAMES: [&str; 3] = [uapi::STAT_BYTES, uapi::STAT_HINTED, uapi::STAT_BYPASSED];

    fn from_values([bytes, hinted_bytes, bypassed_bytes]: [u64; 3]) -> Counters {
        Counters { bytes, hinted_bytes, bypassed_bytes }
    }

    fn values(&self) -> [u64; 3] {
        [self.bytes, self.hinted_bytes, self.bypassed_bytes]
    }

    /// Each of them with its name.
    pub fn named(&self) -> [(&'static str, u64); 3] {
        let [bytes, hinted_bytes, bypassed_bytes] = self.values();
        [
            (uapi::STAT_BYTES, bytes),
            (uapi::STAT_HINTED, hinted_bytes),
            (uapi::STAT_BYPASSED, bypassed_bytes),
        ]
    }

    /// Those of a network namespace by its folder: the kernel's, else the module's.
    pub(super) fn in_folder(folder: &Path) -> Result<Option<Counters>, CountersError> {
        let module = Path::new(uapi::MODULE_STAT_PATH).file_name().unwrap_or_default();
        match Counters::read(&folder.join("netstat"))? {
            Some(counters) => Ok(Some(counters)),
            None => Counters::read(&folder.join(module)),
        }
    }

    /// Reads a file of counters; `None` if there is no such file, or if it has none of them.
    pub(super) fn read(path: &Path) -> Result<Option<Counters>, CountersError> {
        match fs::read_to_string(path) {
            Ok(text) => Counters::parse(path, &text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(CountersError::Read { path: path.to_owned(), cause }),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Option<Counters>, CountersError> {
        let found = Counters::NAMES.map(|name| by_heading(text, name).or(by_line(text, name)));
        if found.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut values = [0; 3];
        for ((value, word), name) in values.iter_mut().zip(found).zip(Counters::NAMES) {
            let number = word.and_then(|word| word.parse().ok());
            let missing = || CountersError::Parse { path: path.to_owned(), name };
            *value = number.ok_or_else(missing)?;
        }
        Ok(Some(Counters::from_values(values)))
    }

    /// What was added since an earlier reading.
    ///
    /// # Errors
    ///
    /// [`CountersError::Fell`] if a counter fell.
    pub fn since(&self, before: &Counters) -> Result<Counters, CountersError> {
        let mut added = [0; 3];
        for (index, added) in added.iter_mut().enumerate() {
            let (name, after) = self.named()[index];
            let before = before.values()[index];
            *added =
                after.checked_sub(before).ok_or(CountersError::Fell { name, before, after })?;
        }
        Ok(Counters::from_values(added))
    }
}

/// A word of `/proc/net/netstat`, which has a line of names and below it one of values.
fn by_heading<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = text.lines().filter(|line| line.starts_with(HEADING));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|word| word == name)?;
    values.split_whitespace().nth(place)
}

/// A word of the module's file, which has lines of a name and its value.
fn by_line<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETSTAT: &str = "TcpExt: SyncookiesSent NtcopyBytes NtcopyHintedBytes NtcopyBypassedBytes TCPLast\n\
         TcpExt: 7 300 200 100 9\nIpExt: InNoRoutes\nIpExt: 5\n";
    const MODULE: &str = "NtcopyBytes 300\nNtcopyHintedBytes 200\nNtcopyBypassedBytes 100\n";

    fn parse(text: &str) -> Result<Option<Counters>, CountersError> {
        Counters::parse(Path::new("file"), text)
    }

    fn counters(values: [u64; 3]) -> Counters {
        Counters::from_values(values)
    }

    #[test]
    fn the_kernel_s_file_and_the_module_s_say_the_same() {
        for text in [NETSTAT, MODULE] {
            assert_eq!(parse(text).unwrap(), Some(counters([300, 200, 100])));
        }
    }

    #[test]
    fn a_kernel_that_does_not_count_has_none() {
        for text in ["", "TcpExt: SyncookiesSent\nTcpExt: 7\n", "TcpExt:\n", "nonsense"] {
            assert_eq!(parse(text).unwrap(), None, "{text:?}");
        }
        assert_eq!(Counters::read(Path::new("/nonexistent/ntcopy")).unwrap(), None);
        assert!(matches!(Counters::read(Path::new("/")), Err(CountersError::Read { .. })));
    }

    #[test]
    fn a_counter_that_is_missing_or_no_number_is_named() {
        for (text, name) in [
            (MODULE.replace("NtcopyHintedBytes 200\n", ""), "NtcopyHintedBytes"),
            (MODULE.replace("300", "-1"), "NtcopyBytes"),
            (MODULE.replace("100", ""), "NtcopyBypassedBytes"),
            (NETSTAT.replace("200", "2x"), "NtcopyHintedBytes"),
            (NETSTAT.replace(" 200 100 9", ""), "NtcopyHintedBytes"),
        ] {
            let error = parse(&text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("file: {name} is not there")), "{text:?}: {error}");
        }
    }

    #[test]
    fn the_kernel_s_file_counts_where_both_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let read = || Counters::in_folder(folder.path()).unwrap().map(|counters| counters.bytes);
        assert_eq!(read(), None);
        fs::write(folder.path().join("ntcopy"), MODULE.replace("300", "301")).unwrap();
        assert_eq!(read(), Some(301));
        fs::write(folder.path().join("netstat"), NETSTAT).unwrap();
        assert_eq!(read(), Some(300));
    }

    #[test]
    fn a_delta_is_what_was_added_and_a_counter_that_fell_is_an_error() {
        let before = counters([10, 7, 7]);
        assert_eq!(counters([15, 7, 8]).since(&before).unwrap(), counters([5, 0, 1]));
        let fell = counters([15, 6, 8]).since(&before).unwrap_err().to_string();
        assert!(fell.contains("NtcopyHintedBytes went from 7 to 6"), "{fell}");
    }
}
