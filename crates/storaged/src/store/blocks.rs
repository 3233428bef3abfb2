//! Cuts a stream into blocks and takes their checksums.

use super::format::{BLOCK_BYTES, Hash, digest};

#[derive(Debug, Default)]
pub struct Blocks {
    /// The start of a block that is not whole yet.
    pending: Vec<u8>,
    hashes: Vec<Hash>,
    bytes: u64,
}

impl Blocks {
    /// Takes more of the stream; `whole` gets each block that is complete.
    ///
    /// # Errors
    ///
    /// Those of `whole`; the stream is of no use then.
    pub fn push<E>(
        &mut self,
        mut bytes: &[u8],
        mut whole: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.bytes += bytes.len() as u64;
        if !self.pending.is_empty() {
            let (more, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.pending.len()));
            self.pending.extend_from_slice(more);
            bytes = rest;
            if self.pending.len() < BLOCK_BYTES {
                return Ok(());
            }
            self.hashes.push(*blake3::hash(&self.pending).as_bytes());
            whole(&self.pending)?;
            self.pending.clear();
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
        for block in blocks {
            self.hashes.push(*blake3::hash(block).as_bytes());
            whole(block)?;
        }
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    /// Ends the stream; `last` gets what is left, if anything is.
    pub fn end<E>(&mut self, last: impl FnOnce(&[u8]) -> Result<(), E>) -> Result<(), E> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.hashes.push(*blake3::hash(&self.pending).as_bytes());
        last(&self.pending)?;
        self.pending.clear();
        Ok(())
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The checksums; all of them after [`end`](Blocks::end).
    pub fn hashes(&self) -> &[Hash] {
        &self.hashes
    }

    /// The digest of it all, after [`end`](Blocks::end).
    pub fn digest(&self) -> Hash {
        digest(self.bytes, &self.hashes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn pieces_don_t_matter(pieces in prop::collection::vec(0_usize..200_000, 0..6)) {
            let all: Vec<u8> = (0..pieces.iter().sum::<usize>()).map(|at| (at % 253) as u8).collect();
            let (mut blocks, mut out, mut at) = (Blocks::default(), Vec::new(), 0);
            for piece in pieces {
                let keep = |block: &[u8]| { out.extend_from_slice(block); Ok::<_, ()>(()) };
                blocks.push(&all[at..at + piece], keep).unwrap();
                at += piece;
            }
            blocks.end(|block| { out.extend_from_slice(block); Ok::<_, ()>(()) }).unwrap();
            prop_assert!(out == all);
            let naive: Vec<Hash> =
                all.chunks(BLOCK_BYTES).map(|block| *blake3::hash(block).as_bytes()).collect();
            prop_assert_eq!(blocks.hashes(), &naive[..]);
            prop_assert_eq!(blocks.bytes(), all.len() as u64);
        }
    }
}
