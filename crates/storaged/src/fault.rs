//! Steps at which a test can have the daemon die, or have a system call fail.
//!
//! `STORAGED_FAULT=WHAT@STEP[:N]`: `WHAT` is `kill` (SIGKILL to oneself, so that nothing is
//! cleaned up), `stall` (the thread stays there for ever, as with a disk that does not answer) or
//! one of the errno names in [`Errors`](ERRORS), `STEP` a name out of [`Step::ALL`], `change` for
//! every step of a PUT or a DELETE, or `any`, and `N` which time it is reached, from 1; an errno
//! without `N` comes every time, and so does a stall.
//! Obeyed where debug assertions are on or the feature `fault-points` is; elsewhere the variable
//! is an error, since a test that sets it would otherwise pass for nothing.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::io::Errno;

pub const VARIABLE: &str = "STORAGED_FAULT";

/// Whether this build obeys [`VARIABLE`].
pub const OBEYED: bool = cfg!(any(debug_assertions, feature = "fault-points"));

/// The errors that can be asked for.
pub const ERRORS: [(&str, Errno); 5] = [
    ("EIO", Errno::IO),
    ("ENOSPC", Errno::NOSPC),
    ("EDQUOT", Errno::DQUOT),
    ("EMFILE", Errno::MFILE),
    ("EACCES", Errno::ACCESS),
];

macro_rules! steps {
    ($($(#[$doc:meta])* $step:ident = $name:literal,)*) => {
        /// What is about to be done.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Step { $($(#[$doc])* $step,)* }

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
    /// PUT: create the temporary file.
    PutCreate = "put.create",
    /// PUT: reserve room for a body whose length is known.
    PutReserve = "put.reserve",
    /// PUT: write a block of the body.
    PutWrite = "put.write",
    /// PUT: write checksums and the rest of what follows the body.
    PutTrailer = "put.trailer",
    /// PUT: make the file durable.
    PutSyncFile = "put.sync_file",
    /// PUT: make a folder on the way to the object.
    PutMakeFolder = "put.make_folder",
    /// PUT: make that folder's name durable.
    PutSyncParent = "put.sync_parent",
    /// PUT: give the object its name.
    PutRename = "put.rename",
    /// PUT: make the name durable.
    PutSyncFolder = "put.sync_folder",
    /// PUT: all done, not yet answered.
    PutAnswer = "put.answer",
    /// DELETE: take the name away.
    DeleteUnlink = "delete.unlink",
    /// DELETE: make that durable.
    DeleteSyncFolder = "delete.sync_folder",
    /// DELETE: all done, not yet answered.
    DeleteAnswer = "delete.answer",
    /// GET: open the file.
    GetOpen = "get.open",
    /// GET: read it, to compare checksums.
    GetRead = "get.read",
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    Any,
    Change,
    Step(Step),
}

impl Place {
    fn parse(name: &str) -> Option<Place> {
        match name {
            "any" => Some(Place::Any),
            "change" => Some(Place::Change),
            name => Step::ALL.iter().find(|step| step.name() == name).copied().map(Place::Step),
        }
    }

    fn has(self, step: Step) -> bool {
        match self {
            Place::Any => true,
            Place::Change => !matches!(step, Step::GetOpen | Step::GetRead),
            Place::Step(one) => one == step,
        }
    }
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
    place: Place,
    /// `None`: every time.
    time: Option<u64>,
}

impl Fault {
    fn parse(text: &str) -> Result<Fault, String> {
        let bad = |why: &str| format!("{VARIABLE}={text}: {why}");
        let (what, place) = text.split_once('@').ok_or_else(|| bad("expected WHAT@STEP[:N]"))?;
        let errno = ERRORS.iter().find(|(name, _)| *name == what).map(|(_, errno)| *errno);
        let what = match (what, errno) {
            ("kill", _) => What::Kill,
            ("stall", _) => What::Stall,
            (_, Some(errno)) => What::Fail(errno),
            _ => return Err(bad("WHAT is neither 'kill', 'stall' nor a known errno")),
        };
        let (name, time) = match place.split_once(':') {
            Some((name, time)) => {
                let time = time.parse().ok().filter(|time| *time > 0);
                (name, Some(time.ok_or_else(|| bad("N is not a number from 1"))?))
            }
            None => (place, None),
        };
        let place = Place::parse(name).ok_or_else(|| bad("no such step"))?;
        Ok(Fault { what, place, time })
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
        Ok(text) => Some(Fault::parse(&text)?),
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
    match FAULT.get() {
        Some(Some(fault)) if fault.place.has(step) => obey(*fault),
        _ => Ok(()),
    }
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
        let kill = |place, time| Ok(Fault { what: What::Kill, place, time });
        assert_eq!(Fault::parse("kill@put.rename"), kill(Place::Step(Step::PutRename), None));
        assert_eq!(Fault::parse("kill@any:7"), kill(Place::Any, Some(7)));
        assert_eq!(Fault::parse("kill@change:7"), kill(Place::Change, Some(7)));
        let place = Place::Step(Step::GetRead);
        let error = Fault { what: What::Fail(Errno::IO), place, time: Some(2) };
        assert_eq!(Fault::parse("EIO@get.read:2"), Ok(error));
        let stall = Fault { what: What::Stall, place, time: None };
        assert_eq!(Fault::parse("stall@get.read"), Ok(stall));
        for bad in ["", "kill", "kill@", "kill@put", "EFOO@any", "kill@any:0", "kill@any:x"] {
            assert!(Fault::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn every_step_has_a_name_of_its_own() {
        for (at, step) in Step::ALL.iter().enumerate() {
            assert!(Step::ALL[at + 1..].iter().all(|other| other.name() != step.name()));
        }
    }
}
