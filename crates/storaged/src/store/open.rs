//! Takes hold of a folder of objects, and makes one of an empty folder.

use std::io::{self, Write};
use std::path::Path;
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
use super::layout::{
    FORMAT, FORMAT_FILE, Format, LOCK_FILE, OBJECTS, OpenError, TEMPORARIES, check_format,
};

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
