//! The kernel's counters, as `/proc/net/ntcopy_stat` prints them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// Bytes by the counter's name (`uapi::STAT_*`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counters(BTreeMap<String, u64>);

/// Why the counters could not be had.
#[derive(Debug, thiserror::Error)]
pub enum CountersError {
    /// The file is there but cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// A line is not `<name> <count>`.
    #[error("{path}, line {line}: expected \"<name> <count>\", found {found:?}")]
    Parse {
        /// The file.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The line.
        found: String,
    },
    /// A counter fell or vanished between two readings.
    #[error(
        "the counter {name} went from {before} to {after}: counters only rise; were both \
         readings taken in the same network namespace?"
    )]
    Fell {
        /// The counter.
        name: String,
        /// Its first reading.
        before: u64,
        /// Its second reading, 0 if it was gone.
        after: u64,
    },
}

impl Counters {
    /// Reads a file of counters; `None` if there is no such file.
    pub(super) fn read(path: &Path) -> Result<Option<Counters>, CountersError> {
        match fs::read_to_string(path) {
            Ok(text) => Counters::parse(path, &text).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(CountersError::Read { path: path.to_owned(), cause }),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Counters, CountersError> {
        let mut counters = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let parsed = match (words.next(), words.next(), words.next()) {
                (Some(name), Some(count), None) => count.parse().ok().map(|count| (name, count)),
                _ => None,
            };
            let doubled = parsed.is_some_and(|(name, _)| counters.contains_key(name));
            match parsed {
                Some((name, count)) if !doubled => counters.insert(name.to_owned(), count),
                _ => {
                    return Err(CountersError::Parse {
                        path: path.to_owned(),
                        line: index + 1,
                        found: line.to_owned(),
                    });
                }
            };
        }
        Ok(Counters(counters))
    }

    /// The count of one name, 0 if the kernel does not count it.
    pub fn get(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// All of them, by name.
    pub fn as_map(&self) -> &BTreeMap<String, u64> {
        &self.0
    }

    /// All of them, by name.
    pub fn into_map(self) -> BTreeMap<String, u64> {
        self.0
    }

    /// What was added since an earlier reading.
    ///
    /// # Errors
    ///
    /// [`CountersError::Fell`] if a counter fell or vanished.
    pub fn since(&self, before: &Counters) -> Result<Counters, CountersError> {
        let fell = |name: &str, before, after| {
            Err(CountersError::Fell { name: name.to_owned(), before, after })
        };
        for (name, count) in &before.0 {
            if !self.0.contains_key(name) {
                return fell(name, *count, 0);
            }
        }
        let mut delta = BTreeMap::new();
        for (name, after) in &self.0 {
            let earlier = before.get(name);
            let Some(added) = after.checked_sub(earlier) else {
                return fell(name, earlier, *after);
            };
            delta.insert(name.clone(), added);
        }
        Ok(Counters(delta))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uapi;

    fn parse(text: &str) -> Result<Counters, CountersError> {
        Counters::parse(Path::new("stat"), text)
    }

    #[test]
    fn lines_are_names_and_counts() {
        let counters = parse("nontemporal_bytes 12\nfits_cache_bytes 0\n").unwrap();
        assert_eq!(counters.get(uapi::STAT_NONTEMPORAL), 12);
        assert_eq!(counters.get(uapi::STAT_FITS_CACHE), 0);
        assert_eq!(counters.as_map().len(), 2);
        assert_eq!(parse("").unwrap(), Counters::default());
    }

    #[test]
    fn a_bad_line_is_named() {
        for bad in ["x", "x y", "x 1 2", "x -1", "", "nontemporal_bytes 5"] {
            let error = parse(&format!("nontemporal_bytes 12\n{bad}\n")).unwrap_err().to_string();
            assert!(error.starts_with("stat, line 2: "), "{bad:?}: {error}");
        }
    }

    #[test]
    fn a_delta_is_what_was_added() {
        let before = parse("a 10\nb 7\n").unwrap();
        let delta = parse("a 15\nb 7\nc 3\n").unwrap().since(&before).unwrap();
        assert_eq!(delta, parse("a 5\nb 0\nc 3\n").unwrap());
    }

    #[test]
    fn a_counter_that_fell_or_vanished_is_an_error() {
        let before = parse("a 10\nb 0\n").unwrap();
        let fell = parse("a 9\nb 0\n").unwrap().since(&before).unwrap_err().to_string();
        assert!(fell.contains("a went from 10 to 9"), "{fell}");
        assert!(parse("a 10\n").unwrap().since(&before).is_err());
    }

    #[test]
    fn no_file_is_none_and_a_folder_is_an_error() {
        assert!(Counters::read(Path::new("/nonexistent/ntcopy")).unwrap().is_none());
        assert!(matches!(Counters::read(Path::new("/")), Err(CountersError::Read { .. })));
    }
}
