//! Ctrl-C and its kin, as a flag that every loop looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::Failure;

/// How long something may take, and the signals that end it sooner.
#[derive(Debug, Clone, Copy)]
pub struct Patience<'a> {
    pub limit: Duration,
    pub stop: &'a Stop,
}

#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicUsize>);

impl Stop {
    /// SIGINT, SIGTERM and SIGHUP set the flag from now on instead of ending the process.
    pub fn on_signals() -> std::io::Result<Stop> {
        let stop = Stop::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let number = usize::try_from(signal).unwrap_or_default();
            signal_hook::flag::register_usize(signal, Arc::clone(&stop.0), number)?;
        }
        Ok(stop)
    }

    #[cfg(test)]
    pub(crate) fn ask(&self, signal: usize) {
        self.0.store(signal, Ordering::Relaxed);
    }

    pub fn signal(&self) -> Option<i32> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            number => i32::try_from(number).ok(),
        }
    }

    pub fn check(&self) -> Result<(), Failure> {
        self.signal().map_or(Ok(()), |signal| Err(Failure::Stopped(signal)))
    }
}
