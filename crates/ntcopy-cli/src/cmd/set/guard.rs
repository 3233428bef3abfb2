//! Two processes: one works, and holds descriptors of others for microseconds; one guards it.
//!
//! Who stops `ntcopy set` (SIGSTOP, Ctrl-Z) stops the guard. The worker, which no terminal reaches,
//! does what it is at and then nothing, so no descriptor is ever held by what does not run; should
//! it be stopped itself, the guard has it go on. Who kills the guard kills the worker.

use std::ffi::c_int;
use std::os::fd::{FromRawFd as _, OwnedFd};
use std::time::Duration;
use std::{fs, io, mem, ptr};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// What ends the worker, wherever it waits.
const ENDING: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Runs `work` in a process of its own, with all signals blocked, and gives its exit code.
pub fn guarded(work: impl FnOnce(&Worker) -> u8) -> io::Result<u8> {
    let all = block_all()?;
    // Whoever started this program may ignore it, and then it would not come. Before the worker can
    // end: it takes away one that has come.
    // SAFETY: the default action is one that every process may choose.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let guard = std::process::id();
    // SAFETY: this program has no thread but this one, whose locks and memory the child has whole.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            // SAFETY: numbers alone. A terminal's signals are for the guard.
            unsafe {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::setpgid(0, 0);
            }
            let is_guarded = std::os::unix::process::parent_id() == guard;
            let code = match Worker::new(guard, &all) {
                Ok(worker) if is_guarded => work(&worker),
                _ => 1,
            };
            std::process::exit(code.into())
        }
        worker => Ok(guard_it(worker, &all)),
    }
}

fn block_all() -> io::Result<libc::sigset_t> {
    // SAFETY: zeros are a valid value of this structure of integers.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: the set is this function's own.
    let error = unsafe {
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, ptr::null_mut())
    };
    if error == 0 { Ok(all) } else { Err(io::Error::from_raw_os_error(error)) }
}

fn guard_it(worker: libc::pid_t, all: &libc::sigset_t) -> u8 {
    loop {
        let mut signal = 0;
        // SAFETY: both are of this function's types, and live.
        unsafe { libc::sigwait(all, &raw mut signal) };
        match signal {
            libc::SIGCHLD => {
                if let Some(code) = after_change(worker) {
                    return code;
                }
            }
            // What a terminal does, which stops the guard alone.
            // SAFETY: numbers alone.
            libc::SIGTSTP => unsafe {
                libc::raise(libc::SIGSTOP);
            },
            signal if ENDING.contains(&signal) => {
                // SAFETY: numbers alone; it has not been waited for, so the number is its own.
                unsafe { libc::kill(worker, signal) };
            }
            _ => {}
        }
    }
}

/// The worker's exit code, if it has ended; it goes on where it was stopped.
fn after_change(worker: libc::pid_t) -> Option<u8> {
    let mut status = 0;
    loop {
        // SAFETY: the status is written to a variable of its type.
        let found =
            unsafe { libc::waitpid(worker, &raw mut status, libc::WNOHANG | libc::WUNTRACED) };
        if found != worker {
            return None;
        }
        if libc::WIFEXITED(status) {
            return u8::try_from(libc::WEXITSTATUS(status)).ok();
        }
        if libc::WIFSIGNALED(status) {
            return Some(crate::cmd::signal_code(libc::WTERMSIG(status)));
        }
        // SAFETY: numbers alone.
        unsafe { libc::kill(worker, libc::SIGCONT) };
    }
}

/// Why a wait is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Woken {
    Time,
    /// By a signal that ends this program.
    Signal,
    /// A process that was to be watched has ended.
    Ended,
}

/// The process that works, as it sees itself.
pub struct Worker {
    guard: u32,
    signals: OwnedFd,
}

impl Worker {
    fn new(guard: u32, all: &libc::sigset_t) -> io::Result<Worker> {
        // SAFETY: the set lives as long as the call.
        let signals = unsafe { libc::signalfd(-1, all, libc::SFD_CLOEXEC) };
        if signals < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: it was just opened, and nobody else has it.
        Ok(Worker { guard, signals: unsafe { OwnedFd::from_raw_fd(signals) } })
    }

    /// Waits, with nothing held, until it is time and the guard is not stopped.
    pub fn wait(&self, time: Duration, process: Option<&OwnedFd>) -> Woken {
        loop {
            let woken = self.wait_once(time, process);
            if woken != Woken::Time || !self.is_guard_stopped() {
                return woken;
            }
        }
    }

    fn wait_once(&self, time: Duration, process: Option<&OwnedFd>) -> Woken {
        let signals = PollFd::new(&self.signals, PollFlags::IN);
        let mut all = vec![signals];
        all.extend(process.map(|process| PollFd::new(process, PollFlags::IN)));
        let time = Timespec::try_from(time).ok();
        if poll(&mut all, time.as_ref()).is_err() {
            return Woken::Time;
        }
        let is_ready = |at: usize| all.get(at).is_some_and(|one| !one.revents().is_empty());
        match (is_ready(0), is_ready(1)) {
            (true, _) if self.is_ending() => Woken::Signal,
            (_, true) => Woken::Ended,
            _ => Woken::Time,
        }
    }

    /// Takes the signals that have come, and says whether one of them ends this program.
    fn is_ending(&self) -> bool {
        let mut bytes = [0_u8; size_of::<libc::signalfd_siginfo>()];
        let read = rustix::io::read(&self.signals, &mut bytes);
        let number = bytes.first_chunk().map(|number| u32::from_ne_bytes(*number));
        read.is_ok() && number.is_some_and(|number| ENDING.contains(&number.cast_signed()))
    }

    fn is_guard_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.guard)).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('T'))
    }
}
