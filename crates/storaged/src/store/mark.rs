//! What a file says of itself, in an extended attribute: whose content it is, and what it must be. An
//! index can be made of it.

use std::fs::File;
use std::io;

use rustix::fs::{XattrFlags, fgetxattr, fsetxattr};
use rustix::io::Errno;

use super::Meta;

/// The digest, the key, and a content type behind a zero, where the PUT said one. It is one attribute
/// since ext4 has room for a small one in an inode, and takes a block for more.
const NAME: &str = "user.storaged";
/// The most that Linux takes.
const BYTES_MAX: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Mark {
    pub(super) key: String,
    pub(super) content_type: String,
    pub(super) digest: [u8; 32],
}

/// Whether the file system of a folder has them.
pub(super) fn are_had(folder: &File) -> bool {
    !matches!(fgetxattr(folder, NAME, &mut [0; 1]), Err(Errno::OPNOTSUPP))
}

pub(super) fn write(file: &File, key: &str, meta: &Meta) -> io::Result<()> {
    let mut value = [&meta.digest, key.as_bytes()].concat();
    if !meta.content_type.is_empty() {
        value.push(0);
        value.extend(meta.content_type.as_bytes());
    }
    Ok(fsetxattr(file, NAME, &value, XattrFlags::empty())?)
}

/// `None` if it says nothing that storaged would have written.
pub(super) fn read(file: &File) -> io::Result<Option<Mark>> {
    let mut room = vec![0; BYTES_MAX];
    match fgetxattr(file, NAME, &mut room) {
        Ok(bytes) => Ok(parse(&room[..bytes])),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

fn parse(value: &[u8]) -> Option<Mark> {
    let (digest, text) = value.split_first_chunk()?;
    let text = str::from_utf8(text).ok()?;
    let (key, content_type) = text.split_once('\0').unwrap_or((text, ""));
    let (key, content_type) = (key.to_owned(), content_type.to_owned());
    (!key.is_empty()).then_some(Mark { key, content_type, digest: *digest })
}
