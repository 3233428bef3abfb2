//! Steps at which a test can have the daemon die, or have a system call fail.
//!
//! `STORAGED_FAULT=WHAT@STEP[:N[+]]`: `WHAT` is `kill` (SIGKILL to oneself, so that nothing is
//! cleaned up), `stall` (the thread stays there for ever, as with a disk that does not answer), `slow` (for some
//! milliseconds) or the number of an errno; `STEP` is what a call of [`point`] names, `change` for every step of a
//! PUT or a DELETE, or `index` for every one of the index's disk; `N` is which time it is reached, from 1, `N+` that time and all later ones;
//! without it every time. Obeyed where
//! debug assertions are on.

use std::ops::RangeInclusive;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

struct Fault {
    what: String,
    step: String,
    times: RangeInclusive<u64>,
}

static FAULT: LazyLock<Option<Fault>> = LazyLock::new(|| {
    let text = std::env::var("STORAGED_FAULT").ok()?;
    let (what, step) = text.split_once('@')?;
    let (step, time) = step.split_once(':').map_or((step, None), |(step, time)| (step, Some(time)));
    let number = |text: &str| text.parse().expect("STORAGED_FAULT has a number last");
    let times = match time.map(|time| (time, time.strip_suffix('+'))) {
        None => 1..=u64::MAX,
        Some((_, Some(first))) => number(first)..=u64::MAX,
        Some((only, None)) => number(only)..=number(only),
    };
    Some(Fault { what: what.to_owned(), step: step.to_owned(), times })
});
static REACHED: AtomicU64 = AtomicU64::new(0);

/// Called right before the step is taken.
#[inline]
pub fn point(step: &str) -> Result<(), Errno> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let Some(fault) = &*FAULT else { return Ok(()) };
    let group = match step.split_once('.') {
        Some(("put" | "delete", _)) => "change",
        Some((group, _)) => group,
        None => step,
    };
    if fault.step != step && fault.step != group {
        return Ok(());
    }
    let reached = REACHED.fetch_add(1, Ordering::Relaxed) + 1;
    if !fault.times.contains(&reached) {
        return Ok(());
    }
    // At once, and not by the log: tests look for it.
    eprintln!("a fault: {step}, {reached}");
    match &*fault.what {
        "stall" => loop {
            std::thread::park();
        },
        "slow" => {
            std::thread::sleep(Duration::from_millis(5 + reached % 4));
            Ok(())
        }
        "kill" => {
            let _ = kill_process(getpid(), Signal::KILL);
            // The signal comes before the return to user space; this line is not reached.
            std::process::abort()
        }
        errno => {
            let errno = errno.parse().expect("STORAGED_FAULT has a fault first");
            Err(Errno::from_raw_os_error(errno))
        }
    }
}
