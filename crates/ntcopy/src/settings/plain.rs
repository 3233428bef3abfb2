//! Without a standard library there is no environment and no file: CPUID alone decides.

use core::cell::UnsafeCell;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU8, Ordering};

use crate::policy::Policy;

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
pub(super) fn policy() -> &'static Policy {
    if POLICY.state.load(Ordering::Acquire) != SET {
        set();
    }
    // SAFETY: the state is SET, so that the value is written and won't be again.
    unsafe { (*POLICY.value.get()).assume_init_ref() }
}

#[cold]
fn set() {
    let take =
        POLICY.state.compare_exchange(UNSET, BEING_SET, Ordering::Relaxed, Ordering::Relaxed);
    if take.is_ok() {
        // SAFETY: this thread alone took the state away from UNSET; no thread reads before SET.
        let policy = unsafe { (*POLICY.value.get()).write(Policy::for_cpu()) };
        super::install(policy);
        POLICY.state.store(SET, Ordering::Release);
        return;
    }
    // Another thread is at it; a few CPUIDs take microseconds.
    while POLICY.state.load(Ordering::Acquire) != SET {
        core::hint::spin_loop();
    }
}
