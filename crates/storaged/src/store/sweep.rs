//! What a start does about the files that the index does not name.
//!
//! Objects get numbers in turn, and each start begins a range of its own, which the index has from
//! before the first of them. So a file of a later range than the index knows was made after it: the
//! index is an older one, brought back. Nothing is done to such a folder. Any other file may be a
//! crash's, or an object's of which the index was lost; it is put aside, and nothing is removed but
//! what was still being written.

use std::collections::HashSet;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, bail};
use redb::{Database, ReadableDatabase, ReadableTable};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use super::files::make_folder;
use super::{BLOBS, IndexError, OBJECTS, PART, STATE};

const LOST: &str = "lost";
/// What the index has of the next start's range.
const NEXT: &str = "next";
/// Numbers of a start.
const RANGE: u64 = 1 << 40;

/// Puts files aside, and begins a range: returns its first number.
pub(super) fn begin(dir: &Path, index: &Database) -> anyhow::Result<u64> {
    let (named, next) = known(index).context("cannot read the index")?;
    let (mut parts, mut unknown) = (Vec::new(), Vec::new());
    let cannot = || format!("cannot read the files of {}", dir.display());
    for entry in fs::read_dir(dir.join(BLOBS)).with_context(cannot)? {
        let name = entry.with_context(cannot)?.file_name();
        match number(&name) {
            Some(id) if named.contains(&id) => {}
            _ if is_part(&name) => parts.push(name),
            _ => unknown.push(name),
        }
    }
    let later = unknown.iter().filter(|name| number(name).is_some_and(|id| id >= next)).count();
    if later > 0 {
        bail!(
            "the index of {} is older than its files: {later} of them are from after it. Nothing was \
             changed. Bring the right index back, or have one made of the files: storaged --rebuild",
            dir.display()
        );
    }
    for name in &parts {
        fs::remove_file(dir.join(BLOBS).join(name))
            .with_context(|| format!("cannot remove {}", Path::new(name).display()))?;
    }
    if !parts.is_empty() {
        tracing::info!(removed = parts.len(), "uploads of a process that died are gone");
    }
    put_aside(dir, &unknown)?;
    let writing = index.begin_write().map_err(IndexError::from)?;
    reserve(&writing, next + RANGE)?;
    writing.commit().map_err(IndexError::from).context("cannot write the index")?;
    Ok(next)
}

/// Moves files to where nothing looks, by their names.
pub(super) fn put_aside(dir: &Path, names: &[OsString]) -> anyhow::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let lost = dir.join(LOST);
    make_folder(&lost).with_context(|| format!("cannot make {}", lost.display()))?;
    for name in names {
        let from = dir.join(BLOBS).join(name);
        renameat_with(CWD, &from, CWD, lost.join(name), RenameFlags::NOREPLACE)
            .with_context(|| format!("cannot move {} to {}", from.display(), lost.display()))?;
    }
    tracing::warn!(files = names.len(), to = %lost.display(), "files that the index does not know were put aside");
    Ok(())
}

pub(super) fn reserve(writing: &redb::WriteTransaction, next: u64) -> Result<(), IndexError> {
    writing.open_table(STATE)?.insert(NEXT, next)?;
    Ok(())
}

pub(super) fn is_part(name: &OsString) -> bool {
    name.to_str()
        .and_then(|name| name.strip_suffix(PART))
        .is_some_and(|id| id.parse::<u64>().is_ok())
}

pub(super) fn number(name: &OsString) -> Option<u64> {
    name.to_str()?.parse().ok()
}

/// The files that the index names, and the first number of the next start.
pub(super) fn known(index: &Database) -> Result<(HashSet<u64>, u64), IndexError> {
    let reading = index.begin_read()?;
    let next = reading.open_table(STATE)?.get(NEXT)?.map_or(1, |next| next.value());
    let table = reading.open_table(OBJECTS)?;
    let ids = table.iter()?.map(|row| Ok(row?.1.value().0));
    Ok((ids.collect::<Result<_, IndexError>>()?, next))
}
