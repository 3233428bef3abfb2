//! Steps at which a test can have the daemon die, or have a system call fail.
//!
//! `STORAGED_FAULT=WHAT@STEP[:N]`: `WHAT` is `kill` (SIGKILL to oneself, so that nothing is
//! cleaned up), `stall` (the thread stays there for ever, as with a disk that does not answer) or
//! the name of an errno in [`ERRORS`]; `STEP` is a name out of [`Step::ALL`], or `change` for every
//! step of a PUT or a DELETE; `N` is which time it is reached, from 1, and without it every time.
//! Obeyed where debug assertions are on or the feature `fault-points` is; elsewhere the variable
//! is an error, since a test that sets it would otherwise pass for nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

pub const VARIABLE: &str = "STORAGED_FAULT";

/// Whether this build obeys [`VARIABLE`].
pub const OBEYED: bool = cfg!(any(debug_assertions, feature = "fault-points"));

/// The errors that can be asked for.
pub const ERRORS: [(&str, Errno); 4] = [
    ("EIO", Errno::IO),
    ("ENOSPC", Errno::NOSPC),
    ("EDQUOT", Errno::DQUOT),
    ("EMFILE", Errno::MFILE),
];

macro_rules! steps {
    ($($step:ident = $name:literal,)*) => {
        /// What is about to be done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Step { $($step,)* }

        impl Step {
            pub const ALL: &[Step] = &[$(Step::$step,)*];

            /// Its name in [`VARIABLE`].
            pub const fn name(self) -> &'static str {
                match self { $(Step::$step => $name,)* }
            }
        }
    };
}

steps! {
    PutCreate = "put.create",
    PutWrite = "put.write",
    PutSyncFile = "put.sync_file",
    PutSyncFolder = "put.sync_folder",
    PutCommit = "put.commit",
    PutAnswer = "put.answer",
    DeleteCommit = "delete.commit",
    DeleteAnswer = "delete.answer",
    GetOpen = "get.open",
    List = "list",
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum What {
    Kill,
    Stall,
    Fail(Errno),
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Fault {
    what: What,
    /// `None`: every step of a change.
    step: Option<Step>,
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
        let (name, time) = match step.split_once(':') {
            Some((name, time)) => (name, Some(time.parse().ok().filter(|time| *time > 0)?)),
            None => (step, None),
        };
        let step = match name {
            "change" => None,
            name => Some(*Step::ALL.iter().find(|step| step.name() == name)?),
        };
        Some(Fault { what, step, time })
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
            let bad = || format!("{VARIABLE}={text}: no such step; expected WHAT@STEP[:N]");
            Some(Fault::parse(&text).ok_or_else(bad)?)
        }
    };
    let _ = FAULT.set(fault);
    Ok(())
}

/// Called right before the step is taken.
#[inline]
pub fn point(step: Step) -> Result<(), Errno> {
    if !OBEYED {
        return Ok(());
    }
    let Some(Some(fault)) = FAULT.get() else { return Ok(()) };
    let is_change = !matches!(step, Step::GetOpen | Step::List);
    if fault.step.map_or(is_change, |one| one == step) { obey(*fault) } else { Ok(()) }
}

fn obey(fault: Fault) -> Result<(), Errno> {
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
            let _ = rustix::process::kill_process(
                rustix::process::getpid(),
                rustix::process::Signal::KILL,
            );
            // The signal comes before the return to user space; this line is not reached.
            std::process::abort()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_what_they_mean() {
        let fault = |what, step, time| Some(Fault { what, step, time });
        let commit = Some(Step::PutCommit);
        assert_eq!(Fault::parse("kill@put.commit"), fault(What::Kill, commit, None));
        assert_eq!(Fault::parse("kill@change:7"), fault(What::Kill, None, Some(7)));
        let error = What::Fail(Errno::IO);
        assert_eq!(Fault::parse("EIO@get.open:2"), fault(error, Some(Step::GetOpen), Some(2)));
        for bad in ["", "kill", "kill@", "kill@put", "EFOO@list", "kill@list:0", "kill@list:x"] {
            assert_eq!(Fault::parse(bad), None, "{bad:?}");
        }
    }
}
