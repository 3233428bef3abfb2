//! A clock that a signal can stop.

use std::io;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::low_level::pipe;

/// Ticks at fixed distances from its start, so that the time the work takes does not add up.
pub struct Ticker {
    every: Duration,
    next: Instant,
    stop: UnixStream,
}

impl Ticker {
    /// Starts the clock, and takes SIGINT and SIGTERM over for the rest of the process's life.
    pub fn start(every: Duration) -> io::Result<Self> {
        let (stop, wake) = UnixStream::pair()?;
        pipe::register(SIGINT, wake.try_clone()?)?;
        pipe::register(SIGTERM, wake)?;
        Ok(Ticker { every, next: Instant::now() + every, stop })
    }

    /// Sleeps until the next tick. False if a signal came instead.
    pub fn wait(&mut self) -> io::Result<bool> {
        loop {
            let left = self.next.saturating_duration_since(Instant::now());
            let limit = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(&self.stop, PollFlags::IN)], Some(&limit)) {
                Ok(0) => break,
                Ok(_) => return Ok(false),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        // After a stop of the process, or a tick that took too long, the missed ones are left out.
        let now = Instant::now();
        self.next += self.every;
        if self.next <= now {
            self.next = now + self.every;
        }
        Ok(true)
    }
}
