//! The repository's own documents: figures and pages that are made from the records that it keeps.
//!
//! `bench/record/INDEX.toml` names which record answers which question. The pages and pictures in
//! `docs/results`, README's table, the guide's picture, and each figure that a document has between the markers of
//! `figures` come from it. Records that the index does not name, and documents that name a figure
//! which the index lacks, are errors.

mod answers;
mod chart;
mod figures;
mod index;
mod outcomes;
mod results;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ntcopy_judge::{Judged, judge};
use ntcopy_record::{FILE_NAME, ReadError, Record, file};

use crate::error::Doing as _;
use index::Index;

const INDEX: &str = "bench/record/INDEX.toml";
/// What tells a generated file from one that is written by hand.
const GENERATED: &str = "Generated from bench/record/INDEX.toml by make docs; do not edit.";
const RESULTS: &str = "docs/results";
/// Folders whose Markdown may have figures in it, besides the root's.
const PLACES: [&str; 1] = ["docs"];

/// Why the documents could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{path}: {cause}", path = .path.display())]
    Io { path: PathBuf, cause: std::io::Error },
    #[error("{INDEX}: {0}")]
    Index(String),
    #[error("{INDEX}: {0}")]
    Record(ReadError),
    #[error("{path}:{line}: {what}", path = .path.display())]
    Marker {
        /// The document, relative to the repository.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        what: String,
    },
}

/// Every generated file of a repository with its text, paths relative to the repository.
fn all(root: &Path) -> Result<BTreeMap<PathBuf, String>, Error> {
    let index = Index::parse(&read(&root.join(INDEX))?)?;
    let records = records(root, &index)?;
    let mut files = results::pages(&index, &records)?;
    let mut figures = figures::all(&index, &records)?;
    figures.insert("answers".to_owned(), answers::table(&index, &records)?);
    figures.insert("output".to_owned(), answers::output(&index, &records)?);
    let mut used = Vec::new();
    for path in documents(root)? {
        if files.contains_key(&path) {
            continue;
        }
        let text = read(&root.join(&path))?;
        let (new, names) = figures::spliced(&path, &text, &figures)?;
        used.extend(names);
        files.insert(path, new);
    }
    let idle = figures.keys().find(|name| !used.contains(name));
    match idle {
        Some(name) => Err(Error::Index(format!("no document uses figure.{name}"))),
        None => Ok(files),
    }
}

/// Writes what is not as the records make it: `make docs`.
pub fn write() -> Result<(), crate::Error> {
    let root = crate::programs::root();
    let failed = |error: Error| crate::Error::Failed(error.to_string());
    let files = all(&root).map_err(failed)?;
    let stale = differing(&root, &files).map_err(failed)?;
    for path in &stale {
        let place = root.join(path);
        let done = match files.get(path) {
            Some(text) => fs::create_dir_all(place.parent().unwrap_or(&root))
                .and_then(|()| fs::write(&place, text)),
            None => fs::remove_file(&place),
        };
        done.doing(path.display().to_string())?;
    }
    println!("docs: {} files written anew", stale.len());
    Ok(())
}

/// What differs between the repository and what its records make of it: the files' names.
pub fn stale(root: &Path) -> Result<Vec<PathBuf>, Error> {
    differing(root, &all(root)?)
}

fn differing(root: &Path, files: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>, Error> {
    let mut stale: Vec<PathBuf> = files
        .iter()
        .filter(|(path, text)| fs::read_to_string(root.join(path)).ok().as_ref() != Some(*text))
        .map(|(path, _)| path.clone())
        .collect();
    stale.extend(left_over(root, files)?);
    Ok(stale)
}

/// Generated files of before that nothing generates any more.
fn left_over(root: &Path, files: &BTreeMap<PathBuf, String>) -> Result<Vec<PathBuf>, Error> {
    let names = inside(&root.join(RESULTS))?;
    let is_ours = |path: &PathBuf| {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.contains(GENERATED)
    };
    let relative = |path: PathBuf| path.strip_prefix(root).map(Path::to_path_buf).ok();
    let old = names.into_iter().filter(is_ours).filter_map(relative);
    Ok(old.filter(|path| !files.contains_key(path)).collect())
}

fn read(path: &Path) -> Result<String, Error> {
    file::text(path).map_err(|cause| Error::Io { path: path.to_owned(), cause })
}

fn inside(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let io = |cause| Error::Io { path: folder.to_owned(), cause };
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(io)? {
        paths.push(entry.map_err(io)?.path());
    }
    paths.sort();
    Ok(paths)
}

fn below(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = Vec::new();
    for path in inside(folder)? {
        if path.is_dir() {
            paths.extend(below(&path)?);
        } else {
            paths.push(path);
        }
    }
    Ok(paths)
}

/// The documents in which figures are put, relative to the repository.
fn documents(root: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut paths = inside(root)?;
    for place in PLACES {
        paths.extend(below(&root.join(place))?);
    }
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "md"));
    Ok(paths
        .iter()
        .filter_map(|path| path.strip_prefix(root).map(Path::to_path_buf).ok())
        .collect())
}

/// The records that the index names, by that name; all that are kept, and no others.
fn records(root: &Path, index: &Index) -> Result<BTreeMap<String, Judged>, Error> {
    let place = root.join("bench/record");
    let mut records = BTreeMap::new();
    for name in index.records() {
        let record = Record::read(place.join(&name)).map_err(Error::Record)?;
        records.insert(name, judge(&record));
    }
    for path in below(&place)? {
        let folder = path.parent().and_then(|folder| folder.strip_prefix(&place).ok());
        let name = folder.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
        if path.ends_with(FILE_NAME) && !records.contains_key(&name) {
            return Err(Error::Index(format!(
                "does not name the record {name}: say what it answers, or take it away"
            )));
        }
    }
    Ok(records)
}
