//! A timer to the nanosecond: tokio's own are rounded up to a thousandth of a second.

use std::time::Duration;

use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::run::Failure;

/// A timer.
pub struct Timer(AsyncFd<OwnedFd>);

impl Timer {
    /// Within a runtime.
    pub fn new() -> Result<Timer, Failure> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)
            .map_err(Failure::os("cannot make a timer"))?;
        // SAFETY: the descriptor is owned by what watches it: it stays open, and the same, until
        // it is watched no more.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }
            .map_err(|error| Failure::io("cannot watch a timer")(error.into()))?;
        Ok(Timer(fd))
    }

    /// Waits so long.
    pub async fn wait(&mut self, time: Duration) -> Result<(), Failure> {
        if time.is_zero() {
            return Ok(());
        }
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let value = Timespec {
            tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: time.subsec_nanos().into(),
        };
        let once = Itimerspec { it_interval: zero, it_value: value };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)
            .map_err(Failure::os("cannot set a timer"))?;
        loop {
            let mut guard =
                self.0.readable().await.map_err(Failure::io("cannot wait for a timer"))?;
            let read = guard.try_io(|fd| {
                rustix::io::read(fd.get_ref(), &mut [0; 8]).map_err(std::io::Error::from)
            });
            match read {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => return Err(Failure::io("cannot read a timer")(error)),
                // Not yet, after all.
                Err(_) => {}
            }
        }
    }
}
