//! Takes hold of a folder of objects, or makes one.

use std::fs::{self, File, Permissions};
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::{self, Sender};
use std::thread;

use anyhow::{Context as _, bail};
use lru::LruCache;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use super::files::{FILE_MODE, FOLDER_MODE, make_folder, new_file, unless_gone};
use super::index::{INDEX, Index, NEW_INDEX, Open, sync_folder};
use super::spare::{SPARE, Spare};
use super::{BLOBS, Cache, IndexError, OBJECTS, Store, mark, sweep};

impl Store {
    /// Takes hold of a folder, and clears it of what a dead process has left.
    pub fn open(dir: &Path, open_objects: NonZeroUsize) -> anyhow::Result<Store> {
        let (path, blobs) = (dir.join(INDEX), dir.join(BLOBS));
        if !path.exists() {
            bail!(
                "{} holds no store. If that is the right folder, and every disk is mounted: storaged \
                 --create makes one, --rebuild an index of the files of one",
                dir.display()
            );
        }
        let folder = hold(dir)?;
        for (path, mode) in [(&path, FILE_MODE), (&blobs, FOLDER_MODE)] {
            fs::set_permissions(path, Permissions::from_mode(mode))
                .with_context(|| format!("cannot set the mode of {}", path.display()))?;
        }
        let index = Open::path(&path)
            .with_context(|| format!("{}: storaged --rebuild makes another", path.display()))?;
        let next = sweep::begin(dir, &index.database)?;
        let blobs =
            File::open(&blobs).with_context(|| format!("cannot open {}", blobs.display()))?;
        let marks = mark::are_had(&blobs);
        if !marks {
            tracing::warn!(
                "the file system has no extended attributes: files don't say their keys, and no \
                 index can be made of them"
            );
        }
        Ok(Store {
            blobs,
            dir: dir.to_owned(),
            index: Index::new(dir, index),
            cache: Mutex::new(Cache { objects: LruCache::new(open_objects), changes: 0 }),
            unsettled: Mutex::default(),
            _held: folder,
            next: AtomicU64::new(next),
            marks,
            spare: Spare::take(dir).context("cannot keep room for the index")?,
            gone: thread_that_lets_go().context("cannot start a thread")?,
        })
    }
}

fn thread_that_lets_go() -> io::Result<Sender<Box<dyn Send>>> {
    let (gone, held) = mpsc::channel::<Box<dyn Send>>();
    thread::Builder::new()
        .name("letting-go".to_owned())
        .spawn(move || held.iter().for_each(drop))?;
    Ok(gone)
}

/// Makes a store of a folder that is empty, or not there; whether there was none.
pub fn create(dir: &Path) -> anyhow::Result<bool> {
    make_folder(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let _held = hold(dir)?;
    if dir.join(INDEX).exists() {
        return Ok(false);
    }
    must_be_empty(dir)?;
    make(dir).with_context(|| format!("cannot make the index of {}", dir.display()))?;
    Ok(true)
}

/// Locks a folder for as long as what is returned is open.
pub(super) fn hold(dir: &Path) -> anyhow::Result<File> {
    let shown = dir.display();
    let folder = File::open(dir).with_context(|| format!("cannot open {shown}"))?;
    match rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            bail!("{shown} is in use by another process: stop it, or choose another folder")
        }
        locked => locked.with_context(|| format!("cannot lock {shown}"))?,
    }
    Ok(folder)
}

/// Makes an index beside its place, and gives it its name once it is whole: with it the folder is.
fn make(dir: &Path) -> Result<(), IndexError> {
    let (new, blobs) = (dir.join(NEW_INDEX), dir.join(BLOBS));
    // Of a start that died half-way, which left no object.
    unless_gone(fs::remove_file(&new))?;
    unless_gone(fs::remove_dir(&blobs))?;
    make_folder(&blobs)?;
    let index = Open::file(new_file(&new)?)?;
    let writing = index.database.begin_write()?;
    writing.open_table(OBJECTS)?;
    sweep::reserve(&writing, 1)?;
    writing.commit()?;
    drop(index);
    fs::rename(&new, dir.join(INDEX))?;
    sync_folder(dir)?;
    // The folder's own name, if it was made just now.
    match dir.canonicalize()?.parent() {
        Some(parent) => Ok(sync_folder(parent)?),
        None => Ok(()),
    }
}

fn must_be_empty(dir: &Path) -> anyhow::Result<()> {
    let shown = dir.display();
    let cannot = || format!("cannot read {shown}");
    for entry in fs::read_dir(dir).with_context(cannot)? {
        let name = entry.with_context(cannot)?.file_name();
        // What a first start leaves that died half-way; and where a disk begins.
        if ![BLOBS, NEW_INDEX, SPARE, "lost+found"].iter().any(|known| name == *known) {
            bail!("{shown} is neither empty nor a folder of storaged's: choose another");
        }
    }
    let blobs = fs::read_dir(dir.join(BLOBS)).map(Iterator::count);
    if blobs.is_ok_and(|files| files > 0) {
        bail!("{shown} has objects and no index: storaged --rebuild makes one");
    }
    Ok(())
}
