//! x86-64: its ways to copy and to fill, and where the whole cache lines of a destination are.

#[cfg_attr(miri, allow(dead_code, reason = "assembly"))]
mod copy;
pub(crate) mod cpuid;
#[cfg_attr(miri, allow(dead_code, reason = "assembly"))]
mod fill;

use super::LINE_BYTES;

pub(super) use copy::BACKENDS as COPY_BACKENDS;
pub(crate) use cpuid::facts;
pub(super) use fill::BACKENDS as FILL_BACKENDS;

/// A destination, cut where its whole lines begin and end. Only those are streamed to: a normal
/// store to a line that was just streamed to waits for it to reach memory, hundreds of cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edges {
    /// Bytes before the first whole line.
    pub(super) head_bytes: usize,
    /// Whole lines.
    pub(super) lines: usize,
    /// Bytes after the last whole line.
    pub(super) tail_bytes: usize,
}

impl Edges {
    #[inline(always)]
    pub(super) fn of(to: *const u8, len_bytes: usize) -> Edges {
        // Not align_offset(), which may refuse to answer.
        let head_bytes = (to as usize).wrapping_neg() % LINE_BYTES;
        let head_bytes = if head_bytes < len_bytes { head_bytes } else { len_bytes };
        let rest_bytes = len_bytes - head_bytes;
        let tail_bytes = rest_bytes % LINE_BYTES;
        Edges { head_bytes, lines: rest_bytes / LINE_BYTES, tail_bytes }
    }

    /// Offset of the bytes after the last whole line.
    #[inline(always)]
    pub(super) fn tail_at(self) -> usize {
        self.head_bytes + self.lines * LINE_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(address: usize, len_bytes: usize) -> (usize, usize, usize) {
        let edges = Edges::of(address as *const u8, len_bytes);
        assert_eq!(edges.head_bytes + edges.lines * LINE_BYTES + edges.tail_bytes, len_bytes);
        assert_eq!(edges.tail_at() + edges.tail_bytes, len_bytes);
        (edges.head_bytes, edges.lines, edges.tail_bytes)
    }

    #[test]
    fn only_whole_lines_are_streamed() {
        assert_eq!(edges(64, 0), (0, 0, 0));
        assert_eq!(edges(64, 64), (0, 1, 0));
        assert_eq!(edges(65, 64), (63, 0, 1));
        assert_eq!(edges(65, 63), (63, 0, 0));
        assert_eq!(edges(65, 20), (20, 0, 0));
        assert_eq!(edges(127, 1 + 128 + 5), (1, 2, 5));
        assert_eq!(edges(128, 200), (0, 3, 8));
    }
}
