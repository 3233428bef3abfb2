//! What this process was started with and its own run-time has changed since: the program is to
//! get it as if it had been started without us.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{mem, ptr};

/// Whether SIGPIPE was ignored. Services of systemd are started so.
static IGNORES_SIGPIPE: AtomicBool = AtomicBool::new(false);

/// Runs before `main`, and before the run-time of Rust ignores SIGPIPE.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: zeros are a valid value of this structure of integers.
    let mut action: libc::sigaction = unsafe { mem::zeroed() };
    // SAFETY: nothing is set, and the old action is written to a variable of its type.
    let result = unsafe { libc::sigaction(libc::SIGPIPE, ptr::null(), &raw mut action) };
    let is_ignored = result == 0 && action.sa_sigaction == libc::SIG_IGN;
    IGNORES_SIGPIPE.store(is_ignored, Ordering::Relaxed);
}

/// Lets the program have the signals as this process got them. Rust's run-time would give it an
/// empty mask and the default action of SIGPIPE.
pub fn pass_on(command: &mut Command) -> io::Result<()> {
    // SAFETY: zeros are a valid value of this structure of integers.
    let mut mask: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: nothing is set, and the mask is written to a variable of its type.
    let error = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, ptr::null(), &raw mut mask) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let restore = move || {
        if IGNORES_SIGPIPE.load(Ordering::Relaxed) {
            // SAFETY: it can be ignored, and this function may be called after fork.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        }
        // SAFETY: the mask is a copy of one that the kernel gave; callable after fork.
        match unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const mask, ptr::null_mut()) }
        {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    };
    // SAFETY: the closure only calls functions that are safe in signal handlers.
    unsafe { command.pre_exec(restore) };
    Ok(())
}
