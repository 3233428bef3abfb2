//! Sends the lines of a source out of every cache, once they are copied: what PREFETCHNTA is meant
//! for, where the CPU takes that for an ordinary prefetch.

use core::arch::asm;

use super::super::cpuid;
use crate::arch::LINE_BYTES;

/// Bytes that are copied before their lines are flushed. On a Zen 4, cold copies of 1 MiB in blocks of
/// 256 and 512 bytes, 1, 2, 4 and 16 KiB: 17.1, 18.1, 17.6, 16.2, 15.9 and 13.7 GB/s.
pub(super) const BLOCK_BYTES: usize = 512;

/// The lines of a source that are wholly within it. The others may hold what is still in use.
pub(super) struct Source {
    /// The first line that is still in the caches.
    next: *const u8,
}

impl Source {
    /// A source that begins here, and of which nothing is flushed yet.
    #[inline(always)]
    pub(super) fn at(from: *const u8) -> Source {
        let head_bytes = (from as usize).wrapping_neg() % LINE_BYTES;
        Source { next: from.wrapping_add(head_bytes) }
    }

    /// Flushes the lines that end at `end` or before.
    ///
    /// # Safety
    ///
    /// What lies between the beginning and `end` is valid for reads.
    #[inline(always)]
    pub(super) unsafe fn flush_until(&mut self, end: *const u8) {
        let bytes = (end as usize).saturating_sub(self.next as usize);
        #[cfg(not(miri))]
        let has_clflushopt = cpuid::clflushopt();
        for _ in 0..bytes / LINE_BYTES {
            #[cfg(all(test, feature = "std"))]
            tests::FLUSHED.with_borrow_mut(|lines| lines.push(self.next as usize));
            // SAFETY: the caller guarantees that the line may be read, which is all that either
            // instruction asks for; CLFLUSH came with SSE2, which x86-64 includes, and the other one
            // is there by CPUID. The bytes stay what they are.
            #[cfg(not(miri))]
            unsafe {
                if has_clflushopt {
                    asm!("clflushopt [{}]", in(reg) self.next, options(nostack, preserves_flags));
                } else {
                    asm!("clflush [{}]", in(reg) self.next, options(nostack, preserves_flags));
                }
            }
            self.next = self.next.wrapping_add(LINE_BYTES);
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::cell::RefCell;

    use crate::arch::{COPY_BACKENDS, Piece};
    use crate::path::Prefetch;

    thread_local! {
        pub(super) static FLUSHED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    }

    /// The lines that are wholly within the bytes.
    fn whole_lines(bytes: &[u8]) -> Vec<usize> {
        let (from, end) = (bytes.as_ptr() as usize, bytes.as_ptr() as usize + bytes.len());
        (from.next_multiple_of(64)..end).step_by(64).filter(|line| line + 64 <= end).collect()
    }

    /// Whatever the way, and wherever either side begins: every whole line once, and no other.
    #[test]
    fn the_whole_lines_of_a_source_are_flushed_and_no_other() {
        let memory = vec![7; 90_000];
        let mut to = vec![0; 90_000];
        for row in COPY_BACKENDS.iter().filter(|row| row.is_available()) {
            for path in row.paths().filter(|path| path.prefetch == Prefetch::Flush) {
                for len_bytes in [1, 63, 64, 127, 128, 1024, 1300, 4096, 40_000, 70_001] {
                    for (to_at, from_at) in [(0, 0), (0, 1), (63, 0), (5, 33), (17, 63)] {
                        let from = &memory[from_at..][..len_bytes];
                        FLUSHED.take();
                        assert!(row.copy(&mut to[to_at..][..len_bytes], from, path));
                        let what = format!("{path}: {len_bytes} from {from_at} to {to_at}");
                        assert_eq!(FLUSHED.take(), whole_lines(from), "{what}");
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_flushed_by_another_way() {
        let (memory, mut to) = (vec![7; 20_000], vec![0; 20_000]);
        for row in COPY_BACKENDS.iter().filter(|row| row.is_available()) {
            for path in row.paths().filter(|path| path.prefetch != Prefetch::Flush) {
                FLUSHED.take();
                assert!(row.copy(&mut to, &memory, path));
                assert_eq!(FLUSHED.take(), [], "{path}");
            }
        }
    }

    #[test]
    fn so_are_those_of_pieces_in_turn() {
        let (memory, mut to) = (vec![7; 20_000], vec![0; 20_000]);
        let cuts = [(1, 4096), (4100, 4000), (8200, 1500), (9800, 5001)];
        let expected: Vec<usize> =
            cuts.iter().flat_map(|(at, len)| whole_lines(&memory[*at..][..*len])).collect();
        for row in COPY_BACKENDS.iter().filter(|row| row.is_available()) {
            let Some(copy_pieces) = row.copy_pieces else { continue };
            for path in row.paths().filter(|path| path.prefetch == Prefetch::Flush) {
                let start = to.as_mut_ptr();
                let pieces = cuts.map(|(at, len_bytes)| Piece {
                    // SAFETY: within the buffer.
                    to: unsafe { start.add(at) },
                    from: memory[at..].as_ptr(),
                    len_bytes,
                });
                FLUSHED.take();
                // SAFETY: the CPU has it; the pieces are within the buffers, and apart; the fence
                // follows.
                unsafe { copy_pieces(&pieces, path) }
                crate::fence();
                assert_eq!(FLUSHED.take(), expected, "{path}");
            }
        }
    }
}
