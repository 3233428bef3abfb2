//! What lies in a folder of objects, and what may go wrong in taking hold of one.

use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::key::{Entry, Key};

pub(super) const FORMAT: &str = "storaged 2\n";
/// That of storaged 0.2, which could compress objects.
const OLD_FORMAT: &str = "storaged 1\n";
pub(super) const FORMAT_FILE: &str = "format";
pub(super) const LOCK_FILE: &str = "lock";
pub(super) const TEMPORARIES: &str = "temporary";
pub(super) const OBJECTS: &str = "objects";

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{dir} is in use by process {holder}: stop it, or choose another folder")]
    InUse { dir: PathBuf, holder: String },
    #[error("{dir} is neither empty nor a folder of storaged's: choose another")]
    Foreign { dir: PathBuf },
    #[error("{dir} has the format {found:?}; this version reads \"storaged 2\"")]
    Format { dir: PathBuf, found: String },
    #[error(
        "storaged 0.2 compressed objects in {dir} ({count}, the first is {key}), and this version \
         has no zstd: run 0.2 on it without --zstd, GET each of them and PUT it again; or choose \
         another folder"
    )]
    Compressed { dir: PathBuf, count: u64, key: String },
    #[error("cannot {doing} {path}: {cause}")]
    Io { doing: &'static str, path: PathBuf, cause: io::Error },
}

/// What a folder's format file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Missing,
    Old,
    Current,
}

/// That the folder is ours, or empty; nothing is written yet.
pub(super) fn check_format(dir: &Path) -> Result<Format, OpenError> {
    let path = dir.join(FORMAT_FILE);
    let io = |doing| move |cause| OpenError::Io { doing, path: dir.to_owned(), cause };
    match fs::read_to_string(&path) {
        Ok(found) if found == FORMAT => Ok(Format::Current),
        Ok(found) if found == OLD_FORMAT => Ok(Format::Old),
        Ok(found) => Err(OpenError::Format { dir: dir.to_owned(), found }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            for entry in fs::read_dir(dir).map_err(io("read"))? {
                let name = entry.map_err(io("read"))?.file_name();
                // What a first start leaves that died half-way; and where a disk begins.
                let known = [TEMPORARIES, OBJECTS, LOCK_FILE, "format.new", "lost+found"];
                if !known.iter().any(|known| name == *known) {
                    return Err(OpenError::Foreign { dir: dir.to_owned() });
                }
            }
            Ok(Format::Missing)
        }
        Err(cause) => Err(OpenError::Io { doing: "read", path, cause }),
    }
}

/// Calls `visit` for every file in the tree, with its key if the store made it.
pub(super) fn walk(
    folder: &Path,
    above: &str,
    visit: &mut dyn FnMut(PathBuf, Option<Key>),
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
        match Entry::from_name(name) {
            Some(Entry::Directory(segment)) if is_folder => {
                walk(&path, &format!("{above}{segment}/"), visit)?;
            }
            Some(Entry::Object(segment)) if !is_folder => {
                visit(path, format!("{above}{segment}").parse().ok());
            }
            _ => visit(path, None),
        }
    }
    Ok(())
}
