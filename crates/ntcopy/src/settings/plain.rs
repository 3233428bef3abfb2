//! Without a standard library there is no environment and no file: CPUID alone decides.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::policy::Policy;

/// A copy: no thread waits until there is something to refer to.
pub(crate) type InUse = Policy;

const UNSET: u8 = 0;
const BEING_SET: u8 = 1;
const SET: u8 = 2;

struct Once {
    state: AtomicU8,
    value: UnsafeCell<MaybeUninit<Policy>>,
}

// SAFETY: the value is written by the one thread that takes the state from UNSET to BEING_SET, and
// read by others only after they saw SET, which that thread stores (with release) afterwards.
unsafe impl Sync for Once {}

static POLICY: Once =
    Once { state: AtomicU8::new(UNSET), value: UnsafeCell::new(MaybeUninit::uninit()) };

/// The policy of this CPU.
#[inline]
pub(super) fn policy() -> InUse {
    if POLICY.state.load(Ordering::Acquire) != SET {
        return first_use();
    }
    // SAFETY: the state is SET, so that the value is written and won't be again.
    unsafe { (*POLICY.value.get()).assume_init() }
}

/// Who comes while another thread is at it asks CPUID, too: a child of a fork doesn't have that
/// thread, and a signal handler has interrupted it.
#[cold]
fn first_use() -> Policy {
    let policy = Policy::for_cpu();
    let take =
        POLICY.state.compare_exchange(UNSET, BEING_SET, Ordering::Relaxed, Ordering::Relaxed);
    if take.is_ok() {
        // SAFETY: this thread alone took the state away from UNSET; no thread reads before SET.
        unsafe { (*POLICY.value.get()).write(policy) };
        super::install(&policy);
        POLICY.state.store(SET, Ordering::Release);
    }
    policy
}
