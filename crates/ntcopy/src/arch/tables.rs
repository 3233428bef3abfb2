//! A row of either table.

use crate::fence;
use crate::path::{Method, Path, Prefetch, Turns};

/// The whole of one copy.
///
/// # Safety
///
/// - The CPU has the instructions.
/// - The destination is valid for writes and the source for reads of the length; they don't
///   overlap, except where the row says that it moves.
/// - If the method is non-temporal, the calling thread fences before any other access to the destination.
pub(crate) type CopyFn = unsafe fn(*mut u8, *const u8, usize, Path);

/// One of several copies that belong together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    pub(crate) to: *mut u8,
    pub(crate) from: *const u8,
    pub(crate) len_bytes: usize,
}

/// Several copies, 256 bytes of each in turn: what are pages of one copy elsewhere are those of
/// several here.
///
/// # Safety
///
/// The same as [`CopyFn`], for each piece; and no piece's destination overlaps another's source.
pub(crate) type CopyPiecesFn = unsafe fn(&[Piece], Path);

/// The whole of one fill.
///
/// # Safety
///
/// - The CPU has the instructions.
/// - The destination is valid for writes of the length.
/// - The value is 0 where the row fills with zeros only.
/// - If the method is non-temporal, the calling thread fences before any other access to the destination.
pub(crate) type FillFn = unsafe fn(*mut u8, u8, usize);

/// A way to copy.
#[derive(Debug)]
#[non_exhaustive]
pub struct CopyBackend {
    /// The instructions.
    pub method: Method,
    /// What `NTCOPY_ISA` calls them: `libc`, `rep`, `movnti`, `sse2`, `avx2`, `avx512`, …
    pub isa: &'static str,
    /// The ways in which it can read ahead.
    pub prefetches: &'static [Prefetch],
    pub(crate) available: fn() -> bool,
    pub(crate) copy: CopyFn,
    /// None where it can't take turns.
    pub(crate) copy_pieces: Option<CopyPiecesFn>,
}

/// A way to fill.
#[derive(Debug)]
#[non_exhaustive]
pub struct FillBackend {
    /// The instructions.
    pub method: Method,
    /// What `NTCOPY_ISA` calls them: `libc`, `rep`, `movnti`, `sse2`, `avx2`, `avx512`, …
    pub isa: &'static str,
    /// Whether it can fill with zeros only.
    pub zero_only: bool,
    pub(crate) available: fn() -> bool,
    pub(crate) fill: FillFn,
}

impl CopyBackend {
    /// [`Method::name`].
    pub fn name(&self) -> &'static str {
        self.method.name()
    }

    /// Whether this CPU has the instructions and the system saves the registers that they need.
    pub fn is_available(&self) -> bool {
        (self.available)()
    }

    /// Whether it can take pages in turn.
    pub fn takes_turns(&self) -> bool {
        self.copy_pieces.is_some()
    }

    /// Every path that it has: its methods of reading ahead, each with all turns.
    pub fn paths(&self) -> impl Iterator<Item = Path> + '_ {
        let turns = if self.takes_turns() { &Turns::ALL[..] } else { &Turns::ALL[..1] };
        self.prefetches.iter().flat_map(move |prefetch| {
            turns.iter().map(move |turns| Path {
                method: self.method,
                prefetch: *prefetch,
                turns: *turns,
            })
        })
    }

    /// The path of this backend that is nearest to what is asked for.
    pub(crate) fn nearest(&self, prefetch: Prefetch, turns: Turns) -> Path {
        let prefetch =
            if self.prefetches.contains(&prefetch) { prefetch } else { self.prefetches[0] };
        let turns = if self.takes_turns() { turns } else { Turns::NONE };
        Path { method: self.method, prefetch, turns }
    }

    /// Copies all of `source` by one of [`CopyBackend::paths`], and fences. `false`, and nothing
    /// done, where this CPU doesn't have the instructions.
    ///
    /// # Panics
    ///
    /// If the slices differ in length, or the path is not this backend's.
    #[must_use = "a backend that isn't available has done nothing"]
    pub fn copy(&self, destination: &mut [u8], source: &[u8], path: Path) -> bool {
        assert_eq!(destination.len(), source.len(), "bytes to copy to and from");
        assert_eq!(path.method, self.method, "a path of another backend");
        if !self.is_available() {
            return false;
        }
        // SAFETY: the CPU has the instructions; both slices have the length, and they don't
        // overlap, since one is borrowed for writing; the fence follows before this returns.
        unsafe { (self.copy)(destination.as_mut_ptr(), source.as_ptr(), source.len(), path) }
        if path.is_nontemporal() {
            fence();
        }
        true
    }

    /// Copies `len_bytes` by one of [`CopyBackend::paths`], unfenced.
    ///
    /// # Safety
    ///
    /// - [`CopyBackend::is_available`], and `path` is one of this backend's.
    /// - `destination` is valid for writes and `source` for reads of `len_bytes`, and they don't
    ///   overlap.
    /// - If the path is non-temporal, this thread executes [`fence`] before any other access to
    ///   the destination, its own included.
    pub unsafe fn copy_unfenced(
        &self,
        destination: *mut u8,
        source: *const u8,
        len_bytes: usize,
        path: Path,
    ) {
        debug_assert!(self.is_available() && path.method == self.method);
        // SAFETY: the caller guarantees the instructions, the memory and the fence.
        unsafe { (self.copy)(destination, source, len_bytes, path) }
    }
}

impl FillBackend {
    /// [`Method::name`].
    pub fn name(&self) -> &'static str {
        self.method.name()
    }

    /// Whether this CPU has the instructions and the system saves the registers that they need.
    pub fn is_available(&self) -> bool {
        (self.available)()
    }

    /// Whether it can fill with this value.
    pub fn can_fill_with(&self, value: u8) -> bool {
        value == 0 || !self.zero_only
    }

    /// Fills all of `destination`, and fences. `false`, and nothing done, where this CPU doesn't
    /// have the instructions or they can't store this value.
    #[must_use = "a backend that isn't available has done nothing"]
    pub fn fill(&self, destination: &mut [u8], value: u8) -> bool {
        if !self.is_available() || !self.can_fill_with(value) {
            return false;
        }
        // SAFETY: the CPU has the instructions and they can store the value; the slice has the
        // length; the fence follows before this returns.
        unsafe { (self.fill)(destination.as_mut_ptr(), value, destination.len()) }
        if self.method.is_nontemporal() {
            fence();
        }
        true
    }

    /// Fills `len_bytes`, unfenced.
    ///
    /// # Safety
    ///
    /// - [`FillBackend::is_available`] and [`FillBackend::can_fill_with`] the value.
    /// - `destination` is valid for writes of `len_bytes`.
    /// - If the method is non-temporal, this thread executes [`fence`] before any other access to
    ///   the destination, its own included.
    pub unsafe fn fill_unfenced(&self, destination: *mut u8, value: u8, len_bytes: usize) {
        debug_assert!(self.is_available() && self.can_fill_with(value));
        // SAFETY: the caller guarantees the instructions, the memory and the fence.
        unsafe { (self.fill)(destination, value, len_bytes) }
    }
}
