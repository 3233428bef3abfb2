//! Records that a command line names, by themselves or in folders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use ntcopy_bench::sample;
use ntcopy_record::{FILE_NAME, Record};

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

/// The directories of records in the store, where measurements put them unless they are told.
pub fn stored() -> anyhow::Result<Vec<PathBuf>> {
    let place = sample::default_place("any")
        .context("neither XDG_DATA_HOME nor HOME names a folder with records: name one")?;
    // The place of a record lies in the store.
    let store = place.parent().map(Path::to_owned).unwrap_or_default();
    let mut found = Vec::new();
    if store.is_dir() {
        find(&store, &mut found).with_context(|| format!("cannot read {}", store.display()))?;
    }
    Ok(found)
}

/// The record of the store that was written last.
pub fn newest() -> anyhow::Result<PathBuf> {
    let written =
        |place: &PathBuf| fs::metadata(place.join(FILE_NAME)).and_then(|file| file.modified()).ok();
    stored()?.into_iter().max_by_key(written).context(
        "there is no record yet: ntcopy bench makes one, and ntcopy report RECORD takes those in other places",
    )
}

/// The records at or below these places, at least one in each. One that cannot be read is an error:
/// half of a side would be another comparison than the one that was asked for.
pub fn read_all(places: &[PathBuf]) -> anyhow::Result<Vec<Record>> {
    let mut folders = Vec::new();
    for place in places {
        let before = folders.len();
        if place.is_dir() {
            find(place, &mut folders)
                .with_context(|| format!("cannot read {}", place.display()))?;
        } else {
            folders.push(place.to_owned());
        }
        if folders.len() == before {
            let place = place.display();
            bail!("{place} has no records in it: a record is a folder with a record.jsonl");
        }
    }
    Ok(folders.iter().map(Record::read).collect::<Result<Vec<Record>, _>>()?)
}
