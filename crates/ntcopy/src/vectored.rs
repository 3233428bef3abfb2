//! Scatter and gather: many slices into many slices.

use core::ops::{Deref, DerefMut};
use core::ptr;

use crate::arch::Piece;
use crate::hint::Hints;
use crate::stream::{Moved, Stream, Unfenced};

/// Copies the bytes of all `sources`, one after the other, into all `destinations`, one after the
/// other, until either runs out; fences; and says how much that was.
///
/// The slices on the two sides need not correspond: `IoSlice` and `IoSliceMut` of any lengths,
/// empty ones among them, or plain slices. The policy sees the sum of the bytes, and pieces of about
/// a page are copied several in turn, as the pages of one long copy are.
///
/// ```
/// use ntcopy::{Hints, copy_vectored};
///
/// let mut whole = [0; 5];
/// let moved = copy_vectored(&mut [&mut whole[..]], &[&b"he"[..], b"", b"llo"], Hints::AUTO);
/// assert_eq!((&whole, moved.bytes), (b"hello", 5));
/// ```
pub fn copy_vectored<D, S>(destinations: &mut [D], sources: &[S], hints: Hints) -> Moved
where
    D: DerefMut<Target = [u8]>,
    S: Deref<Target = [u8]>,
{
    // Sources may name the same bytes many times over, more than there is memory.
    let add = |sum: u64, len_bytes: usize| sum.saturating_add(len_bytes as u64);
    let room_bytes = destinations.iter().map(|slice| slice.len()).fold(0, add);
    let there_bytes = sources.iter().map(|slice| slice.len()).fold(0, add);
    let total_bytes = room_bytes.min(there_bytes);
    // The sums above decide how to copy. What is copied is what one dereference of each gives: a
    // second one may give another slice.
    let to = destinations.iter_mut().map(|one| {
        let slice: &mut [u8] = one;
        (slice.as_mut_ptr(), slice.len())
    });
    let from = sources.iter().map(|one| {
        let slice: &[u8] = one;
        (slice.as_ptr(), slice.len())
    });
    // SAFETY: slices, those written to borrowed for writing, so that they overlap nothing.
    unsafe { copy_scattered(total_bytes, to, from, hints) }
}

/// [`copy_vectored`] of what need not be slices.
///
/// # Safety
///
/// - Pieces are valid for writes, and for reads, of their lengths.
/// - No destination overlaps a source or another destination.
#[doc(hidden)]
pub unsafe fn copy_scattered(
    total_bytes: u64,
    destinations: impl Iterator<Item = (*mut u8, usize)>,
    mut sources: impl Iterator<Item = (*const u8, usize)>,
    hints: Hints,
) -> Moved {
    let mut stream = Stream::known(total_bytes, hints);
    let mut unfenced = stream.unfenced();
    let mut together = Together::new();
    let (mut from, mut there_bytes) = (ptr::null(), 0);
    'full: for (mut to, mut room_bytes) in destinations {
        while room_bytes > 0 {
            while there_bytes == 0 {
                let Some(next) = sources.next() else { break 'full };
                (from, there_bytes) = next;
            }
            let len_bytes = room_bytes.min(there_bytes);
            // SAFETY: the caller guarantees the pieces, and this is within both; nothing touches
            // the destination before `unfenced` is dropped.
            unsafe {
                together.copy(&mut unfenced, Piece { to, from, len_bytes });
                (to, from) = (to.add(len_bytes), from.add(len_bytes));
            }
            (room_bytes, there_bytes) = (room_bytes - len_bytes, there_bytes - len_bytes);
        }
    }
    // SAFETY: as above.
    unsafe { together.flush(&mut unfenced) }
    drop(unfenced);
    stream.finish()
}

/// In a shorter piece there are hardly any whole lines.
const LEAST_BYTES: usize = 1024;
/// The pages of the longest turn.
const MOST_PIECES: usize = 8;

/// Pieces that are too short to have turns of their own, and so wait for others to take turns with.
struct Together {
    pieces: [Piece; MOST_PIECES],
    count: usize,
}

impl Together {
    fn new() -> Together {
        let none = Piece { to: ptr::null_mut(), from: ptr::null(), len_bytes: 0 };
        Together { pieces: [none; MOST_PIECES], count: 0 }
    }

    /// Copies a piece, at once or with others.
    ///
    /// # Safety
    ///
    /// - Both sides stay valid until [`Together::flush`]; nothing touches the destination before the
    ///   stream is fenced after that.
    /// - No destination overlaps a source or another destination.
    unsafe fn copy(&mut self, stream: &mut Unfenced<'_>, piece: Piece) {
        let turns = stream.turns();
        // SAFETY: the caller guarantees the memory and the fence.
        unsafe {
            if !(LEAST_BYTES as u64..turns.group_bytes()).contains(&(piece.len_bytes as u64)) {
                stream.copy(piece.to, piece.from, piece.len_bytes);
                return;
            }
            self.pieces[self.count] = piece;
            self.count += 1;
            if self.count == turns.pages().min(MOST_PIECES) {
                self.flush(stream);
            }
        }
    }

    /// Copies what waits.
    ///
    /// # Safety
    ///
    /// The same as [`Together::copy`].
    unsafe fn flush(&mut self, stream: &mut Unfenced<'_>) {
        // SAFETY: the caller guarantees the memory and the fence.
        unsafe { stream.copy_together(&self.pieces[..self.count]) }
        self.count = 0;
    }
}
