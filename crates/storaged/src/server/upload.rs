//! A PUT's body on its way to the store.

use crate::http::{BadChunk, Framing};
use crate::store::condition::Conditions;
use crate::store::{StoreError, Upload};

pub struct Incoming {
    framing: Framing,
    upload: Upload,
    conditions: Conditions,
    limit_bytes: u64,
}

#[derive(Debug)]
pub enum BodyError {
    Malformed,
    TooLarge,
    Store(StoreError),
}

impl From<BadChunk> for BodyError {
    fn from(_: BadChunk) -> BodyError {
        BodyError::Malformed
    }
}

impl Incoming {
    pub fn new(
        framing: Framing,
        upload: Upload,
        conditions: Conditions,
        limit_bytes: u64,
    ) -> Incoming {
        Incoming { framing, upload, conditions, limit_bytes }
    }

    /// Takes what belongs to the body; returns how many bytes did.
    pub fn push(&mut self, input: &[u8]) -> Result<usize, BodyError> {
        let mut at = 0;
        while at < input.len() && !self.framing.is_done() {
            let piece = self.framing.next(&input[at..])?;
            at += piece.taken;
            if self.upload.bytes() + piece.data.len() as u64 > self.limit_bytes {
                return Err(BodyError::TooLarge);
            }
            self.upload.write(piece.data).map_err(BodyError::Store)?;
        }
        Ok(at)
    }

    pub fn makes_folders(&self) -> bool {
        self.upload.makes_folders()
    }

    /// Bytes that can come before the next framing.
    pub fn next_bytes(&self) -> usize {
        self.framing.next_bytes()
    }

    /// Bytes of content that are here.
    pub fn bytes(&self) -> u64 {
        self.upload.bytes()
    }

    pub fn is_done(&self) -> bool {
        self.framing.is_done()
    }

    pub fn into_parts(self) -> (Upload, Conditions) {
        (self.upload, self.conditions)
    }
}
