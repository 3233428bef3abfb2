//! Folders of storaged 0.2: a tree of files, each an object with what is known of it behind its
//! bytes. They are taken over as they are, by links.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use super::error::io as failed;
use super::{BLOBS, Meta, OpenError};
use crate::key::Key;

const FORMATS: [&str; 2] = ["storaged 1\n", "storaged 2\n"];
const MAGIC: [u8; 8] = *b"ntstore\x01";
const TAIL_BYTES: usize = 112;
const SEAL_BYTES: usize = 32;
const BLOCK_BYTES: u64 = 64 << 10;

/// An object that can be taken over.
pub(super) struct Earlier {
    pub(super) path: PathBuf,
    pub(super) key: Key,
    /// Without the number of its file.
    pub(super) meta: Meta,
}

/// The objects of a folder of 0.2; none of an empty folder. No other is taken.
pub(super) fn find(dir: &Path) -> Result<Vec<Earlier>, OpenError> {
    let format = match fs::read_to_string(dir.join("format")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return must_be_empty(dir),
        found => found.map_err(failed("read the format of", dir))?,
    };
    if !FORMATS.contains(&&*format) {
        return Err(OpenError::Format { dir: dir.to_owned(), found: format });
    }
    let lock = dir.join("lock");
    if let Ok(held) = File::open(&lock)
        && flock(&held, FlockOperation::NonBlockingLockExclusive).is_err()
    {
        return Err(OpenError::InUse { dir: dir.to_owned() });
    }
    let mut objects = Vec::new();
    walk(&dir.join("objects"), &mut objects)?;
    tracing::info!(objects = objects.len(), "taking over a folder of storaged 0.2");
    Ok(objects)
}

fn must_be_empty(dir: &Path) -> Result<Vec<Earlier>, OpenError> {
    for entry in fs::read_dir(dir).map_err(failed("read", dir))? {
        let name = entry.map_err(failed("read", dir))?.file_name();
        // What a first start leaves that died half-way; and where a disk begins.
        if ![BLOBS, "index.new", "lost+found"].iter().any(|known| name == *known) {
            return Err(OpenError::Foreign { dir: dir.to_owned() });
        }
    }
    Ok(Vec::new())
}

fn walk(folder: &Path, objects: &mut Vec<Earlier>) -> Result<(), OpenError> {
    for entry in fs::read_dir(folder).map_err(failed("read", folder))? {
        let entry = entry.map_err(failed("read", folder))?;
        let path = entry.path();
        if entry.file_type().map_err(failed("look at", &path))?.is_dir() {
            walk(&path, objects)?;
        } else {
            let file = File::open(&path).map_err(failed("open", &path))?;
            let read = read(&file).map_err(failed("read", &path))?;
            let (key, meta) = read.map_err(|why| OpenError::Earlier { path: path.clone(), why })?;
            objects.push(Earlier { path, key, meta });
        }
    }
    Ok(())
}

/// What stands behind an object's bytes, or why it can't be read.
fn read(file: &File) -> io::Result<Result<(Key, Meta), &'static str>> {
    const DAMAGED: &str = "the object is damaged";
    let file_bytes = file.metadata()?.len();
    let Some(at) = file_bytes.checked_sub(TAIL_BYTES as u64) else { return Ok(Err(DAMAGED)) };
    let mut tail = [0; TAIL_BYTES];
    file.read_exact_at(&mut tail, at)?;
    let u64_at = |at: usize| u64::from_le_bytes(tail[at..at + 8].try_into().expect("8 bytes"));
    let length_at = |at: usize| usize::from(u16::from_le_bytes([tail[at], tail[at + 1]]));
    let (bytes, key, kind) = (u64_at(8), length_at(32), length_at(34));
    if tail[..8] != MAGIC {
        return Ok(Err(DAMAGED));
    }
    if tail[36] == 1 {
        return Ok(Err("it is compressed, and this version has no zstd"));
    }
    let table = bytes.div_ceil(BLOCK_BYTES).checked_mul(SEAL_BYTES as u64);
    let follow = table.map(|table| table + (key + kind + TAIL_BYTES) as u64);
    let Some(follow) = follow.filter(|follow| bytes.checked_add(*follow) == Some(file_bytes))
    else {
        return Ok(Err(DAMAGED));
    };
    let mut all = vec![0; follow as usize];
    file.read_exact_at(&mut all, bytes)?;
    let (sealed, seal) = all.split_at(all.len() - SEAL_BYTES);
    if *blake3::hash(sealed).as_bytes() != seal {
        return Ok(Err(DAMAGED));
    }
    let names = &all[all.len() - TAIL_BYTES - key - kind..all.len() - TAIL_BYTES];
    let text = |bytes: &[u8]| str::from_utf8(bytes).map(str::to_owned).map_err(|_| DAMAGED);
    let meta = |content_type| Meta {
        id: 0,
        bytes,
        stored_at_ns: u64_at(24),
        content_type,
        digest: tail[48..80].try_into().expect("32 bytes"),
    };
    let key = |name: String| name.parse::<Key>().map_err(|_| DAMAGED);
    let (name, content_type) = names.split_at(length_at(32));
    Ok(text(name).and_then(key).and_then(|key| Ok((key, meta(text(content_type)?)))))
}

/// Removes what was taken over; it has another name by now.
pub(super) fn remove(dir: &Path) -> io::Result<()> {
    if !dir.join("format").exists() {
        return Ok(());
    }
    for folder in ["objects", "temporary"] {
        match fs::remove_dir_all(dir.join(folder)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    for file in ["lock", "format"] {
        match fs::remove_file(dir.join(file)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    File::open(dir)?.sync_all()
}
