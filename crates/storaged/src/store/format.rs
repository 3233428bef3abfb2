//! What an object's file looks like.
//!
//! ```text
//! content | checksum of each 64 KiB block, 32 bytes each | key | content type | tail
//! ```
//!
//! The content comes first, so that it is page-aligned for mmap and sendfile and a body of
//! unknown length can be written as it arrives. The tail, 112 bytes, little-endian:
//!
//! | at | bytes | |
//! |---|---|---|
//! | 0 | 8 | `ntstore` and the version, 1 |
//! | 8 | 8 | bytes of the content |
//! | 16 | 8 | the same |
//! | 24 | 8 | when it was stored, nanoseconds since 1970 |
//! | 32 | 2 | bytes of the key |
//! | 34 | 2 | bytes of the content type; 0: none |
//! | 36 | 1 | 0; storaged 0.2 wrote 1 for an object that it had compressed |
//! | 37 | 3 | 0 |
//! | 40 | 8 | bytes of a block, 65536 |
//! | 48 | 32 | digest of the content |
//! | 80 | 32 | checksum of everything that follows the content, up to here |
//!
//! Checksums are BLAKE3. The digest of the content is the BLAKE3 of its length and the checksums
//! of its blocks, so it costs nothing beyond them; it makes the ETag.

use std::fmt;
use std::time::Duration;

/// Bytes that share a checksum, and so the least that is read to verify a range.
pub const BLOCK_BYTES: usize = 64 << 10;
pub const TAIL_BYTES: usize = 112;
pub const HASH_BYTES: usize = 32;
/// Longest content type that is kept, in bytes.
pub const TYPE_BYTES_MAX: usize = 255;

const MAGIC: [u8; 8] = *b"ntstore\x01";
const SEALED: usize = TAIL_BYTES - HASH_BYTES;

pub type Hash = [u8; HASH_BYTES];

/// What is known of an object besides its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub key: String,
    /// What the PUT said; empty if it didn't.
    pub content_type: String,
    pub bytes: u64,
    /// When it was stored, in nanoseconds since 1970.
    pub stored_at_ns: u64,
    pub digest: Hash,
}

impl Meta {
    pub fn stored_at(&self) -> Duration {
        Duration::from_nanos(self.stored_at_ns)
    }
}

/// What does not fit about a file, or about bytes of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Corrupt {
    Short,
    Magic,
    Length,
    Trailer,
    Field(&'static str),
    Key,
    Block(u64),
    Digest,
    Compressed,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Corrupt::Short => write!(f, "the file is too short to be an object"),
            Corrupt::Magic => write!(f, "the file does not end as an object does"),
            Corrupt::Length => write!(f, "the file's length is not the one in its tail"),
            Corrupt::Trailer => write!(f, "the checksum of the tail and the block list is wrong"),
            Corrupt::Field(name) => write!(f, "the tail's field '{name}' has an unknown value"),
            Corrupt::Key => write!(f, "the file holds another object's name"),
            Corrupt::Block(block) => {
                let at = block * BLOCK_BYTES as u64;
                write!(f, "the checksum of the block at byte {at} is wrong")
            }
            Corrupt::Digest => write!(f, "the digest in the tail is not that of the blocks"),
            Corrupt::Compressed => write!(f, "storaged 0.2 compressed it, which is not read here"),
        }
    }
}

pub fn block_count(bytes: u64) -> u64 {
    bytes.div_ceil(BLOCK_BYTES as u64)
}

/// The digest of content with these block checksums.
pub fn digest(bytes: u64, blocks: &[Hash]) -> Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&bytes.to_le_bytes());
    hasher.update(blocks.as_flattened());
    *hasher.finalize().as_bytes()
}

/// The checksum at the very end, of what follows the content.
pub fn seal(before: &[u8]) -> Hash {
    *blake3::hash(before).as_bytes()
}

/// What follows the content: its block checksums, the names, the tail.
pub fn encode(meta: &Meta, blocks: &[Hash]) -> Vec<u8> {
    let mut out = blocks.as_flattened().to_vec();
    out.extend_from_slice(meta.key.as_bytes());
    out.extend_from_slice(meta.content_type.as_bytes());
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&meta.bytes.to_le_bytes());
    out.extend_from_slice(&meta.bytes.to_le_bytes());
    out.extend_from_slice(&meta.stored_at_ns.to_le_bytes());
    // Both are bounded far below: KEY_BYTES_MAX, TYPE_BYTES_MAX.
    out.extend_from_slice(&(meta.key.len() as u16).to_le_bytes());
    out.extend_from_slice(&(meta.content_type.len() as u16).to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(BLOCK_BYTES as u64).to_le_bytes());
    out.extend_from_slice(&meta.digest);
    let seal = seal(&out);
    out.extend_from_slice(&seal);
    out
}

/// How many bytes follow the content, as the tail at the end of `end` says.
///
/// `end` is the last piece of a file of `file_bytes`, at least [`TAIL_BYTES`] of it if the file
/// has them. The tail is not to be trusted further than this before [`decode`] has seen it all.
pub fn trailer_bytes(end: &[u8], file_bytes: u64) -> Result<usize, Corrupt> {
    let tail = end.len().checked_sub(TAIL_BYTES).map(|at| &end[at..]).ok_or(Corrupt::Short)?;
    if tail[..8] != MAGIC {
        return Err(Corrupt::Magic);
    }
    let bytes = u64_at(tail, 8);
    let names = u64::from(u16_at(tail, 32)) + u64::from(u16_at(tail, 34));
    let follow = block_count(bytes)
        .checked_mul(HASH_BYTES as u64)
        .and_then(|table| table.checked_add(names + TAIL_BYTES as u64))
        .ok_or(Corrupt::Length)?;
    if bytes.checked_add(follow) != Some(file_bytes) {
        return Err(Corrupt::Length);
    }
    usize::try_from(follow).map_err(|_| Corrupt::Length)
}

/// Reads what [`encode`] wrote; `trailer` has exactly [`trailer_bytes`].
pub fn decode(trailer: &[u8], file_bytes: u64) -> Result<(Meta, Vec<Hash>), Corrupt> {
    if trailer_bytes(trailer, file_bytes)? != trailer.len() {
        return Err(Corrupt::Length);
    }
    let (sealed, found) = trailer.split_at(trailer.len() - HASH_BYTES);
    if found != seal(sealed) {
        return Err(Corrupt::Trailer);
    }
    let (rest, tail) = sealed.split_at(sealed.len() - SEALED);
    let (rest, content_type) = rest.split_at(rest.len() - usize::from(u16_at(tail, 34)));
    let (table, key) = rest.split_at(rest.len() - usize::from(u16_at(tail, 32)));
    let (blocks, _) = table.as_chunks::<HASH_BYTES>();
    if tail[36] == 1 {
        return Err(Corrupt::Compressed);
    }
    if tail[36..40] != [0; 4] {
        return Err(Corrupt::Field("reserved"));
    }
    if u64_at(tail, 40) != BLOCK_BYTES as u64 {
        return Err(Corrupt::Field("block size"));
    }
    let text =
        |bytes: &[u8], name| String::from_utf8(bytes.to_vec()).map_err(|_| Corrupt::Field(name));
    let meta = Meta {
        key: text(key, "key")?,
        content_type: text(content_type, "content type")?,
        bytes: u64_at(tail, 8),
        stored_at_ns: u64_at(tail, 24),
        digest: tail[48..80].try_into().expect("32 bytes"),
    };
    if u64_at(tail, 16) != meta.bytes {
        return Err(Corrupt::Length);
    }
    if meta.digest != digest(meta.bytes, blocks) {
        return Err(Corrupt::Digest);
    }
    Ok((meta, blocks.to_vec()))
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(bytes[at..at + 2].try_into().expect("2 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example(bytes: u64) -> (Meta, Vec<Hash>) {
        let blocks: Vec<Hash> = (0..block_count(bytes)).map(|at| [at as u8; 32]).collect();
        let meta = Meta {
            key: "a/b".to_owned(),
            content_type: "text/plain".to_owned(),
            bytes,
            stored_at_ns: 1_234_567_890_123_456_789,
            digest: digest(bytes, &blocks),
        };
        (meta, blocks)
    }

    #[test]
    fn what_is_written_is_read() {
        for bytes in [0, 1, 65_535, 65_536, 65_537, 10 << 20] {
            let (meta, blocks) = example(bytes);
            let trailer = encode(&meta, &blocks);
            let file_bytes = bytes + trailer.len() as u64;
            assert_eq!(trailer_bytes(&trailer, file_bytes), Ok(trailer.len()));
            assert_eq!(decode(&trailer, file_bytes), Ok((meta, blocks)));
        }
    }

    #[test]
    fn no_flipped_bit_and_no_cut_goes_unnoticed() {
        let (meta, blocks) = example(100_000);
        let good = encode(&meta, &blocks);
        let file_bytes = 100_000 + good.len() as u64;
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bad, file_bytes).is_err(), "bit {bit}");
        }
        for cut in 1..=good.len() {
            assert!(decode(&good[..good.len() - cut], file_bytes - cut as u64).is_err());
            assert!(decode(&good[cut..], file_bytes - cut as u64).is_err());
        }
    }

    #[test]
    fn an_object_of_0_2_that_is_compressed_is_called_so() {
        let (meta, blocks) = example(100);
        let mut trailer = encode(&meta, &blocks);
        let (sealed, at) = (trailer.len() - HASH_BYTES, trailer.len() - TAIL_BYTES + 36);
        trailer[at] = 1;
        let seal = seal(&trailer[..sealed]);
        trailer[sealed..].copy_from_slice(&seal);
        assert_eq!(decode(&trailer, 100 + trailer.len() as u64), Err(Corrupt::Compressed));
    }

    #[test]
    fn lengths_that_overflow_are_refused() {
        let (mut meta, blocks) = example(0);
        for bytes in [u64::MAX, u64::MAX - 200, 1 << 63] {
            meta.bytes = bytes;
            let trailer = encode(&meta, &blocks);
            let file_bytes = trailer.len() as u64;
            assert_eq!(trailer_bytes(&trailer, file_bytes), Err(Corrupt::Length));
        }
    }
}
