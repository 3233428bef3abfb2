//! Ctrl-C and its kin, as a flag that every loop looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ntcopy_kernel::Interrupts;

use super::Failure;

/// How long something may take, and the signals that end it sooner.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    pub limit: Duration,
    pub stop: &'a Stop,
}

#[derive(Debug, Clone, Default)]
pub struct Stop {
    signal: Arc<AtomicUsize>,
    /// Keeps the process alive between guests that it boots, too.
    _interrupts: Option<Arc<Interrupts>>,
}

impl Stop {
    /// SIGINT, SIGTERM and SIGHUP set the flag instead of ending the process, for as long as it lives.
    pub fn on_signals() -> ntcopy_kernel::Result<Stop> {
        let interrupts = Interrupts::arm()?;
        Ok(Stop { signal: interrupts.flag(), _interrupts: Some(Arc::new(interrupts)) })
    }

    #[cfg(test)]
    pub(crate) fn ask(&self, signal: usize) {
        self.signal.store(signal, Ordering::Relaxed);
    }

    pub fn signal(&self) -> Option<i32> {
        match self.signal.load(Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }

    pub fn check(&self) -> Result<(), Failure> {
        self.signal().map_or(Ok(()), |signal| Err(Failure::Stopped(signal)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_between_two_guests_is_noted() {
        let stop = Stop::on_signals().unwrap();
        let guest = Interrupts::arm().unwrap();
        assert_eq!(stop.signal(), None);
        drop(guest);
        // This thread gets it, and no call of another one is interrupted.
        // SAFETY: the handler is signal-hook's, which may run at any point.
        assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
        assert_eq!(stop.signal(), Some(libc::SIGTERM));
        assert!(stop.check().is_err());
    }
}
