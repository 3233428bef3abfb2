//! Reading a record back: strict about what is there, tolerant of a cut-short end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::{file, foreign};

use super::{Cell, FILE_NAME, FORMAT, Line, MISSES_PERMILLE, Params, Record, Sample, old, word};

/// The format since which records say what their modes are.
const NAMED_MODES: u32 = 3;
/// Numbers that the samples of a record may have in all: packed as histograms, a small file could
/// take all memory.
const MOST_NUMBERS: usize = 16 << 20;

/// Why a record could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file could not be opened or read.
    #[error("cannot read the record {file}: {cause}", file = foreign::visible(&.file.to_string_lossy()))]
    Io { file: PathBuf, cause: std::io::Error },
    /// The record is of a newer format than this program knows.
    #[error(
        "{file} is a record of format {found}, and this ntcopy reads formats up to {FORMAT}: read \
         it with a newer ntcopy",
        file = foreign::visible(&.file.to_string_lossy())
    )]
    TooNew {
        file: PathBuf,
        /// The format's number that the record names.
        found: u64,
    },
    /// A line is not what the format says.
    #[error("{file}:{line}: {what}", file = foreign::visible(&.file.to_string_lossy()))]
    Bad {
        file: PathBuf,
        /// The line's number, from 1.
        line: usize,
        what: String,
    },
}

impl Record {
    /// Reads a record from its directory or from its file.
    ///
    /// A last line without its newline is what a crash leaves behind: it is
    /// left out, and [`Record::complete`] is false.
    pub fn read(path: impl AsRef<Path>) -> Result<Record, ReadError> {
        let path = path.as_ref();
        let named = if path.is_dir() { path.join(FILE_NAME) } else { path.to_path_buf() };
        // Bytes, not a string: a crash may cut a line inside a character.
        let bytes = match file::read(&named) {
            Ok(bytes) => bytes,
            Err(cause) => return Err(ReadError::Io { file: named, cause }),
        };
        Record::parse(&named, &bytes)
    }

    /// Reads a record from the bytes of its file; `file` only names it in errors.
    pub fn parse(file: &Path, bytes: &[u8]) -> Result<Record, ReadError> {
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        let mut lines = bytes[..whole].split_inclusive(|&byte| byte == b'\n');
        let mut at = 0;
        let read = of_lines(|| {
            at += 1;
            lines.next()
        });
        let mut record = read.map_err(|wrong| wrong.at(file, at))?;
        record.complete &= whole == bytes.len();
        Ok(record)
    }

    /// In how many of 1000 an interval of the cell may miss the truth.
    #[must_use]
    pub fn misses_permille(&self, cell: u32) -> u32 {
        let look = self.looks.iter().find(|look| look.cell == cell);
        look.map_or(MISSES_PERMILLE, |look| look.misses_permille)
    }

    /// Who measured on the machine at the same time, in words, if anybody did.
    #[must_use]
    pub fn disturbed(&self) -> Option<String> {
        beside(&self.beside)
    }

    #[must_use]
    pub fn cell(&self, number: u32) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.cell == number)
    }
}

/// As [`Record::disturbed`].
#[must_use]
pub fn beside(processes: &BTreeSet<u32>) -> Option<String> {
    let name = |process: &u32| match process {
        0 => "one of another container".to_owned(),
        process => format!("process {process}"),
    };
    let names: Vec<String> = processes.iter().map(name).collect();
    (!names.is_empty())
        .then(|| format!("another ntcopy measured at the same time ({})", names.join(", ")))
}

/// What is wrong with a line, before its place is known.
enum Wrong {
    TooNew(u64),
    What(String),
}

impl Wrong {
    fn at(self, file: &Path, line: usize) -> ReadError {
        let file = file.to_path_buf();
        match self {
            Wrong::TooNew(found) => ReadError::TooNew { file, found },
            Wrong::What(what) => ReadError::Bad { file, line, what },
        }
    }
}

impl From<&str> for Wrong {
    fn from(what: &str) -> Self {
        Wrong::What(what.to_owned())
    }
}

/// The record of lines that come one after the other.
fn of_lines<'l>(mut next: impl FnMut() -> Option<&'l [u8]>) -> Result<Record, Wrong> {
    let first = next().ok_or("the record ends before its line of type `header`")?;
    check_format(first)?;
    let Line::Header(header) = parsed(first)? else {
        return Err("the first line is not of type `header`".into());
    };
    let second = next().ok_or("the record ends before its line of type `machine`")?;
    let Line::Machine(machine) = parsed(second)? else {
        return Err("the second line is not of type `machine`".into());
    };
    let mut record = Record {
        header,
        machine: *machine,
        cells: Vec::new(),
        samples: Vec::new(),
        looks: Vec::new(),
        unavailable: Vec::new(),
        errors: Vec::new(),
        complete: false,
        beside: BTreeSet::new(),
    };
    let mut seen = Seen::default();
    while let Some(line) = next() {
        if record.complete {
            return Err("a line after the line of type `end`".into());
        }
        record.add(parsed(line)?, &mut seen)?;
    }
    if record.header.format < NAMED_MODES {
        old::translate(&mut record);
    }
    Ok(record)
}

/// What was read of a record so far.
#[derive(Default)]
struct Seen {
    cells: BTreeSet<u32>,
    /// In the series of its samples.
    numbers: usize,
}

impl Seen {
    fn known(&self, cell: u32) -> Result<(), Wrong> {
        match self.cells.contains(&cell) {
            true => Ok(()),
            false => Err(Wrong::What(format!("cell {cell} is used before its own line"))),
        }
    }

    fn sample(&mut self, sample: &Sample) -> Result<(), Wrong> {
        self.known(sample.cell)?;
        self.numbers += sample.series.values().map(Vec::len).sum::<usize>();
        match self.numbers > MOST_NUMBERS {
            true => Err(Wrong::What(format!("samples of more than {MOST_NUMBERS} numbers"))),
            false => Ok(()),
        }
    }
}

impl Record {
    /// Adds a line to those that have been read.
    fn add(&mut self, line: Line, seen: &mut Seen) -> Result<(), Wrong> {
        match line {
            Line::Header(_) => return Err("a second line of type `header`".into()),
            Line::Machine(_) => return Err("a second line of type `machine`".into()),
            Line::Cell(cell) => {
                if !seen.cells.insert(cell.cell) {
                    return Err(Wrong::What(format!("a second cell with number {}", cell.cell)));
                }
                self.cells.push(cell);
            }
            Line::Sample(sample) => {
                seen.sample(&sample)?;
                if sample.elapsed_ns == 0 {
                    return Err("a sample that took no time (`elapsed_ns` is 0)".into());
                }
                self.samples.push(sample);
            }
            Line::Look(look) => {
                seen.known(look.cell)?;
                if !(1..=MISSES_PERMILLE).contains(&look.misses_permille) {
                    let permille = look.misses_permille;
                    let what =
                        format!("a look whose `misses_permille` is {permille}: from 1 to 50");
                    return Err(Wrong::What(what));
                }
                self.looks.push(look);
            }
            Line::Error(error) => {
                seen.known(error.cell)?;
                self.errors.push(error);
            }
            Line::Unavailable(unavailable) => {
                unavailable.cell.map_or(Ok(()), |cell| seen.known(cell))?;
                self.unavailable.push(unavailable);
            }
            Line::End(end) => {
                if end.samples != self.samples.len() as u64 {
                    return Err(Wrong::What(format!(
                        "the end counts {} samples, the record holds {}",
                        end.samples,
                        self.samples.len()
                    )));
                }
                (self.complete, self.beside) = (true, end.beside);
            }
        }
        Ok(())
    }
}

/// A line whose strings are all safe to print, whatever a stranger wrote into them.
fn parsed(bytes: &[u8]) -> Result<Line, Wrong> {
    let line = if foreign::may_hide(bytes) {
        serde_json::from_slice(bytes)
            .and_then(|value| serde_json::from_value(foreign::visible_value(value)))
    } else {
        serde_json::from_slice(bytes)
    };
    line.map_err(|error| Wrong::What(format!("not a line of a record: {error}")))
}

/// Looks at the format's number alone, since nothing else of a newer record
/// need look as it does here.
fn check_format(bytes: &[u8]) -> Result<(), Wrong> {
    #[derive(serde::Deserialize)]
    struct Format {
        format: u64,
    }
    match serde_json::from_slice::<Format>(bytes) {
        Ok(Format { format }) if format > u64::from(FORMAT) => Err(Wrong::TooNew(format)),
        // Anything else wrong with the line is found when the whole is parsed.
        _ => Ok(()),
    }
}

impl Record {
    /// The congestion controls of the cells whose bytes went over TCP, each once. A cell's own goes
    /// before the machine's; none of records from before either was noted.
    #[must_use]
    pub fn tcp_congestion_controls(&self) -> Vec<&str> {
        let of_machine = self.machine.tcp_congestion_control.as_deref();
        let mut names: Vec<&str> = self
            .cells
            .iter()
            .filter(|cell| has_tcp(&cell.params))
            .filter_map(|cell| word(&cell.params, "congestion").or(of_machine))
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

fn has_tcp(params: &Params) -> bool {
    let is = |name: &str, of_tcp: fn(&str) -> bool| word(params, name).is_some_and(of_tcp);
    is("family", |family| family.starts_with("tcp"))
        // Between client and proxy, or between proxy and backend.
        || params.contains_key("scheme")
        || is("transport", |transport| transport != "unix")
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
