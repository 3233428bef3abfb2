//! What the library goes by in this process: read once, from the environment, a profile, and
//! CPUID.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::hint::{Hint, Hints};
use crate::policy::Policy;

#[cfg(feature = "std")]
mod env;
#[cfg(not(feature = "std"))]
mod plain;
#[cfg(feature = "std")]
mod read;

#[cfg(feature = "std")]
pub use self::env::{BadVariable, ISA_VARIABLE, Overrides, THRESHOLD_VARIABLE, TURNS_VARIABLE};
#[cfg(not(feature = "std"))]
use self::plain as place;
#[cfg(feature = "std")]
use self::read as place;
#[cfg(feature = "std")]
pub use self::read::{Origin, Settings, SettingsError, init};

/// [`Policy::plain_copies_below_bytes`] and its sibling of the policy in use, beside it, so that
/// the calls that would only be slowed down by a decision find out with one load. 0, which sends
/// everything to the policy, until that is read.
static PLAIN_COPIES_BELOW: AtomicU64 = AtomicU64::new(0);
static PLAIN_FILLS_BELOW: AtomicU64 = AtomicU64::new(0);

/// The policy of this process.
#[inline]
pub(crate) fn policy() -> place::InUse {
    place::policy()
}

/// What whoever reads the policy does with it.
fn install(policy: &Policy) {
    PLAIN_COPIES_BELOW.store(policy.plain_copies_below_bytes(), Ordering::Relaxed);
    PLAIN_FILLS_BELOW.store(policy.plain_fills_below_bytes(), Ordering::Relaxed);
}

/// Whether a copy surely is the C library's.
#[inline]
pub(crate) fn is_plain_copy(total_bytes: u64, hints: Hints) -> bool {
    total_bytes < PLAIN_COPIES_BELOW.load(Ordering::Relaxed)
        && !hints.is_source_cold
        && hints.source != Hint::Nontemporal
        && hints.destination != Hint::Nontemporal
}

/// Whether a fill surely is the C library's.
#[inline]
pub(crate) fn is_plain_fill(total_bytes: u64, hint: Hint) -> bool {
    total_bytes < PLAIN_FILLS_BELOW.load(Ordering::Relaxed) && hint != Hint::Nontemporal
}
