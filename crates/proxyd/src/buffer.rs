//! A bounded buffer: bytes go in at the end and come out at the start.

/// Bytes between a reader and a writer. It grows as it is needed, never beyond what a call of
/// [`room`](Buffer::room) names.
#[derive(Debug, Default)]
pub struct Buffer {
    data: Vec<u8>,
    start: usize,
    end: usize,
}

impl Buffer {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Room for the bytes that bring the contents to at most `limit`; empty if they are there.
    pub fn room(&mut self, limit: usize) -> &mut [u8] {
        let want = limit.saturating_sub(self.len());
        if self.start > 0 && self.data.len() - self.end < want {
            self.data.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        if self.data.len() < self.end + want {
            self.data.resize(self.end + want, 0);
        }
        &mut self.data[self.end..self.end + want]
    }

    /// `bytes` bytes of the room were written.
    pub fn filled(&mut self, bytes: usize) {
        debug_assert!(self.end + bytes <= self.data.len());
        self.end += bytes;
    }

    /// Appends bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let limit = self.len() + bytes.len();
        self.room(limit)[..bytes.len()].copy_from_slice(bytes);
        self.filled(bytes.len());
    }

    /// Appends what `write` appends to a vector.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.data.truncate(self.end);
        write(&mut self.data);
        self.end = self.data.len();
    }

    /// The first `bytes` bytes are done with.
    pub fn consume(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len());
        self.start += bytes;
        if self.is_empty() {
            self.clear();
        }
    }

    /// Forgets the bytes.
    pub fn clear(&mut self) {
        self.start = 0;
        self.end = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_out_in_order_and_room_is_bounded() {
        let mut buffer = Buffer::default();
        assert_eq!(buffer.room(8).len(), 8);
        buffer.push(b"abcdef");
        assert_eq!(buffer.room(8).len(), 2);
        assert!(buffer.room(6).is_empty() && buffer.room(3).is_empty());
        buffer.consume(4);
        buffer.room(8)[..3].copy_from_slice(b"ghi");
        buffer.filled(3);
        buffer.push_with(|out| out.extend_from_slice(b"jk"));
        assert_eq!(buffer.bytes(), b"efghijk");
        buffer.consume(7);
        assert!(buffer.is_empty());
    }
}
