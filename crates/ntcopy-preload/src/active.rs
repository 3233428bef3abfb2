//! Whether this library does anything, and from which size on.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Larger than any send: inactive. Until the constructor has run, too.
const NEVER: usize = usize::MAX;

static MIN_BYTES: AtomicUsize = AtomicUsize::new(NEVER);

/// The smallest send, in bytes, that is hinted. No send reaches it while inactive.
#[inline(always)]
pub fn min_bytes() -> usize {
    MIN_BYTES.load(Relaxed)
}

/// Whether anything can be hinted at all.
#[inline(always)]
pub fn is_active() -> bool {
    min_bytes() != NEVER
}

/// Sends of at least this number of bytes are hinted from now on.
pub fn activate(min_bytes: usize) {
    MIN_BYTES.store(min_bytes.clamp(1, NEVER - 1), Relaxed);
}

/// Every call goes to its original from now on, unchanged.
pub fn deactivate() {
    MIN_BYTES.store(NEVER, Relaxed);
}
