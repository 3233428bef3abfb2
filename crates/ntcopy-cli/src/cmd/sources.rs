//! The records that there are, and which of them count.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use ntcopy_bench::sample;
use ntcopy_judge::{Judged, advice, judge};
use ntcopy_record::units::count;
use ntcopy_record::{FILE_NAME, Machine, Record, foreign};
use ntcopy_report::advice::Source;

/// How deep below a folder records are looked for: a date, an experiment, and one to spare.
const DEPTH: usize = 3;

/// The directories of records at or below a folder, in the order of their names.
pub fn find(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    find_below(folder, DEPTH, found)
}

fn find_below(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if folder.join(FILE_NAME).exists() {
        found.push(folder.to_owned());
        return Ok(());
    }
    if depth == 0 {
        return Ok(());
    }
    let mut below: Vec<PathBuf> = fs::read_dir(folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    below.sort();
    for path in below {
        // What may not be looked into holds no records of this user.
        let _ = find_below(&path, depth - 1, found);
    }
    Ok(())
}

/// Where measurements put records unless they are told.
fn store() -> Option<PathBuf> {
    sample::default_place("any")?.parent().map(Path::to_owned)
}

/// The directories of records in the store.
fn stored() -> anyhow::Result<Vec<PathBuf>> {
    let store =
        store().context("neither XDG_DATA_HOME nor HOME names a folder with records: name one")?;
    let mut found = Vec::new();
    if store.is_dir() {
        find(&store, &mut found).with_context(|| format!("cannot read {}", store.display()))?;
    }
    Ok(found)
}

/// A record, or why it could not be read.
pub struct Found {
    place: PathBuf,
    record: Result<Judged, String>,
}

/// Reads every record at or below the places; without any, those of the store. Each is there once.
///
/// A place that was named has to be there. What in it cannot be read, and a place without a record,
/// are among those that do not count.
pub fn read(places: &[PathBuf]) -> anyhow::Result<Vec<Found>> {
    let mut folders = if places.is_empty() { stored()? } else { Vec::new() };
    for place in places {
        let said = || format!("cannot read {}", place.display());
        fs::metadata(place).with_context(said)?;
        if !place.is_dir() {
            folders.push(place.clone());
        } else {
            let before = folders.len();
            find(place, &mut folders).with_context(said)?;
            if folders.len() == before {
                folders.push(place.clone());
            }
        }
    }
    let mut seen = BTreeSet::new();
    folders.retain(|place| seen.insert(fs::canonicalize(place).unwrap_or(place.clone())));
    let one = |place: PathBuf| Found {
        record: Record::read(&place).map(|one| judge(&one)).map_err(|error| error.to_string()),
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

/// Those that count for a machine, the newest first, and what became of each that was found.
pub fn counted(found: Vec<Found>, machine: &Machine) -> (Vec<Judged>, Vec<Source>) {
    let (mut records, mut sources) = (Vec::new(), Vec::new());
    let mut ids = BTreeSet::new();
    for one in found {
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
    records.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    (records, sources)
}

/// How many records count, and where they are: one line.
pub fn origin(places: &[PathBuf], sources: &[Source], machine: &Machine) -> String {
    let counted = sources.iter().filter(|source| source.not_counted.is_none()).count();
    let folders: Vec<String> = match places {
        [] => store().map(|store| store.display().to_string()).into_iter().collect(),
        places => places.iter().map(|place| place.display().to_string()).collect(),
    };
    let others = match sources.len() - counted {
        0 => String::new(),
        more => format!("; {more} more do not count"),
    };
    format!(
        "{} of this CPU ({}) in {}{others}",
        count(counted, "record"),
        machine.cpu_signature,
        foreign::visible(&folders.join(" "))
    )
}

/// The records at or below these places. What is none is named on standard error and left out.
pub fn all(places: &[PathBuf]) -> anyhow::Result<Vec<Judged>> {
    let mut records = Vec::new();
    for one in read(places)? {
        match one.record {
            Ok(record) => records.push(record),
            Err(why) => eprintln!("ntcopy: left out: {why}"),
        }
    }
    let names: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    ensure!(!records.is_empty(), "no record is left of {}", names.join(" "));
    Ok(records)
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
