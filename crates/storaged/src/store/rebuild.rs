//! Makes an index of what the files say of themselves, and of the rows of an index that is there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::Context as _;
use redb::{Database, ReadableDatabase, ReadableTable};

use super::files::{new_file, unless_gone};
use super::index::{INDEX, NEW_INDEX, Open, sync_folder};
use super::open::hold;
use super::sweep::{self, number};
use super::{BLOBS, IndexError, Meta, OBJECTS, mark};

const OLD_INDEX: &str = "index.old";

type Rows = BTreeMap<String, Meta>;

/// What became of the files of a folder.
#[derive(Debug)]
pub struct Rebuilt {
    pub objects: usize,
    /// Files that the index does not name, and why. They are in `lost/`.
    pub unnamed: Vec<(OsString, String)>,
}

/// Reads every file of a folder, and puts an index in the place of the one that is there, which
/// becomes `index.old`. Of several files that are whole and of one key the newest has it.
pub fn rebuild(dir: &Path) -> anyhow::Result<Rebuilt> {
    let _held = hold(dir)?;
    let blobs = dir.join(BLOBS);
    let files = fs::read_dir(&blobs).with_context(|| format!("cannot read {}", blobs.display()))?;
    let names: Vec<_> = files.map(|file| Ok(file?.file_name())).collect::<io::Result<_>>()?;
    let (old, old_next) = old_rows(&dir.join(INDEX));
    let (mut rows, mut unnamed) = (Rows::new(), Vec::new());
    let mut next = old_next;
    for name in names.into_iter().filter(|name| !sweep::is_part(name)) {
        next = next.max(number(&name).map_or(0, |id| id + 1));
        let found = object(&blobs.join(&name), number(&name), &old)
            .with_context(|| format!("cannot read {}", blobs.join(&name).display()))?;
        match found {
            Ok((key, meta)) => keep_newest(&mut rows, &mut unnamed, key, meta),
            Err(why) => unnamed.push((name, why.to_owned())),
        }
    }
    write(dir, &rows, next).context("cannot write the index")?;
    unnamed.sort();
    let lost: Vec<_> = unnamed.iter().map(|(name, _)| name.clone()).collect();
    sweep::put_aside(dir, &lost)?;
    Ok(Rebuilt { objects: rows.len(), unnamed })
}

/// The rows of an index, by their files, and its next range: none, if it is gone or can't be read.
fn old_rows(path: &Path) -> (BTreeMap<u64, (String, Meta)>, u64) {
    let read = || -> Result<_, IndexError> {
        let open = Open::path(path)?;
        let (_, next) = sweep::known(&open.database)?;
        let table = open.database.begin_read()?.open_table(OBJECTS)?;
        let mut rows = BTreeMap::new();
        for row in table.iter()? {
            let (key, row) = row?;
            let meta = Meta::of_row(row.value());
            rows.insert(meta.id, (key.value().to_owned(), meta));
        }
        Ok((rows, next))
    };
    read().unwrap_or_else(|error| {
        tracing::warn!(%error, "there is no index to read: files count alone");
        (BTreeMap::new(), 1)
    })
}

/// The key of a file, by itself or by its old row, if its content is that object's.
fn object(
    path: &Path,
    id: Option<u64>,
    old: &BTreeMap<u64, (String, Meta)>,
) -> anyhow::Result<Result<(String, Meta), &'static str>> {
    let Some(id) = id else { return Ok(Err("its name is no number")) };
    let about = fs::symlink_metadata(path)?;
    if !about.is_file() {
        return Ok(Err("it is no file"));
    }
    let file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let row = old.get(&id);
    let (key, content_type, digest) = match (mark::read(&file)?, row) {
        (Some(mark), _) => (mark.key, mark.content_type, mark.digest),
        (None, Some((key, meta))) => (key.clone(), meta.content_type.clone(), meta.digest),
        (None, None) => return Ok(Err("it says no key, and no row names it")),
    };
    if *hasher.update_reader(&file)?.finalize().as_bytes() != digest {
        return Ok(Err("its content is not what was stored"));
    }
    let written = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let written = u64::try_from(written).unwrap_or(u64::MAX);
    let stored_at_ns = row.map_or(written, |(_, meta)| meta.stored_at_ns);
    Ok(Ok((key, Meta { id, bytes: hasher.count(), stored_at_ns, content_type, digest })))
}

fn keep_newest(rows: &mut Rows, unnamed: &mut Vec<(OsString, String)>, key: String, meta: Meta) {
    let older = match rows.get(&key) {
        Some(other) if other.id > meta.id => meta,
        _ => match rows.insert(key.clone(), meta) {
            Some(other) => other,
            None => return,
        },
    };
    unnamed.push((older.id.to_string().into(), format!("there is a newer file of {key}")));
}

fn write(dir: &Path, rows: &Rows, next: u64) -> Result<(), IndexError> {
    let (path, new) = (dir.join(INDEX), dir.join(NEW_INDEX));
    unless_gone(fs::remove_file(&new))?;
    let index: Database = Open::file(new_file(&new)?)?.database;
    let writing = index.begin_write()?;
    {
        let mut table = writing.open_table(OBJECTS)?;
        for (key, meta) in rows {
            table.insert(&**key, meta.row())?;
        }
    }
    sweep::reserve(&writing, next)?;
    writing.commit()?;
    drop(index);
    unless_gone(fs::rename(&path, dir.join(OLD_INDEX)))?;
    fs::rename(&new, &path)?;
    Ok(sync_folder(dir)?)
}
