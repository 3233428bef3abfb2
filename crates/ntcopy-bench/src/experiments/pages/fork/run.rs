//! `alloc(buffer); for (;;) { fork(); use(buffer); }`: what copies a kernel's pages.
//!
//! One process of the two writes to the buffer, whose pages both have; the kernel gives it copies.
//! The other waits, or the kernel would see that no other process has the pages and copy nothing.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use memmap2::{Advice, MmapMut, MmapOptions};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::pipe;
use rustix::process::{Signal, set_parent_process_death_signal};

use ntcopy_record::units::Bytes;

pub use super::knob::{check, counts, set, why_fixed};

use super::{ForkCell, Use, User};
use crate::experiment::bulk::PAGE_BYTES;
use crate::hardware::Hardware;
use crate::run::{Failure, Stop, cpus, pattern};

/// What the buffer holds before anybody writes to it.
const SEED: u64 = 11;
/// Fewer forks make no sample.
const LEAST_FORKS: u64 = 5;
/// The word for a waiting child: go, or look at your bytes first.
const GO: u8 = 0;
const LOOK: u8 = 1;
/// A child's exit status when a byte was wrong; which one is in the pipe.
const WRONG: i32 = 1;

/// The buffer, and who does what with it.
pub struct ForkLoop {
    buffer: MmapMut,
    cell: ForkCell,
    /// It goes from the parent to a waiting child; a child that found a wrong byte answers in it.
    read_end: OwnedFd,
    write_end: OwnedFd,
    last: Option<u8>,
    next: u8,
    /// DRAM traffic only: events of a process would be inherited by every fork, and be part of
    /// what is timed.
    hardware: Hardware,
    stop: Stop,
}

impl ForkLoop {
    /// Maps the buffer in small pages, fills it, and stays on the CPU.
    pub fn new(cell: ForkCell, cpu: u32, stop: &Stop) -> Result<ForkLoop, Failure> {
        cpus::pin(cpu)?;
        let doing = || format!("cannot map {}", Bytes(cell.buffer_bytes));
        let len = usize::try_from(cell.buffer_bytes)
            .map_err(|_| Failure::Limit(format!("{}: no room", doing())))?;
        let mut buffer = MmapOptions::new().len(len).map_anon().map_err(Failure::io(doing()))?;
        // A kernel without huge pages has no advice about them, and then all are small.
        let _ = buffer.advise(Advice::NoHugePage);
        pattern::fill(SEED, 0, &mut buffer);
        let (read_end, write_end) = pipe().map_err(Failure::os("cannot make a pipe"))?;
        let (hardware, stop) = (Hardware::of_machine(), stop.clone());
        Ok(ForkLoop { buffer, cell, read_end, write_end, last: None, next: 0, hardware, stop })
    }

    /// Forks until the time has passed; gives how many forks such a time takes.
    pub fn warm_up(&mut self, at_least: Duration, sample: Duration) -> Result<u64, Failure> {
        let begin = Instant::now();
        let mut forks = 0_u64;
        while forks < LEAST_FORKS || begin.elapsed() < at_least {
            self.fork(GO)?;
            forks += 1;
        }
        let rate = forks as f64 / begin.elapsed().as_secs_f64().max(1e-9);
        Ok(((rate * sample.as_secs_f64()) as u64).max(LEAST_FORKS))
    }

    /// Forks `forks` times under the clock; gives the time, and what the hardware counted.
    pub fn run(&mut self, forks: u64) -> Result<(Duration, BTreeMap<String, u64>), Failure> {
        self.hardware.start();
        let begin = Instant::now();
        for _ in 0..forks {
            self.fork(GO)?;
        }
        let elapsed = begin.elapsed();
        Ok((elapsed, self.hardware.stop()))
    }

    /// Looks at every byte that the last fork left here; then forks once more, and both processes
    /// look at every byte that they see. `spoil` makes one wrong.
    pub fn check(&mut self, spoil: bool) -> Result<(), Failure> {
        self.buffer[0] ^= u8::from(spoil);
        look(&self.buffer, self.cell.usage, self.last)?;
        self.fork(LOOK)?;
        look(&self.buffer, self.cell.usage, self.last)
    }

    /// One fork, and the use of the buffer.
    fn fork(&mut self, word: u8) -> Result<(), Failure> {
        self.stop.check()?;
        self.next = self.next % 255 + 1;
        let (value, usage, before) = (self.next, self.cell.usage, self.last);
        // SAFETY: the child has this one thread. It writes to memory that is there, makes system
        // calls, and ends by _exit(): it allocates nothing and takes no lock that another thread
        // might have held.
        let child = unsafe { libc::fork() };
        match (child, self.cell.user) {
            (-1, _) => {
                let errno = std::io::Error::last_os_error();
                Err(Failure::io("cannot fork")(errno))
            }
            (0, User::Child) => {
                write(&mut self.buffer, usage, value);
                self.leave(word, Some(value))
            }
            (0, User::Parent) => {
                let word = self.wait_for_a_word();
                self.leave(word, before)
            }
            (child, User::Child) => self.reap(child),
            (child, User::Parent) => {
                write(&mut self.buffer, usage, value);
                self.last = Some(value);
                let sent = rustix::io::write(&self.write_end, &[word]);
                sent.map_err(Failure::os("cannot write to the pipe"))?;
                self.reap(child)
            }
        }
    }

    /// In the child: waits until the parent has done its part.
    fn wait_for_a_word(&self) -> u8 {
        // The pipe stays open while this process lives; a parent that was killed closes nothing.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        let mut word = [GO];
        while rustix::io::read(&self.read_end, &mut word) == Err(Errno::INTR) {}
        word[0]
    }

    /// In the child: looks at its bytes if it is to, says which one was wrong, and ends.
    fn leave(&self, word: u8, last: Option<u8>) -> ! {
        let mut status = 0;
        let looked = if word == LOOK { look(&self.buffer, self.cell.usage, last) } else { Ok(()) };
        if let Err(Failure::WrongCopy { position, expected, got }) = looked {
            let mut answer = [0; 10];
            answer[..8].copy_from_slice(&position.to_ne_bytes());
            answer[8..].copy_from_slice(&[expected, got]);
            // The parent has said its word, so the pipe is empty and takes it all.
            let _ = rustix::io::write(&self.write_end, &answer);
            status = WRONG;
        }
        // SAFETY: ends this process, and runs nothing of what the parent has registered.
        unsafe { libc::_exit(status) }
    }

    /// In the parent: waits for the child's end.
    fn reap(&self, child: libc::pid_t) -> Result<(), Failure> {
        let mut status = 0;
        loop {
            // SAFETY: `status` is valid for a write.
            if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
                break;
            }
            let error = std::io::Error::last_os_error();
            if error.kind() != std::io::ErrorKind::Interrupted {
                return Err(Failure::io("cannot wait for a child")(error));
            }
        }
        if libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0 {
            return Ok(());
        }
        if !libc::WIFEXITED(status) || libc::WEXITSTATUS(status) != WRONG {
            return Err(Failure::Worker(format!("a forked child ended with status {status:#x}")));
        }
        let mut answer = [0; 10];
        let read = rustix::io::read(&self.read_end, &mut answer);
        read.map_err(Failure::os("cannot read from the pipe"))?;
        let [position @ .., expected, got] = answer;
        Err(Failure::WrongCopy { position: u64::from_ne_bytes(position), expected, got })
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
            let position = (start + at) as u64;
            return Err(Failure::WrongCopy { position, expected, got: page[at] });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looped(user: User, usage: Use) -> ForkLoop {
        let cell = ForkCell { buffer_bytes: 3 * PAGE_BYTES, user, usage };
        let cpu = cpus::cpus().unwrap().allowed[0];
        ForkLoop::new(cell, cpu, &Stop::default()).unwrap()
    }

    #[test]
    fn both_processes_see_their_own_bytes_after_every_kind_of_fork() {
        for user in User::ALL.iter().copied() {
            for usage in Use::ALL.iter().copied() {
                let mut forks = looped(user, usage);
                forks.run(3).unwrap();
                assert_eq!(forks.last.is_some(), user == User::Parent);
                assert_eq!(forks.check(false), Ok(()), "{user} {usage}");
                assert_eq!(forks.check(false), Ok(()), "{user} {usage}");
            }
        }
    }

    #[test]
    fn a_wrong_byte_is_noticed_here_and_in_the_child() {
        for user in User::ALL.iter().copied() {
            let mut forks = looped(user, Use::Byte);
            forks.run(1).unwrap();
            let spoiled = forks.check(true);
            assert!(matches!(spoiled, Err(Failure::WrongCopy { position: 0, .. })), "{spoiled:?}");
            // One that only the child looks at.
            let mut forks = looped(user, Use::Byte);
            forks.buffer[4097] ^= 0x10;
            let seen = forks.fork(LOOK);
            assert!(matches!(seen, Err(Failure::WrongCopy { position: 4097, .. })), "{seen:?}");
        }
    }
}
