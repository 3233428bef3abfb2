//! `alloc(buffer); for (;;) { fork(); use(buffer); }`: what copies a kernel's pages.
//!
//! One process of the two writes to the buffer, whose pages both have; the kernel gives it copies.
//! The other waits, or the kernel would see that no other process has the pages and copy nothing.

use std::time::{Duration, Instant};

use memmap2::{Advice, MmapMut};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::pipe;
use rustix::process::{Pid, WaitOptions, waitpid};

use super::{ForkCell, Use, User};
use crate::experiments::bulk::task::PAGE_BYTES;
use crate::run::{Failure, Stop, WrongByte, map, pattern};

/// What the buffer holds before anybody writes to it.
const SEED: u64 = 11;
/// Fewer forks make no sample.
const LEAST_FORKS: u64 = 5;
const WRONG: i32 = 1;

/// The buffer, and who does what with it.
pub struct ForkLoop {
    buffer: MmapMut,
    cell: ForkCell,
    /// A byte goes from the parent to a waiting child.
    read_end: OwnedFd,
    write_end: OwnedFd,
    last: Option<u8>,
    next: u8,
    stop: Stop,
}

impl ForkLoop {
    pub fn new(cell: ForkCell, stop: &Stop) -> Result<ForkLoop, Failure> {
        let mut buffer = map(cell.buffer_bytes, Advice::NoHugePage)?;
        pattern::fill(SEED, 0, &mut buffer);
        let (read_end, write_end) = pipe().map_err(Failure::os("cannot make a pipe"))?;
        let stop = stop.clone();
        Ok(ForkLoop { buffer, cell, read_end, write_end, last: None, next: 0, stop })
    }

    /// Forks until the time has passed; gives how many forks such a time takes.
    pub fn warm_up(&mut self, at_least: Duration, sample: Duration) -> Result<u64, Failure> {
        let begin = Instant::now();
        let mut forks = 0_u64;
        while forks < LEAST_FORKS || begin.elapsed() < at_least {
            self.fork(false)?;
            forks += 1;
        }
        let rate = forks as f64 / begin.elapsed().as_secs_f64().max(1e-9);
        Ok(((rate * sample.as_secs_f64()) as u64).max(LEAST_FORKS))
    }

    pub fn run(&mut self, forks: u64) -> Result<Duration, Failure> {
        let begin = Instant::now();
        for _ in 0..forks {
            self.fork(false)?;
        }
        Ok(begin.elapsed())
    }

    /// Looks at every byte that the last fork left here; then forks once more, and both processes
    /// look at every byte that they see.
    pub fn check(&mut self) -> Result<(), Failure> {
        look(&self.buffer, self.cell.usage, self.last)?;
        self.fork(true)?;
        look(&self.buffer, self.cell.usage, self.last)
    }

    /// One fork, and the use of the buffer; the child looks at its bytes if it is to.
    fn fork(&mut self, looks: bool) -> Result<(), Failure> {
        self.stop.check()?;
        self.next = self.next % 255 + 1;
        let (value, usage, before) = (self.next, self.cell.usage, self.last);
        // SAFETY: the child has this one thread. It writes to memory that is there, makes system
        // calls, and ends by _exit(): it allocates nothing and takes no lock that another thread
        // might have held.
        let child = unsafe { libc::fork() };
        match (Pid::from_raw(child), self.cell.user) {
            _ if child == -1 => Err(Failure::io("cannot fork")(std::io::Error::last_os_error())),
            (None, User::Child) => {
                write(&mut self.buffer, usage, value);
                self.leave(looks, Some(value))
            }
            (None, User::Parent) => {
                while rustix::io::read(&self.read_end, &mut [0]) == Err(Errno::INTR) {}
                self.leave(looks, before)
            }
            (Some(child), User::Child) => reap(child),
            (Some(child), User::Parent) => {
                write(&mut self.buffer, usage, value);
                self.last = Some(value);
                let sent = rustix::io::write(&self.write_end, &[0]);
                sent.map_err(Failure::os("cannot write to the pipe"))?;
                reap(child)
            }
        }
    }

    /// In the child: looks at its bytes if it is to, and ends.
    fn leave(&self, looks: bool, last: Option<u8>) -> ! {
        let is_wrong = looks && look(&self.buffer, self.cell.usage, last).is_err();
        // SAFETY: ends this process, and runs nothing of what the parent has registered.
        unsafe { libc::_exit(if is_wrong { WRONG } else { 0 }) }
    }
}

fn reap(child: Pid) -> Result<(), Failure> {
    let ended = rustix::io::retry_on_intr(|| waitpid(Some(child), WaitOptions::empty()));
    let ended = ended.map_err(Failure::os("cannot wait for a child"))?;
    match ended.and_then(|(_, status)| status.exit_status()) {
        Some(0) => Ok(()),
        Some(WRONG) => Err(Failure::WrongInChild),
        _ => Err(Failure::Answer("a forked child was killed".to_owned())),
    }
}

fn write(buffer: &mut [u8], usage: Use, value: u8) {
    match usage {
        Use::Byte => {
            for page in buffer.chunks_mut(PAGE_BYTES as usize) {
                page[0] = value;
            }
        }
        Use::All => buffer.fill(value),
    }
    std::hint::black_box(buffer);
}

/// Compares every byte with what was there and what was `last` written, if anything.
fn look(buffer: &[u8], usage: Use, last: Option<u8>) -> Result<(), Failure> {
    for (start, page) in (0..).step_by(PAGE_BYTES as usize).zip(buffer.chunks(PAGE_BYTES as usize))
    {
        // What was written stands in front, and the pattern behind it.
        let (value, written) = match (last, usage) {
            (None, _) => (0, 0),
            (Some(value), Use::Byte) => (value, 1),
            (Some(value), Use::All) => (value, page.len()),
        };
        let (front, rest) = page.split_at(written);
        let in_front = front.iter().position(|byte| *byte != value).map(|at| (at, value));
        let behind = || pattern::first_wrong(SEED, (start + written) as u64, rest);
        let behind = || behind().map(|(at, expected)| (written + at, expected));
        if let Some((at, expected)) = in_front.or_else(behind) {
            let (socket, position) = (None, (start + at) as u64);
            return Err(WrongByte { socket, position, expected, got: page[at] }.into());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_processes_see_their_own_bytes_and_notice_a_wrong_one() {
        for &user in User::ALL {
            for &usage in Use::ALL {
                let cell = ForkCell { buffer_bytes: 3 * PAGE_BYTES, user, usage };
                let mut forks = ForkLoop::new(cell, &Stop::default()).unwrap();
                forks.run(3).unwrap();
                assert_eq!(forks.last.is_some(), user == User::Parent);
                assert_eq!([forks.check(), forks.check()], [Ok(()), Ok(())], "{user} {usage}");
                if usage == Use::Byte {
                    forks.buffer[4097] ^= 0x10;
                    assert_eq!(forks.fork(true), Err(Failure::WrongInChild), "{user}");
                    let seen = forks.check().unwrap_err().to_string();
                    assert!(seen.starts_with("wrong byte at 4097 "), "{seen}");
                }
            }
        }
    }
}
