//! Pipes, pooled, and the splices into them and out of them: the only place that splices from one
//! socket to another.
//!
//! A pipe counts what is in it, and one that still holds bytes is closed, never pooled: they belong
//! to one client and must not reach another.
//!
//! Both ends are non-blocking, and EAGAIN is an error like any other. It has two readings, of which
//! the pipe's count tells the right one: see both functions.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::io::{Errno, retry_on_intr};
use rustix::pipe::{
    PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
};

/// Below this a pipe takes more calls than the copy that it spares is worth; it is also what a pipe
/// has that was never made to grow.
const USEFUL_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub struct Pipe {
    read: OwnedFd,
    pub write: OwnedFd,
    /// Bytes that went in and did not come out yet.
    pub held: usize,
    /// Bytes that fit if they come in whole pages; fewer do if they come in crumbs.
    pub capacity: usize,
}

impl Pipe {
    /// A pipe of `wanted` bytes, or of what can be had: an unprivileged user gets at most
    /// `/proc/sys/fs/pipe-max-size` each, and less once all of this user's pipes together reach
    /// `pipe-user-pages-soft`.
    fn new(wanted: usize) -> Result<Pipe, Errno> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let standing = fcntl_getpipe_size(&write)?;
        let mut size = wanted;
        while size > standing && fcntl_setpipe_size(&write, size).is_err() {
            size /= 2;
        }
        let capacity = fcntl_getpipe_size(&write)?;
        if capacity < wanted.min(USEFUL_BYTES) {
            return Err(Errno::NOBUFS);
        }
        Ok(Pipe { read, write, held: 0, capacity })
    }
}

/// What a pipe holds where this size is not to be had. A user without privileges is bounded without
/// an error of its own.
#[must_use]
pub fn cut_to(wanted: usize) -> Option<usize> {
    let capacity = Pipe::new(wanted).map_or(0, |pipe| pipe.capacity);
    (capacity < wanted).then_some(capacity)
}

#[derive(Debug)]
pub struct Pool {
    /// The one that was used last at the end; since when each is idle.
    idle: Vec<(Pipe, Instant)>,
    /// Pipes that are open, idle ones included.
    pub open: usize,
    limit: usize,
    pipe_bytes: usize,
    /// Whether it was said that there are none of a useful size.
    is_warned: bool,
}

impl Pool {
    /// A pool of at most `limit` pipes of `pipe_bytes` each.
    pub fn new(limit: usize, pipe_bytes: usize) -> Pool {
        Pool { idle: Vec::new(), open: 0, limit, pipe_bytes, is_warned: false }
    }

    /// An empty pipe; `None` if the limit is reached or the system has none left of a useful size:
    /// the caller then copies.
    pub fn take(&mut self) -> Option<Pipe> {
        if let Some((pipe, _)) = self.idle.pop() {
            return Some(pipe);
        }
        if self.open >= self.limit {
            return None;
        }
        let pipe = Pipe::new(self.pipe_bytes).map_err(|errno| self.say(errno)).ok()?;
        self.open += 1;
        Some(pipe)
    }

    /// Once, for it may go on for long.
    fn say(&mut self, errno: Errno) {
        if errno == Errno::NOBUFS && !std::mem::replace(&mut self.is_warned, true) {
            tracing::warn!(
                open = self.open,
                "this user's pipes have used up fs.pipe-user-pages-soft: bodies are copied where \
                 none is free; raise it, or have fewer or smaller pipes"
            );
        }
    }

    /// Takes a pipe back; it is closed if it still holds bytes.
    pub fn put(&mut self, pipe: Pipe) {
        if pipe.held == 0 {
            self.idle.push((pipe, Instant::now()));
        } else {
            self.open -= 1;
        }
    }

    /// Closes pipes that have been idle for so long: this user's other processes and workers have the
    /// same allowance.
    pub fn expire(&mut self, patience: Duration) {
        let idle = self.idle.len();
        self.idle.retain(|(_, since)| since.elapsed() < patience);
        self.open -= idle - self.idle.len();
    }
}

const FLAGS: SpliceFlags = SpliceFlags::MOVE.union(SpliceFlags::NONBLOCK);

/// Splices from a socket into the pipe, at most `limit` bytes, which must not be 0; 0 is the
/// socket's end.
///
/// EAGAIN: the socket is empty, or the pipe is full. Bytes alone don't tell: a pipe is full when its
/// slots are taken, and a slot may hold a single byte. With an empty pipe the socket has nothing now;
/// with another the caller has to ask.
pub fn to_pipe(socket: impl AsFd, pipe: &mut Pipe, limit: usize) -> Result<usize, Errno> {
    debug_assert!(pipe.held < pipe.capacity && limit > 0);
    let limit = limit.min(pipe.capacity - pipe.held);
    let bytes = retry_on_intr(|| splice(&socket, None, &pipe.write, None, limit, FLAGS))?;
    pipe.held += bytes;
    Ok(bytes)
}

/// Splices from the pipe, which must hold bytes, to a socket.
///
/// EAGAIN: the socket has no room now, for the pipe's count says that it is not empty.
pub fn from_pipe(pipe: &mut Pipe, socket: impl AsFd) -> Result<usize, Errno> {
    debug_assert!(pipe.held > 0);
    let bytes = retry_on_intr(|| splice(&pipe.read, None, &socket, None, pipe.held, FLAGS))?;
    pipe.held -= bytes;
    // Writers of the pipe are all here, so it has not ended: no progress, no end.
    if bytes > 0 { Ok(bytes) } else { Err(Errno::AGAIN) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_that_is_too_large_to_be_had_is_smaller() {
        let pipe = Pipe::new(1 << 40).unwrap();
        assert!(pipe.capacity >= 4096 && pipe.capacity < 1 << 40, "{}", pipe.capacity);
        assert_eq!(cut_to(1 << 40), Some(pipe.capacity));
        assert_eq!(cut_to(4096), None);
    }

    #[test]
    fn pipes_that_nobody_needs_are_closed_those_in_use_are_not() {
        let mut pool = Pool::new(4, USEFUL_BYTES);
        let mut taken: Vec<Pipe> = std::iter::from_fn(|| pool.take()).collect();
        assert_eq!((taken.len(), pool.open), (4, 4));
        taken.drain(1..).for_each(|pipe| pool.put(pipe));
        pool.expire(Duration::from_secs(3600));
        assert_eq!(pool.open, 4, "they were used a moment ago");
        pool.expire(Duration::ZERO);
        assert_eq!((pool.open, pool.idle.len()), (1, 0));
        assert_eq!(
            std::iter::from_fn(|| pool.take()).count(),
            3,
            "others may be had in their place"
        );
    }

    /// Beyond the soft limit pipes have two pages. The kernel counts by user, and spares those who
    /// may administer it, so this thread becomes another.
    #[test]
    fn a_pipe_of_a_few_pages_is_not_had() {
        let soft = std::fs::read_to_string("/proc/sys/fs/pipe-user-pages-soft").unwrap();
        let soft_pages: usize = soft.trim().parse().unwrap();
        if soft_pages == 0 || soft_pages > 100_000 {
            eprintln!("skipped: no limit that a test could reach, {soft_pages} pages");
            return;
        }
        let limit = soft_pages * 4096 / (1 << 20) + 50;
        let nobody = || {
            // SAFETY: the call has no pointers. It is the system call itself, so it changes this
            // thread alone.
            unsafe { libc::syscall(libc::SYS_setresuid, 65_534, 65_534, 65_534) == 0 }
        };
        let work = move || {
            if !nobody() {
                return None;
            }
            let mut pool = Pool::new(limit, 1 << 20);
            let pipes: Vec<Pipe> = std::iter::from_fn(|| pool.take()).collect();
            Some((pipes.iter().map(|pipe| pipe.capacity).min(), pool.open, pool.is_warned))
        };
        let Some((least, open, said)) = std::thread::spawn(work).join().unwrap() else {
            eprintln!("skipped: another user can't be had without privilege");
            return;
        };
        assert!(least >= Some(USEFUL_BYTES), "{least:?} of {open}");
        assert!(open < limit && said, "the allowance ends: {open}");
    }
}
