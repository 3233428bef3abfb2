//! Many pieces that are one whole.

use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;

use crate::arch::Piece;
use crate::copy::{copy_part, copy_part_unfenced, copy_part_uninit};
use crate::fill::{fill_part, fill_part_unfenced};
use crate::hint::Hints;
use crate::path::{Path, Turns};
use crate::settings::is_plain_copy;
use crate::{arch, fence, settings};

/// A transfer in pieces, each of which is treated as a part of the whole.
///
/// A program that moves a gigabyte in pieces of 64 KiB pushes a gigabyte through its caches, though
/// no single call shows it. A stream does: the [policy](crate::policy) sees the stream's total and
/// not the call's length. The total is of different bytes: pieces that go into the same small
/// buffer again and again stay in the cache, and are no stream.
///
/// ```
/// use ntcopy::{Hints, Stream};
///
/// let source = vec![42; 1 << 20];
/// let mut destination = vec![0; 1 << 20];
/// let mut stream = Stream::known(source.len() as u64, Hints::AUTO);
/// for (to, from) in destination.chunks_mut(65_536).zip(source.chunks(65_536)) {
///     stream.copy(to, from);
/// }
/// stream.finish();
/// assert_eq!(destination, source);
/// ```
#[derive(Debug)]
pub struct Stream {
    /// 0 where it grows.
    known_bytes: u64,
    done_bytes: u64,
    nontemporal_bytes: u64,
    hints: Hints,
}

impl Stream {
    /// A stream of `total_bytes`. If it turns out longer, it is as long as it gets.
    pub const fn known(total_bytes: u64, hints: Hints) -> Stream {
        Stream { known_bytes: total_bytes, done_bytes: 0, nontemporal_bytes: 0, hints }
    }

    /// A stream whose end is not known yet: it counts as long as it has become.
    pub const fn growing(hints: Hints) -> Stream {
        Stream::known(0, hints)
    }

    /// Copies the next piece, and fences where it streamed.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn copy(&mut self, destination: &mut [u8], source: &[u8]) -> Path {
        let total_bytes = self.total_with(source.len());
        let path = copy_part(destination, source, total_bytes, self.hints);
        self.count(source.len(), path)
    }

    /// [`Stream::copy`] into memory that holds nothing yet; gives it as what it holds then.
    ///
    /// # Panics
    ///
    /// If the slices differ in length.
    pub fn copy_uninit<'a>(
        &mut self,
        destination: &'a mut [MaybeUninit<u8>],
        source: &[u8],
    ) -> (&'a mut [u8], Path) {
        let total_bytes = self.total_with(source.len());
        let (copied, path) = copy_part_uninit(destination, source, total_bytes, self.hints);
        (copied, self.count(source.len(), path))
    }

    /// Fills the next piece, with the destination's hint, and fences where it streamed.
    pub fn fill(&mut self, destination: &mut [u8], value: u8) -> Path {
        let len_bytes = destination.len();
        let total_bytes = self.total_with(len_bytes);
        let path = fill_part(destination, value, total_bytes, self.hints.destination);
        self.count(len_bytes, path)
    }

    /// The next pieces without a fence after each: one that all of them share follows when what
    /// this gives is dropped.
    ///
    /// ```
    /// use ntcopy::{Hints, Stream};
    ///
    /// let source = vec![42; 1 << 20];
    /// let mut destination = vec![0; 1 << 20];
    /// let mut stream = Stream::known(source.len() as u64, Hints::NONTEMPORAL);
    /// let mut unfenced = stream.unfenced();
    /// for (to, from) in destination.chunks_mut(65_536).zip(source.chunks(65_536)) {
    ///     // SAFETY: two slices of one length; nothing looks at the destination before the drop.
    ///     unsafe { unfenced.copy(to.as_mut_ptr(), from.as_ptr(), from.len()) };
    /// }
    /// drop(unfenced);
    /// assert_eq!(destination, source);
    /// ```
    pub fn unfenced(&mut self) -> Unfenced<'_> {
        Unfenced { stream: self, is_due: false, stays_here: PhantomData }
    }

    /// Which pages pieces of this stream take in turn; none where they are copied normally.
    pub(crate) fn turns(&self) -> Turns {
        if is_plain_copy(self.known_bytes, self.hints) {
            return Turns::NONE;
        }
        let policy = settings::policy();
        let turns = policy.turns;
        let group = policy.choose_copy(turns.group_bytes() as usize, self.known_bytes, self.hints);
        if group.is_nontemporal() { turns } else { Turns::NONE }
    }

    /// Ends the stream, and says how much went by.
    pub fn finish(self) -> Moved {
        self.moved()
    }

    /// What went by so far.
    pub fn moved(&self) -> Moved {
        Moved { bytes: self.done_bytes, nontemporal_bytes: self.nontemporal_bytes }
    }

    fn total_with(&self, len_bytes: usize) -> u64 {
        self.known_bytes.max(self.done_bytes.saturating_add(len_bytes as u64))
    }

    fn count(&mut self, len_bytes: usize, path: Path) -> Path {
        self.done_bytes = self.done_bytes.saturating_add(len_bytes as u64);
        if path.is_nontemporal() {
            self.nontemporal_bytes = self.nontemporal_bytes.saturating_add(len_bytes as u64);
        }
        path
    }
}

/// The pieces of a [`Stream`] that share one fence, which is made when this is dropped.
///
/// A fence orders the stores of the thread that executes it, and of no other. So this can't be
/// handed to another thread:
///
/// ```compile_fail,E0277
/// fn hand_over<T: Send>(_: T) {}
/// hand_over(ntcopy::Stream::growing(ntcopy::Hints::NONTEMPORAL).unfenced());
/// ```
pub struct Unfenced<'a> {
    stream: &'a mut Stream,
    is_due: bool,
    /// Neither `Send` nor `Sync`.
    stays_here: PhantomData<*mut ()>,
}

impl Unfenced<'_> {
    /// Copies the next piece. Where the two sides overlap, it is `memmove`.
    ///
    /// # Safety
    ///
    /// - `destination` is valid for writes and `source` for reads of `len_bytes`.
    /// - If the path [is non-temporal](Path::is_nontemporal), this is dropped, or this thread
    ///   executes [`Unfenced::fence`] or [`fence`](crate::fence()), before any other access to the
    ///   destination, by this thread too.
    pub unsafe fn copy(
        &mut self,
        destination: *mut u8,
        source: *const u8,
        len_bytes: usize,
    ) -> Path {
        let total_bytes = self.stream.total_with(len_bytes);
        let hints = self.stream.hints;
        // SAFETY: the caller guarantees the memory and the fence.
        let path =
            unsafe { copy_part_unfenced(destination, source, len_bytes, total_bytes, hints) };
        self.count(len_bytes, path)
    }

    /// Fills the next piece, with the destination's hint.
    ///
    /// # Safety
    ///
    /// - `destination` is valid for writes of `len_bytes`.
    /// - If the path [is non-temporal](Path::is_nontemporal), this is dropped, or this thread
    ///   executes [`Unfenced::fence`] or [`fence`](crate::fence()), before any other access to the
    ///   destination, by this thread too.
    pub unsafe fn fill(&mut self, destination: *mut u8, value: u8, len_bytes: usize) -> Path {
        let total_bytes = self.stream.total_with(len_bytes);
        let hint = self.stream.hints.destination;
        // SAFETY: the caller guarantees the memory and the fence.
        let path = unsafe { fill_part_unfenced(destination, value, len_bytes, total_bytes, hint) };
        self.count(len_bytes, path)
    }

    /// Copies several pieces, a part of each in turn.
    ///
    /// # Safety
    ///
    /// The same as [`Unfenced::copy`], for each; and no destination overlaps a source or another
    /// destination.
    pub(crate) unsafe fn copy_together(&mut self, pieces: &[Piece]) {
        let bytes = pieces.iter().map(|piece| piece.len_bytes).sum();
        let stream = &self.stream;
        let path = settings::policy().choose_copy(bytes, stream.total_with(bytes), stream.hints);
        let in_turn = arch::copy_backend(path.method).and_then(|backend| backend.copy_pieces);
        // SAFETY: the caller guarantees the memory and the fence; `settings` lets no policy in
        // whose methods the CPU doesn't have.
        unsafe {
            match in_turn {
                Some(copy_pieces) if pieces.len() > 1 && path.is_nontemporal() => {
                    copy_pieces(pieces, path);
                    self.count(bytes, path);
                }
                _ => pieces.iter().for_each(|piece| {
                    self.copy(piece.to, piece.from, piece.len_bytes);
                }),
            }
        }
    }

    /// [`Stream::turns`].
    pub(crate) fn turns(&self) -> Turns {
        self.stream.turns()
    }

    /// Fences, where something is unfenced.
    pub fn fence(&mut self) {
        if self.is_due {
            fence();
            self.is_due = false;
        }
    }

    fn count(&mut self, len_bytes: usize, path: Path) -> Path {
        self.is_due |= path.is_nontemporal();
        self.stream.count(len_bytes, path)
    }
}

impl Drop for Unfenced<'_> {
    fn drop(&mut self) {
        self.fence();
    }
}

impl fmt::Debug for Unfenced<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Unfenced")
            .field("stream", self.stream)
            .field("is_due", &self.is_due)
            .finish()
    }
}

/// What became of many pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Moved {
    /// All bytes.
    pub bytes: u64,
    /// Those of them that took a non-temporal path.
    pub nontemporal_bytes: u64,
}
