//! Steps at which a test can have the daemon die, or have a system call fail.
//!
//! `STORAGED_FAULT=WHAT@STEP[:N]`: `WHAT` is `kill` (SIGKILL to oneself, so that nothing is
//! cleaned up), `stall` (the thread stays there for ever, as with a disk that does not answer) or
//! the name of an errno in `ERRORS`; `STEP` is what a call of [`point`] names, or `change` for
//! every step of a PUT or a DELETE; `N` is which time it is reached, from 1, and without it every
//! time. Obeyed where debug assertions are on or the feature `fault-points` is; elsewhere the
//! variable is an error, since a test that sets it would otherwise pass for nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;
use rustix::process::{Signal, getpid, kill_process};

pub const VARIABLE: &str = "STORAGED_FAULT";

/// Whether this build obeys [`VARIABLE`].
pub const OBEYED: bool = cfg!(any(debug_assertions, feature = "fault-points"));

const ERRORS: [(&str, Errno); 4] = [
    ("EIO", Errno::IO),
    ("ENOSPC", Errno::NOSPC),
    ("EDQUOT", Errno::DQUOT),
    ("EMFILE", Errno::MFILE),
];

#[derive(Debug, Clone, Copy)]
enum What {
    Kill,
    Stall,
    Fail(Errno),
}

#[derive(Debug)]
struct Fault {
    what: What,
    step: String,
    /// `None`: every time.
    time: Option<u64>,
}

impl Fault {
    fn parse(text: &str) -> Option<Fault> {
        let (what, step) = text.split_once('@')?;
        let what = match what {
            "kill" => What::Kill,
            "stall" => What::Stall,
            name => What::Fail(ERRORS.iter().find(|(one, _)| *one == name)?.1),
        };
        let (step, time) = match step.split_once(':') {
            Some((step, time)) => (step, Some(time.parse().ok()?)),
            None => (step, None),
        };
        Some(Fault { what, step: step.to_owned(), time })
    }
}

static FAULT: OnceLock<Option<Fault>> = OnceLock::new();
static REACHED: AtomicU64 = AtomicU64::new(0);

pub fn init() -> Result<(), String> {
    let fault = match std::env::var(VARIABLE) {
        Err(std::env::VarError::NotPresent) => None,
        Err(error) => return Err(format!("{VARIABLE}: {error}")),
        Ok(_) if !OBEYED => {
            return Err(format!(
                "{VARIABLE} is set, but this build has no fault points: unset it, or build with \
                 --features fault-points"
            ));
        }
        Ok(text) => {
            let bad = || format!("{VARIABLE}={text}: expected WHAT@STEP[:N]");
            Some(Fault::parse(&text).ok_or_else(bad)?)
        }
    };
    let _ = FAULT.set(fault);
    Ok(())
}

/// Called right before the step is taken.
#[inline]
pub fn point(step: &str) -> Result<(), Errno> {
    if !OBEYED {
        return Ok(());
    }
    let Some(Some(fault)) = FAULT.get() else { return Ok(()) };
    let is_change = step.starts_with("put.") || step.starts_with("delete.");
    if fault.step == step || (fault.step == "change" && is_change) { obey(fault) } else { Ok(()) }
}

fn obey(fault: &Fault) -> Result<(), Errno> {
    let reached = REACHED.fetch_add(1, Ordering::Relaxed) + 1;
    if fault.time.is_some_and(|time| time != reached) {
        return Ok(());
    }
    match fault.what {
        What::Fail(errno) => Err(errno),
        What::Stall => loop {
            std::thread::park();
        },
        What::Kill => {
            let _ = kill_process(getpid(), Signal::KILL);
            // The signal comes before the return to user space; this line is not reached.
            std::process::abort()
        }
    }
}
