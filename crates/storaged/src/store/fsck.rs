//! Looks at every byte of a folder of objects.

use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::format::Coding;
use super::object::{Object, Verify};
use super::open::{OBJECTS, OpenError, check_format};
use super::{ErrorKind, StoreError};
use crate::key::{Entry, Key};
use crate::region::Budget;

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Objects that are as they were stored.
    pub whole: u64,
    /// Bytes of their content.
    pub content_bytes: u64,
    /// Bytes that they take, checksums included.
    pub stored_bytes: u64,
    /// Objects with a wrong byte.
    pub damaged: u64,
    /// Objects that could not be read.
    pub unreadable: u64,
    /// Files that the store didn't make.
    pub foreign: u64,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Where.
    pub path: PathBuf,
    /// What.
    pub problem: String,
}

/// Verifies every object, and calls `report` for everything that is wrong. Nothing is changed,
/// and a daemon may be at work in the folder meanwhile.
///
/// # Errors
///
/// The folder is not storaged's, or can't be read.
pub fn fsck(dir: &Path, report: &mut dyn FnMut(Finding)) -> Result<Summary, OpenError> {
    if !check_format(dir)? {
        return Err(OpenError::Foreign { dir: dir.to_owned() });
    }
    let mut summary = Summary::default();
    walk(&dir.join(OBJECTS), "", &mut summary, report)?;
    Ok(summary)
}

fn walk(
    folder: &Path,
    above: &str,
    summary: &mut Summary,
    report: &mut dyn FnMut(Finding),
) -> Result<(), OpenError> {
    let failed = |cause| OpenError::Io { doing: "read", path: folder.to_owned(), cause };
    let mut paths: Vec<PathBuf> = fs::read_dir(folder)
        .map_err(failed)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, io::Error>>()
        .map_err(failed)?;
    paths.sort();
    for path in paths {
        let is_folder = path.symlink_metadata().is_ok_and(|metadata| metadata.is_dir());
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let key = |segment: &str| format!("{above}{segment}").parse::<Key>();
        match Entry::from_name(name) {
            Some(Entry::Directory(segment)) if is_folder => {
                walk(&path, &format!("{above}{segment}/"), summary, report)?;
            }
            Some(Entry::Object(segment)) if !is_folder && key(&segment).is_ok() => {
                let key = key(&segment).expect("just parsed");
                if let Some(problem) = look_at(&path, &key, summary) {
                    report(Finding { path, problem });
                }
            }
            _ => {
                summary.foreign += 1;
                report(Finding { path, problem: "not made by storaged".to_owned() });
            }
        }
    }
    Ok(())
}

fn look_at(path: &Path, key: &Key, summary: &mut Summary) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let result = match openat(CWD, path, flags, Mode::empty()) {
        // Deleted since the folder was read.
        Err(rustix::io::Errno::NOENT) => return None,
        Err(errno) => Err(StoreError::os("open", key.as_str(), errno)),
        Ok(file) => Object::open(key, file).and_then(|object| {
            let meta = object.meta();
            object.verify(&(0..meta.stored_bytes), Verify::Always)?;
            if meta.coding == Coding::Zstd && meta.content_bytes > 0 {
                let bytes = meta.content_bytes;
                let allowance = Budget::new(bytes).take(bytes).expect("a budget of that size");
                object.decode(allowance, Verify::Always)?;
            }
            Ok((meta.content_bytes, object.version().bytes()))
        }),
    };
    match result {
        Ok((content_bytes, stored_bytes)) => {
            summary.whole += 1;
            summary.content_bytes += content_bytes;
            summary.stored_bytes += stored_bytes;
            None
        }
        Err(error) => {
            match error.kind() {
                ErrorKind::Corrupt => summary.damaged += 1,
                _ => summary.unreadable += 1,
            }
            Some(error.to_string())
        }
    }
}
