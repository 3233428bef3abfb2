//! The one clock of peers that are slow, whichever way the bytes go.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use rustix::fd::{AsFd, AsRawFd};
use tokio::time::{Instant, timeout_at};

/// What must move in each time: a byte now and then is no progress.
pub const LEAST_BYTES: u64 = 16 << 10;
/// How many such times what a peer took before may cover: its system tells that it reads only once
/// much of a buffer is free, which at 2 KB/s may take minutes.
const SPARE_TIMES: u64 = 8;

/// The peer is too slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimedOut;

/// A peer that has to move `LEAST_BYTES` in each time.
#[derive(Debug)]
pub struct Pace {
    patience: Duration,
    pub until: Instant,
    /// Bytes since the time began.
    moved: u64,
    /// Bytes that the peer had taken when that was last looked at.
    taken: u64,
    /// Times that are covered by what it took before.
    spare: u64,
}

impl Pace {
    pub fn new(patience: Duration) -> Pace {
        Pace { patience, until: Instant::now() + patience, moved: 0, taken: 0, spare: 0 }
    }

    pub fn again(&mut self) {
        self.moved = 0;
        self.until = Instant::now() + self.patience;
    }

    /// So many bytes came from it, or went into its socket.
    pub fn moved(&mut self, bytes: u64) {
        self.moved += bytes;
        if self.moved >= LEAST_BYTES {
            self.again();
        }
    }

    /// Waits as long as its time lasts.
    pub async fn within<T>(&self, wait: impl Future<Output = T>) -> Result<T, TimedOut> {
        timeout_at(self.until, wait).await.map_err(|_| TimedOut)
    }

    /// Waits for room in its socket, of which it was sent `sent` bytes: also beyond its time, as
    /// long as the kernel says that it takes enough. That there is room is heard only once a good
    /// part of the socket is free.
    pub async fn drained<T>(
        &mut self,
        socket: impl AsFd,
        sent: u64,
        wait: impl Future<Output = T>,
    ) -> Result<T, TimedOut> {
        let mut wait = pin!(wait);
        loop {
            if let Ok(done) = timeout_at(self.until, wait.as_mut()).await {
                return Ok(done);
            }
            self.take(sent.saturating_sub(unacknowledged(&socket)))?;
            self.again();
        }
    }

    /// That it took this number of bytes in all is enough for another time.
    pub fn take(&mut self, taken: u64) -> Result<(), TimedOut> {
        let since = taken.saturating_sub(self.taken);
        self.taken = taken;
        self.spare = (self.spare + since / LEAST_BYTES).min(SPARE_TIMES);
        self.spare = self.spare.checked_sub(1).ok_or(TimedOut)?;
        Ok(())
    }
}

/// Bytes that were sent and that the peer has not read or acknowledged, as the kernel counts them.
pub fn unacknowledged(socket: impl AsFd) -> u64 {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which is TIOCOUTQ, writes one int to the pointer; the descriptor is open.
    let asked = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    u64::try_from(bytes).ok().filter(|_| asked == 0).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_took_much_may_rest_a_while() {
        let mut pace = Pace::new(Duration::ZERO);
        assert_eq!(pace.take(LEAST_BYTES - 1), Err(TimedOut));
        assert_eq!(pace.take(3 * LEAST_BYTES), Ok(()));
        assert_eq!(pace.take(3 * LEAST_BYTES), Ok(()));
        assert_eq!(pace.take(3 * LEAST_BYTES), Err(TimedOut));
        assert_eq!(pace.take(1000 * LEAST_BYTES), Ok(()));
        assert_eq!(pace.spare, SPARE_TIMES - 1);
    }
}
