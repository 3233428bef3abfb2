//! Scatter and gather: many slices into many slices.

use core::ops::{Deref, DerefMut};

use crate::hint::Hints;
use crate::stream::{Moved, Stream};

/// Copies the bytes of all `sources`, one after the other, into all `destinations`, one after the
/// other, until either runs out; fences; and says how much that was.
///
/// The slices on the two sides need not correspond: `IoSlice` and `IoSliceMut` of any lengths,
/// empty ones among them, or plain slices. The policy sees the sum of the bytes.
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
    let mut stream = Stream::known(room_bytes.min(there_bytes), hints);
    let mut sources = sources.iter().map(|slice| &**slice);
    let mut from: &[u8] = &[];
    'full: for destination in destinations {
        let mut to: &mut [u8] = destination;
        while !to.is_empty() {
            while from.is_empty() {
                let Some(next) = sources.next() else { break 'full };
                from = next;
            }
            let len_bytes = to.len().min(from.len());
            let (to_now, to_later) = to.split_at_mut(len_bytes);
            let (from_now, from_later) = from.split_at(len_bytes);
            // SAFETY: two slices of the length, one of them borrowed for writing; nothing touches
            // the destination again before `finish` has fenced, since it stays borrowed.
            unsafe {
                stream.copy_unfenced(to_now.as_mut_ptr(), from_now.as_ptr(), len_bytes);
            }
            (to, from) = (to_later, from_later);
        }
    }
    stream.finish()
}
