//! Takes hold of a folder of objects, and makes one of an empty folder.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::{fs, process};

use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, Dir, FlockOperation, Mode, OFlags, flock, fsync, ftruncate, openat, unlinkat,
};
use rustix::io::Errno;

use super::Store;
use super::cache::Cache;
use super::compressed::refuse_compressed;
use super::folders::Folders;

const FORMAT: &str = "storaged 2\n";
/// That of storaged 0.2, which could compress objects.
const OLD_FORMAT: &str = "storaged 1\n";
const FORMAT_FILE: &str = "format";
const LOCK_FILE: &str = "lock";
const TEMPORARIES: &str = "temporary";
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

impl Store {
    /// Takes hold of a folder, made if it isn't there, and removes what a dead process was
    /// writing.
    pub fn open(dir: &Path, open_objects: usize) -> Result<Store, OpenError> {
        let io = |doing, path: &Path| {
            let path = path.to_owned();
            move |cause: io::Error| OpenError::Io { doing, path, cause }
        };
        fs::create_dir_all(dir).map_err(io("make", dir))?;
        let format = check_format(dir)?;
        let lock = take_lock(dir)?;
        if format == Format::Old {
            tracing::info!("a folder of storaged 0.2: looking for compressed objects");
            refuse_compressed(dir)?;
        }
        for name in [TEMPORARIES, OBJECTS] {
            let path = dir.join(name);
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(io("make", &path)(error));
                }
                _ => {}
            }
        }
        // Last: a folder with a format file is complete.
        write_format(dir, format).map_err(io("write the format file of", dir))?;
        let temporaries = open_folder(&dir.join(TEMPORARIES))?;
        remove_all(&temporaries)
            .map_err(|errno| io("clear", &dir.join(TEMPORARIES))(errno.into()))?;
        Ok(Store {
            folders: Folders::new(open_folder(&dir.join(OBJECTS))?),
            temporaries,
            cache: Cache::new(open_objects),
            locks: std::array::from_fn(|_| Default::default()),
            next_temporary: AtomicU64::new(0),
            _lock: lock,
        })
    }
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

fn take_lock(dir: &Path) -> Result<OwnedFd, OpenError> {
    let path = dir.join(LOCK_FILE);
    let io = |doing| {
        let path = path.clone();
        move |errno: Errno| OpenError::Io { doing, path, cause: errno.into() }
    };
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC;
    let lock = openat(CWD, &path, flags, Mode::from_raw_mode(0o644)).map_err(io("open"))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let holder = fs::read_to_string(&path).unwrap_or_default().trim().to_owned();
            let holder = if holder.is_empty() { "unknown".to_owned() } else { holder };
            return Err(OpenError::InUse { dir: dir.to_owned(), holder });
        }
        Err(errno) => return Err(io("lock")(errno)),
    }
    ftruncate(&lock, 0).map_err(io("write"))?;
    rustix::io::pwrite(&lock, format!("{}\n", process::id()).as_bytes(), 0).map_err(io("write"))?;
    Ok(lock)
}

/// Makes the format file unless it is there, and all that is in the folder durable: that it is there
/// does not say that whoever made it has lived to sync it.
fn write_format(dir: &Path, found: Format) -> io::Result<()> {
    if found != Format::Current {
        let new = dir.join("format.new");
        let mut file = fs::File::create(&new)?;
        file.write_all(FORMAT.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, dir.join(FORMAT_FILE))?;
    }
    fs::File::open(dir)?.sync_all()?;
    // The folder's own name, if it was made just now.
    match dir.canonicalize()?.parent() {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

fn open_folder(path: &Path) -> Result<OwnedFd, OpenError> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(CWD, path, flags, Mode::empty()).map_err(|errno| OpenError::Io {
        doing: "open",
        path: path.to_owned(),
        cause: errno.into(),
    })
}

/// The lock is held, so whoever made these is dead.
fn remove_all(folder: &OwnedFd) -> Result<(), Errno> {
    let mut removed = 0_u64;
    for entry in Dir::read_from(folder)? {
        let name = entry?.file_name().to_owned();
        if !matches!(name.to_bytes(), b"." | b"..") {
            unlinkat(folder, &name, AtFlags::empty())?;
            removed += 1;
        }
    }
    if removed > 0 {
        tracing::info!(removed, "temporary files of a process that died are gone");
        fsync(folder)?;
    }
    Ok(())
}
