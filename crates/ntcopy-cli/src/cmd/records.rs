//! Records that a command line names, by themselves or in folders.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ntcopy_bench::sample;
use ntcopy_record::FILE_NAME;

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
pub fn store() -> Option<PathBuf> {
    sample::default_place("any")?.parent().map(Path::to_owned)
}

/// The directories of records in the store.
pub fn stored() -> anyhow::Result<Vec<PathBuf>> {
    let store =
        store().context("neither XDG_DATA_HOME nor HOME names a folder with records: name one")?;
    let mut found = Vec::new();
    if store.is_dir() {
        find(&store, &mut found).with_context(|| format!("cannot read {}", store.display()))?;
    }
    Ok(found)
}
