//! Files and folders as this daemon makes and removes them.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

pub(super) const FILE_MODE: u32 = 0o600;
pub(super) const FOLDER_MODE: u32 = 0o700;

/// Whoever starts the daemon, what it makes is its user's alone: the socket's mode says who may have
/// the objects.
pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

pub(super) fn new_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).mode(FILE_MODE).open(path)
}

pub(super) fn unless_gone(removed: io::Result<()>) -> io::Result<()> {
    removed.or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })
}
