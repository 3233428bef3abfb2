//! Records on disk for the tests of the program.

use std::fs;
use std::path::{Path, PathBuf};

use ntcopy_bench::machine;
use ntcopy_record::{End, FILE_NAME, Line, Record};

/// A record as if it had been made on this machine.
pub fn here(mut record: Record) -> Record {
    record.machine = machine::describe();
    record
}

/// Writes a record as `ntcopy bench` does, into a folder of its name.
pub fn write(folder: &Path, record: &Record) -> PathBuf {
    let ended_unix_ns = record.header.started_unix_ns + 1;
    let end =
        End { samples: record.samples.len() as u64, ended_unix_ns, beside: record.beside.clone() };
    let lines =
        [Line::Header(record.header.clone()), Line::Machine(Box::new(record.machine.clone()))]
            .into_iter()
            .chain(record.cells.iter().cloned().map(Line::Cell))
            .chain(record.unavailable.iter().cloned().map(Line::Unavailable))
            .chain(record.samples.iter().cloned().map(Line::Sample))
            .chain(record.errors.iter().cloned().map(Line::Error))
            .chain(record.complete.then_some(Line::End(end)));
    let text: String =
        lines.map(|line| serde_json::to_string(&line).expect("JSON") + "\n").collect();
    let place = folder.join(&record.header.id);
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join(FILE_NAME), text).unwrap();
    place
}
