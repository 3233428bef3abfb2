//! Pipes for vmsplice, kept for the next response.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};

/// What a pipe is made to hold, if the system allows it: an object of 1 MiB in one round.
const PIPE_BYTES: usize = 1 << 20;
/// Empty pipes that are kept.
const KEPT: usize = 32;

/// Both ends of a pipe.
#[derive(Debug)]
pub struct Pipe {
    /// Where pages come out.
    pub read: OwnedFd,
    /// Where they go in.
    pub write: OwnedFd,
    /// Bytes in it.
    pub filled: usize,
}

/// Empty pipes.
#[derive(Debug, Default)]
pub struct Pipes(Vec<Pipe>);

impl Pipes {
    /// An empty pipe.
    ///
    /// # Errors
    ///
    /// Those of `pipe2(2)`.
    pub fn take(&mut self) -> Result<Pipe, Errno> {
        if let Some(pipe) = self.0.pop() {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Above fs.pipe-max-size, or the user's share of pipe memory, it keeps its 64 KiB.
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        Ok(Pipe { read, write, filled: 0 })
    }

    /// Keeps a pipe; one with bytes in it is closed, so that they reach no other client.
    pub fn put(&mut self, pipe: Pipe) {
        if pipe.filled == 0 && self.0.len() < KEPT {
            self.0.push(pipe);
        }
    }
}
