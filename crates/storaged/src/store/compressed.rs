//! Folders of storaged 0.2, which could hold compressed objects.

use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::StoreError;
use super::format::Corrupt;
use super::layout::{OBJECTS, OpenError, walk};
use super::object::Object;
use crate::key::Key;

/// Looks at the tail of every object.
pub(super) fn refuse_compressed(dir: &Path) -> Result<(), OpenError> {
    let (mut count, mut first) = (0_u64, None);
    walk(&dir.join(OBJECTS), "", &mut |path, key| {
        if let Some(key) = key.filter(|key| is_compressed(&path, key)) {
            count += 1;
            first.get_or_insert(key);
        }
    })?;
    let Some(key) = first else { return Ok(()) };
    Err(OpenError::Compressed { dir: dir.to_owned(), count, key: key.to_string() })
}

/// Another error is for whoever asks for the object.
fn is_compressed(path: &Path, key: &Key) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(file) = openat(CWD, path, flags, Mode::empty()) else { return false };
    let why = Object::open(key, file).err();
    matches!(why, Some(StoreError::Corrupt { why: Corrupt::Compressed, .. }))
}
