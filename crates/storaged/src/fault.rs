//! Steps at which a test can have the daemon die, or have a system call fail.
//!
//! `STORAGED_FAULT=WHAT@STEP[:N]`: `WHAT` is `kill` (SIGKILL to oneself, so that nothing is
//! cleaned up), `stall` (the thread stays there for ever, as with a disk that does not answer) or
//! the number of an errno; `STEP` is what a call of [`point`] names, or `change` for every step of a
//! PUT or a DELETE; `N` is which time it is reached, from 1, and without it every time. Obeyed where
//! debug assertions are on.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

/// What, at which step, which time.
type Fault = (String, String, Option<u64>);

static FAULT: LazyLock<Option<Fault>> = LazyLock::new(|| {
    let text = std::env::var("STORAGED_FAULT").ok()?;
    let (what, step) = text.split_once('@')?;
    let (step, time) = step.split_once(':').map_or((step, None), |(step, time)| (step, Some(time)));
    let time = time.map(|time| time.parse().expect("STORAGED_FAULT has a number last"));
    Some((what.to_owned(), step.to_owned(), time))
});
static REACHED: AtomicU64 = AtomicU64::new(0);

/// Called right before the step is taken.
#[inline]
pub fn point(step: &str) -> Result<(), Errno> {
    if !cfg!(debug_assertions) {
        return Ok(());
    }
    let Some((what, wanted, time)) = &*FAULT else { return Ok(()) };
    let is_change = step.starts_with("put.") || step.starts_with("delete.");
    if wanted != step && !(wanted == "change" && is_change) {
        return Ok(());
    }
    let reached = REACHED.fetch_add(1, Ordering::Relaxed) + 1;
    if time.is_some_and(|time| time != reached) {
        return Ok(());
    }
    match &**what {
        "stall" => loop {
            std::thread::park();
        },
        "kill" => {
            let _ = kill_process(getpid(), Signal::KILL);
            // The signal comes before the return to user space; this line is not reached.
            std::process::abort()
        }
        errno => {
            let errno = errno.parse().expect("STORAGED_FAULT begins with kill, stall or an errno");
            Err(Errno::from_raw_os_error(errno))
        }
    }
}
