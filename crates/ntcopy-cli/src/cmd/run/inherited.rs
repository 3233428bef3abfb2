//! What this process was started with and its own run-time has changed since: the program is to
//! get it as if it had been started without us.

use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{mem, ptr};

use rustix::io::{FdFlags, fcntl_getfd};

use super::HintOptions;
use crate::cmd::set::hold;
use crate::cmd::set::setter::Numbers;
use crate::cmd::set::tree;
use crate::cmd::set::way::Way;

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

/// Sets the sockets that the program is started with, as a service is by systemd: no library sees
/// them being made. One that has a number already keeps it.
pub fn set_sockets(how: &HintOptions) -> io::Result<()> {
    let mut way_and_numbers = None;
    for (number, _) in tree::sockets(std::process::id())? {
        // SAFETY: it was open just now, and this process has no other thread that might close it.
        let socket = unsafe { BorrowedFd::borrow_raw(number) };
        let is_passed_on = fcntl_getfd(socket).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC));
        let kind = if is_passed_on { hold::kind(socket)? } else { None };
        let Some(kind) = kind.filter(|kind| how.families.contains(&kind.family)) else { continue };
        let (way, numbers) = match &way_and_numbers {
            Some(both) => both,
            None => {
                let way = Way::here().map_err(io::Error::other)?;
                let numbers = Numbers::taken(&way, how.min_bytes)?;
                way_and_numbers.insert((way, numbers))
            }
        };
        if let Some(bytes) = numbers.of(way, kind)
            && way.number(socket)? == 0
        {
            way.set(socket, bytes)?;
        }
    }
    Ok(())
}
