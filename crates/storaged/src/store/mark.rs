//! What a file says of itself, in extended attributes: whose content it is, and what it must be. An
//! index can be made of it.

use std::fs::File;
use std::io;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;

use super::Meta;
use crate::key::KEY_BYTES_MAX;

const KEY: &str = "user.storaged.key";
/// There is none where the PUT said none.
const TYPE: &str = "user.storaged.type";
const DIGEST: &str = "user.storaged.blake3";

#[derive(Debug)]
pub(super) struct Mark {
    pub(super) key: String,
    pub(super) content_type: String,
    pub(super) digest: [u8; 32],
}

/// Whether the file system of a folder has them.
pub(super) fn are_had(folder: &File) -> bool {
    !matches!(fgetxattr(folder, KEY, &mut [0; 1]), Err(Errno::OPNOTSUPP))
}

pub(super) fn write(file: &File, key: &str, meta: &Meta) -> io::Result<()> {
    let set = |name, value: &[u8]| fsetxattr(file, name, value, XattrFlags::empty());
    set(KEY, key.as_bytes())?;
    set(DIGEST, &meta.digest)?;
    if !meta.content_type.is_empty() {
        set(TYPE, meta.content_type.as_bytes())?;
    }
    Ok(())
}

/// `None` if it says nothing that storaged would have written.
pub(super) fn read(file: &File) -> io::Result<Option<Mark>> {
    let text =
        |name| io::Result::Ok(value(file, name)?.and_then(|text| String::from_utf8(text).ok()));
    let digest = value(file, DIGEST)?.and_then(|digest| digest.try_into().ok());
    let content_type = text(TYPE)?.unwrap_or_default();
    Ok(text(KEY)?.zip(digest).map(|(key, digest)| Mark { key, content_type, digest }))
}

fn value(file: &File, name: &str) -> io::Result<Option<Vec<u8>>> {
    let mut room = vec![0; KEY_BYTES_MAX];
    match fgetxattr(file, name, &mut room) {
        Ok(bytes) => {
            room.truncate(bytes);
            Ok(Some(room))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::RANGE) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}
