//! Memory with guards on both sides, and every way that this CPU has.

#![allow(dead_code, reason = "not every test uses all of it")]

use ntcopy::arch::{COPY_BACKENDS, CopyBackend, FILL_BACKENDS, FillBackend};

/// Bytes on either side that nothing may write.
pub const GUARD_BYTES: usize = 128;
const GUARD: u8 = 0xa5;

/// A buffer at a chosen place within a cache line, with guards on both sides.
pub struct Guarded {
    memory: Vec<u8>,
    start: usize,
    room_bytes: usize,
}

impl Guarded {
    /// Room for `room_bytes` at any offset within a line.
    pub fn new(room_bytes: usize) -> Guarded {
        let memory = vec![GUARD; room_bytes + 2 * GUARD_BYTES + 2 * 64];
        let start = memory.as_ptr().align_offset(64) + GUARD_BYTES;
        Guarded { memory, start, room_bytes }
    }

    /// `len_bytes` bytes that begin `offset` bytes after a line does.
    pub fn at(&mut self, offset: usize, len_bytes: usize) -> &mut [u8] {
        assert!(offset < 64 && len_bytes <= self.room_bytes);
        &mut self.memory[self.start + offset..][..len_bytes]
    }

    /// Panics if anything but those bytes was written.
    pub fn check(&self, offset: usize, len_bytes: usize, what: impl Fn() -> String) {
        let first = self.start + offset;
        let before = &self.memory[first - GUARD_BYTES..first];
        let after = &self.memory[first + len_bytes..][..GUARD_BYTES - offset];
        assert!(before.iter().all(|&byte| byte == GUARD), "{}: wrote below", what());
        assert!(after.iter().all(|&byte| byte == GUARD), "{}: wrote above", what());
    }

    /// Makes those bytes a guard again.
    pub fn reset(&mut self, offset: usize, len_bytes: usize) {
        self.at(offset, len_bytes).fill(GUARD);
    }
}

/// Bytes of which no two neighbours, lines or pages are alike.
pub fn pattern(len_bytes: usize, seed: usize) -> Vec<u8> {
    (0..len_bytes).map(|at| (at * 7 + at / 64 * 31 + at / 4096 * 57 + seed) as u8).collect()
}

/// The ways to copy that this CPU has; says which it has not.
pub fn copy_backends() -> Vec<&'static CopyBackend> {
    let (here, missing): (Vec<_>, Vec<_>) =
        COPY_BACKENDS.iter().partition(|backend| backend.is_available());
    missing.iter().for_each(|backend| println!("not on this CPU: copy {}", backend.name()));
    here
}

/// The ways to fill that this CPU has; says which it has not.
pub fn fill_backends() -> Vec<&'static FillBackend> {
    let (here, missing): (Vec<_>, Vec<_>) =
        FILL_BACKENDS.iter().partition(|backend| backend.is_available());
    missing.iter().for_each(|backend| println!("not on this CPU: fill {}", backend.name()));
    here
}
