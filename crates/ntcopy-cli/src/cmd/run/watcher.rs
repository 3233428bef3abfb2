//! `--stat`: a process beside the program, which says what was counted once the program has ended.
//!
//! `ntcopy run` becomes the program with `--stat`, too. So whoever signals the process, its group or
//! its control group reaches the program once, whoever waits for it sees its stops and its end, and
//! nothing has to be passed on.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::{mem, ptr};

use anyhow::Context;
use ntcopy::socket::{self, Counters};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, setsid};

/// The watcher waits at the other end. It is closed where this process becomes the program.
pub struct Watcher(UnixStream);

impl Watcher {
    /// Starts it, or says why there is none.
    pub fn start() -> Result<Watcher, String> {
        let program = getpid();
        if program.is_init() {
            return Err("no process outlives the first one".to_owned());
        }
        let before = socket::counters().map_err(|error| error.to_string())?;
        let (mut ours, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
        // SAFETY: this process has no thread but this one, whose locks and memory the child has
        // whole; it runs nothing that is to run at the end of a process.
        let child = unsafe { libc::fork() };
        if child == 0 {
            drop(ours);
            // What is no child of the program is nothing that it can wait for.
            if setsid().is_ok()
                // SAFETY: as above.
                && unsafe { libc::fork() } == 0
                && let Err(error) = watch(program, theirs, before.as_ref())
            {
                let _ = writeln!(io::stderr(), "ntcopy: --stat: {error:#}");
            }
            // SAFETY: it ends this process, and touches nothing of it.
            unsafe { libc::_exit(0) }
        }
        drop(theirs);
        let is_ready = ours.read_exact(&mut [0]);
        if child != -1 {
            reap(child);
        }
        is_ready.map_err(|_| "no process can be started that watches the program".to_owned())?;
        Ok(Watcher(ours))
    }

    /// Sends it away: there is no program.
    pub fn dismiss(mut self) {
        // One that has ended says nothing, either.
        let _ = self.0.write_all(b"-");
    }
}

/// Waits for the end of a child, and leaves nothing of it behind for the program.
fn reap(child: libc::pid_t) {
    // Where SIGCHLD is ignored this waits all the same, and fails then.
    // SAFETY: a null pointer asks for no status.
    while unsafe { libc::waitpid(child, ptr::null_mut(), 0) } == -1
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    // Where it is blocked, it waits to be delivered.
    // SAFETY: zeros are a valid value of these structures of integers.
    let (mut signals, now): (libc::sigset_t, libc::timespec) = unsafe { mem::zeroed() };
    // SAFETY: all of them are variables of their types; a null pointer asks for no details.
    unsafe {
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, libc::SIGCHLD);
        libc::sigtimedwait(&raw const signals, ptr::null_mut(), &raw const now);
    }
}

fn watch(program: Pid, mut stream: UnixStream, before: Option<&Counters>) -> anyhow::Result<()> {
    let ended = pidfd_open(program, PidfdFlags::empty()).context("cannot watch the program")?;
    detach(&ended, &stream).context("cannot let go of what is the program's")?;
    stream.write_all(b"+")?;
    if stream.read(&mut [0])? > 0 {
        return Ok(());
    }
    // No signal interrupts this: all are blocked.
    poll(&mut [PollFd::new(&ended, PollFlags::IN)], None).context("cannot watch the program")?;
    let said = match (before, socket::counters()?) {
        (Some(before), Some(after)) => {
            let totals = super::super::stat::totals_since(before, &after)?;
            format!("ntcopy: meanwhile, in this network namespace:\n{totals}")
        }
        _ => "ntcopy: this kernel counts nothing: it does not know MSG_NTCOPY\n".to_owned(),
    };
    // A reader of the program's errors that is gone wants no report.
    let _ = io::stderr().write_all(said.as_bytes());
    Ok(())
}

/// Keeps standard error and these two, and else nothing that somebody may wait for: no other
/// descriptor, no folder, no signal.
fn detach(ended: &OwnedFd, stream: &UnixStream) -> io::Result<()> {
    // SAFETY: zeros are a valid value of this structure of integers, which is then filled.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut());
    }
    std::env::set_current_dir("/")?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    for standard in [libc::STDIN_FILENO, libc::STDOUT_FILENO] {
        // SAFETY: the call takes numbers only. What it replaces, the standard library never closes.
        if unsafe { libc::dup2(nothing.as_raw_fd(), standard) } == -1 {
            return Err(io::Error::last_os_error());
        }
    }
    mem::forget(nothing);
    let mut kept = [libc::STDERR_FILENO, ended.as_raw_fd(), stream.as_raw_fd()];
    kept.sort_unstable();
    for (above, below) in [(kept[0], kept[1]), (kept[1], kept[2]), (kept[2], i32::MAX)] {
        let (first, last) = (above + 1, below - 1);
        if first <= last {
            // SAFETY: the call takes numbers only. Nothing of this process uses what it closes.
            unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
        }
    }
    Ok(())
}
