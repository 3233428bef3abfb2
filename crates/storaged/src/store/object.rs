//! One version of an object, open for reading.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Stat, fstat};
use rustix::io::Errno;

use super::error::StoreError;
use super::format::{self, BLOCK_BYTES, Corrupt, Hash, Meta, TAIL_BYTES, block_count};
use crate::fault::{Step, point};
use crate::key::Key;
use crate::region::Region;

/// Read at first from the end of a file: the whole trailer of objects up to 7 MiB or so.
const END_BYTES: u64 = 4096;

/// When blocks are compared with their checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verify {
    /// Whenever they are sent.
    Always,
    /// Once for each version of an object, as long as this process keeps it open.
    Once,
    /// Only the list of checksums is verified, not the blocks.
    Never,
}

/// Which file it is, and whether it was changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileVersion {
    device: u64,
    inode: u64,
    bytes: u64,
    modified_ns: i128,
    /// Can't be set back by hand, as the time of modification can.
    changed_ns: i128,
}

impl FileVersion {
    /// Bytes of the file, checksums included.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl From<&Stat> for FileVersion {
    fn from(stat: &Stat) -> FileVersion {
        let ns = |seconds: i64, ns: u64| i128::from(seconds) * 1_000_000_000 + i128::from(ns);
        FileVersion {
            device: stat.st_dev,
            inode: stat.st_ino,
            bytes: stat.st_size as u64,
            modified_ns: ns(stat.st_mtime, stat.st_mtime_nsec),
            changed_ns: ns(stat.st_ctime, stat.st_ctime_nsec),
        }
    }
}

/// An open version of an object. It stays readable to the end, whatever becomes of its name.
#[derive(Debug)]
pub struct Object {
    file: OwnedFd,
    version: FileVersion,
    meta: Meta,
    blocks: Vec<Hash>,
    /// One bit a block: it was as it should be.
    verified: Vec<AtomicU64>,
    region: OnceLock<Result<Region, Errno>>,
}

impl Object {
    /// Reads what follows the object's bytes; they themselves are not looked at.
    pub fn open(key: &Key, file: OwnedFd) -> Result<Object, StoreError> {
        let os = |errno| StoreError::os("read", key.as_str(), errno);
        let corrupt = |why| StoreError::Corrupt { key: key.to_string(), why };
        let version = FileVersion::from(&fstat(&file).map_err(os)?);
        let mut end = vec![0; version.bytes.min(END_BYTES) as usize];
        let at = version.bytes - end.len() as u64;
        read_exact(&file, &mut end, at).map_err(os)?;
        if end.len() < TAIL_BYTES {
            return Err(corrupt(Corrupt::Short));
        }
        let follow = format::trailer_bytes(&end, version.bytes).map_err(corrupt)?;
        if follow > end.len() {
            end.resize(follow, 0);
            read_exact(&file, &mut end, version.bytes - follow as u64).map_err(os)?;
        }
        let trailer = &end[end.len() - follow..];
        let (meta, blocks) = format::decode(trailer, version.bytes).map_err(corrupt)?;
        if meta.key != key.as_str() {
            return Err(corrupt(Corrupt::Key));
        }
        let verified = (0..blocks.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Ok(Object { file, version, meta, blocks, verified, region: OnceLock::new() })
    }

    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    pub fn version(&self) -> &FileVersion {
        &self.version
    }

    /// Its file: the object's bytes begin at 0.
    pub fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    /// The object's bytes, mapped at the first call; not to be looked at (see [`Region::bytes`]).
    ///
    /// # Errors
    ///
    /// Those of `mmap(2)`; `EINVAL` for an empty object.
    pub fn region(&self) -> Result<&Region, Errno> {
        let map = || match usize::try_from(self.meta.bytes) {
            Ok(0) => Err(Errno::INVAL),
            Ok(bytes) => Region::of_file(self.file.as_fd(), bytes),
            Err(_) => Err(Errno::NOMEM),
        };
        self.region.get_or_init(map).as_ref().map_err(|errno| *errno)
    }

    /// Whether [`verify`](Object::verify) would have nothing to do.
    pub fn is_verified(&self, range: &Range<u64>, verify: Verify) -> bool {
        match verify {
            Verify::Never => true,
            Verify::Always => range.is_empty(),
            Verify::Once => blocks_of(range).all(|block| self.bit(block)),
        }
    }

    /// Compares the blocks of a range with their checksums.
    pub fn verify(&self, range: &Range<u64>, verify: Verify) -> Result<(), StoreError> {
        if self.is_verified(range, verify) {
            return Ok(());
        }
        let mut buffer = vec![0; BLOCK_BYTES];
        for block in blocks_of(range) {
            if verify == Verify::Always || !self.bit(block) {
                self.verify_block(block, &mut buffer)?;
            }
        }
        Ok(())
    }

    fn verify_block(&self, block: u64, buffer: &mut [u8]) -> Result<(), StoreError> {
        let at = block * BLOCK_BYTES as u64;
        let bytes = (self.meta.bytes - at).min(BLOCK_BYTES as u64) as usize;
        read_exact(&self.file, &mut buffer[..bytes], at)
            .map_err(|errno| StoreError::os("read", &*self.meta.key, errno))?;
        // `blocks` has one for each, or the file would not have been opened.
        if blake3::hash(&buffer[..bytes]) != blake3::Hash::from_bytes(self.blocks[block as usize]) {
            return Err(self.corrupt(Corrupt::Block(block)));
        }
        self.verified[(block / 64) as usize].fetch_or(1 << (block % 64), Ordering::Relaxed);
        Ok(())
    }

    fn bit(&self, block: u64) -> bool {
        self.verified[(block / 64) as usize].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
    }

    fn corrupt(&self, why: Corrupt) -> StoreError {
        StoreError::Corrupt { key: self.meta.key.clone(), why }
    }
}

fn blocks_of(range: &Range<u64>) -> Range<u64> {
    if range.is_empty() { 0..0 } else { range.start / BLOCK_BYTES as u64..block_count(range.end) }
}

/// Reads as much as there is room for; a file that ends before is an error of the disk's.
fn read_exact(file: &OwnedFd, mut buffer: &mut [u8], mut at: u64) -> Result<(), Errno> {
    while !buffer.is_empty() {
        match point(Step::GetRead).and_then(|()| rustix::io::pread(file, &mut *buffer, at)) {
            Ok(0) => return Err(Errno::IO),
            Ok(read) => {
                buffer = &mut buffer[read..];
                at += read as u64;
            }
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
