//! Pipes for splices, pooled. A pipe counts what is in it, and one that still holds bytes is
//! closed, never pooled: they belong to one client and must not reach another.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with};

/// A pipe and the count of the bytes in it.
#[derive(Debug)]
pub struct Pipe {
    pub(crate) read: OwnedFd,
    pub(crate) write: OwnedFd,
    /// Bytes that went in and did not come out yet.
    pub(crate) held: usize,
    /// Bytes that fit if they come in whole pages; fewer do if they come in crumbs.
    pub(crate) capacity: usize,
}

impl Pipe {
    /// A pipe of `wanted` bytes, or of what can be had: an unprivileged user gets at most
    /// `/proc/sys/fs/pipe-max-size` each, and less still once all of this user's pipes together
    /// reach `pipe-user-pages-soft`.
    fn new(wanted: usize) -> Result<Pipe, Errno> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let standing = fcntl_getpipe_size(&write)?;
        let mut size = wanted;
        while size > standing && fcntl_setpipe_size(&write, size).is_err() {
            size /= 2;
        }
        let capacity = fcntl_getpipe_size(&write)?;
        Ok(Pipe { read, write, held: 0, capacity })
    }

    /// Bytes that went in and did not come out yet.
    pub fn held(&self) -> usize {
        self.held
    }
}

/// The pipes of a worker.
#[derive(Debug)]
pub struct Pool {
    idle: Vec<Pipe>,
    /// Idle and lent.
    open: usize,
    /// What `open` may reach.
    limit: usize,
    pipe_bytes: usize,
}

impl Pool {
    /// A pool of at most `limit` pipes of `pipe_bytes` each.
    pub fn new(limit: usize, pipe_bytes: usize) -> Pool {
        Pool { idle: Vec::new(), open: 0, limit, pipe_bytes }
    }

    /// An empty pipe; `None` if the limit is reached or the system has none left: the caller then
    /// copies.
    pub fn take(&mut self) -> Option<Pipe> {
        if let Some(pipe) = self.idle.pop() {
            return Some(pipe);
        }
        if self.open >= self.limit {
            return None;
        }
        let pipe = Pipe::new(self.pipe_bytes).ok()?;
        self.open += 1;
        Some(pipe)
    }

    /// Takes a pipe back; it is closed if it still holds bytes.
    pub fn put(&mut self, pipe: Pipe) {
        if pipe.held == 0 {
            self.idle.push(pipe);
        } else {
            self.open -= 1;
        }
    }

    /// Pipes that are open, idle ones included.
    pub fn open(&self) -> usize {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_pipe_is_used_again_and_a_full_one_never() {
        let mut pool = Pool::new(1, 64 << 10);
        let mut pipe = pool.take().unwrap();
        assert!(pool.take().is_none(), "the limit is one");
        rustix::io::write(&pipe.write, b"secret").unwrap();
        pipe.held = 6;
        pool.put(pipe);
        assert_eq!(pool.open(), 0);
        let pipe = pool.take().unwrap();
        assert_eq!(rustix::io::read(&pipe.read, &mut [0; 8]), Err(Errno::AGAIN));
        pool.put(pipe);
        assert_eq!((pool.open(), pool.idle.len()), (1, 1));
    }

    #[test]
    fn a_pipe_that_is_too_large_to_be_had_is_smaller() {
        let pipe = Pipe::new(1 << 40).unwrap();
        assert!(pipe.capacity >= 4096 && pipe.capacity < 1 << 40, "{}", pipe.capacity);
    }
}
