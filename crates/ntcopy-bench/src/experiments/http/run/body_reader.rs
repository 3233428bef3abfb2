//! What the client does with bodies, and what a read of one gives.

use crate::run::{Failure, pattern};

/// Bytes that are dropped by one call at most. The memory behind it is never touched.
const DISCARDED_BYTES: usize = 16 << 20;
const COMPARED_BYTES: usize = 64 << 10;

pub struct BodyReader {
    room: Vec<u8>,
    compares: bool,
    /// Make the next byte wrong that is looked at, to see that it is noticed.
    spoil: bool,
}

impl BodyReader {
    pub fn discarding() -> BodyReader {
        BodyReader { room: vec![0; DISCARDED_BYTES], compares: false, spoil: false }
    }

    pub fn comparing(spoil: bool) -> BodyReader {
        BodyReader { room: vec![0; COMPARED_BYTES], compares: true, spoil }
    }

    pub(super) fn compares(&self) -> bool {
        self.compares
    }

    pub(super) fn room(&mut self, most: usize) -> &mut [u8] {
        let most = most.min(self.room.len());
        &mut self.room[..most]
    }

    /// Compares bytes of a body, if it compares.
    pub(super) fn compare(
        &self,
        number: u32,
        object: u64,
        at: u64,
        bytes: &[u8],
    ) -> Result<(), Failure> {
        let compared = match self.compares {
            true => pattern::compare(seed(object), at, bytes),
            false => Ok(()),
        };
        Ok(compared.map_err(|wrong| wrong.after(at).on(number))?)
    }

    /// Compares the first `bytes` of the room.
    pub(super) fn compare_room(
        &mut self,
        number: u32,
        object: u64,
        at: u64,
        bytes: usize,
    ) -> Result<(), Failure> {
        if self.spoil && bytes > 0 {
            self.spoil = false;
            self.room[0] ^= 1;
        }
        let room = std::mem::take(&mut self.room);
        let result = self.compare(number, object, at, &room[..bytes]);
        self.room = room;
        result
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// This many bytes, at least 1.
    Bytes(usize),
    Blocked,
    End,
}

pub fn seed(object: u64) -> u64 {
    object + 1
}
