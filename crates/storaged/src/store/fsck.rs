//! Looks at every byte of a folder of objects.

use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::compressed::refuse_compressed;
use super::layout::{Format, OBJECTS, OpenError, check_format, walk};
use super::object::{Object, Verify};
use super::{ErrorKind, StoreError};
use crate::key::Key;

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

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    pub path: PathBuf,
    pub problem: String,
}

/// Verifies every object, and calls `report` for everything that is wrong. Nothing is changed,
/// and a daemon may be at work in the folder meanwhile.
pub fn fsck(dir: &Path, report: &mut dyn FnMut(Finding)) -> Result<Summary, OpenError> {
    match check_format(dir)? {
        Format::Missing => return Err(OpenError::Foreign { dir: dir.to_owned() }),
        Format::Old => refuse_compressed(dir)?,
        Format::Current => {}
    }
    let mut summary = Summary::default();
    walk(&dir.join(OBJECTS), "", &mut |path, key| {
        let problem = match key {
            Some(key) => look_at(&path, &key, &mut summary),
            None => {
                summary.foreign += 1;
                Some("not made by storaged".to_owned())
            }
        };
        if let Some(problem) = problem {
            report(Finding { path, problem });
        }
    })?;
    Ok(summary)
}

fn look_at(path: &Path, key: &Key, summary: &mut Summary) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let result = match openat(CWD, path, flags, Mode::empty()) {
        // Deleted since the folder was read.
        Err(rustix::io::Errno::NOENT) => return None,
        Err(errno) => Err(StoreError::os("open", key.as_str(), errno)),
        Ok(file) => Object::open(key, file).and_then(|object| {
            let meta = object.meta();
            object.verify(&(0..meta.bytes), Verify::Always)?;
            Ok((meta.bytes, object.version().bytes()))
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
