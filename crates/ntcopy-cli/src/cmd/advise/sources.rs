//! The records that there are, and which of them count.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::Context as _;
use ntcopy_record::advice::{self, Source};
use ntcopy_record::{Machine, Record, foreign};

use crate::cmd::records;

/// A record, or why it could not be read.
pub struct Found {
    place: PathBuf,
    record: Result<Record, String>,
}

/// Reads every record at or below the places; without any, those of the store.
///
/// A place that was named has to be there. A record in it that cannot be read is one of those that
/// do not count.
pub fn read(places: &[PathBuf]) -> anyhow::Result<Vec<Found>> {
    let mut folders = if places.is_empty() { records::stored()? } else { Vec::new() };
    for place in places {
        let said = || format!("cannot read {}", place.display());
        fs::metadata(place).with_context(said)?;
        if place.is_file() {
            folders.push(place.clone());
        } else {
            records::find(place, &mut folders).with_context(said)?;
        }
    }
    let mut seen = BTreeSet::new();
    folders.retain(|place| seen.insert(fs::canonicalize(place).unwrap_or(place.clone())));
    let one = |place: PathBuf| Found {
        record: Record::read(&place).map_err(|error| error.to_string()),
        place,
    };
    Ok(folders.into_iter().map(one).collect())
}

/// The machine of the newest record with this signature.
pub fn machine_of(found: &[Found], signature: &str) -> Result<Machine, String> {
    let records = || found.iter().filter_map(|one| one.record.as_ref().ok());
    let ours = records().filter(|record| record.machine.cpu_signature == signature);
    if let Some(newest) = ours.max_by_key(|record| record.header.started_unix_ns) {
        return Ok(newest.machine.clone());
    }
    let others: BTreeSet<&str> =
        records().map(|record| record.machine.cpu_signature.as_str()).collect();
    let others: Vec<&str> = others.into_iter().collect();
    let there = if others.is_empty() {
        "there are no records".to_owned()
    } else {
        format!("there are those of {}", others.join(", "))
    };
    Err(format!("no record of {signature}: {there}"))
}

/// Those that count for a machine, and what became of each. Takes the records out of `found`.
pub fn counted(found: &mut Vec<Found>, machine: &Machine) -> (Vec<Record>, Vec<Source>) {
    let (mut records, mut sources) = (Vec::new(), Vec::new());
    let mut ids = BTreeSet::new();
    for one in found.drain(..) {
        let mut source = Source {
            place: foreign::visible(&one.place.to_string_lossy()).into_owned(),
            id: None,
            not_counted: None,
            cpu_signature: None,
        };
        match one.record {
            Err(why) => source.not_counted = Some(format!("it cannot be read: {why}")),
            Ok(record) => {
                source.id = Some(record.header.id.clone());
                source.cpu_signature = Some(record.machine.cpu_signature.clone());
                source.not_counted = match advice::counts(&record, machine) {
                    Ok(()) if !ids.insert(record.header.id.clone()) => {
                        Some("it is a copy of one that counts".to_owned())
                    }
                    Ok(()) => None,
                    Err(why) => Some(why),
                };
                if source.not_counted.is_none() {
                    records.push(record);
                }
            }
        }
        sources.push(source);
    }
    (records, sources)
}

/// Says what to do where all records are another machine's.
pub fn hint(sources: &[Source], machine: &Machine) {
    if sources.iter().any(|source| source.not_counted.is_none()) {
        return;
    }
    let others: BTreeSet<&str> = sources
        .iter()
        .filter_map(|source| source.cpu_signature.as_deref())
        .filter(|signature| *signature != machine.cpu_signature)
        .collect();
    if let Some(other) = others.into_iter().next() {
        eprintln!("note: for the machine of those records: ntcopy advise --for {other}");
    }
}
