//! Ctrl-C and its kin, while there is something to clear away.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::{Context, Error, Result};

/// While one of these lives, SIGINT, SIGTERM and SIGHUP do not end the process: they are noted,
/// and its descriptor becomes readable. Without one the signals do again what they did before.
#[derive(Debug)]
pub struct Interrupts {
    wake: UnixStream,
    signal: Arc<AtomicUsize>,
    ids: Vec<SigId>,
}

/// How many [`Interrupts`] live, and the flag that lets signal-hook act by default when none does.
/// signal-hook never takes a handler away again, so without this a signal would be lost for ever.
struct Armed {
    count: Mutex<usize>,
    idle: Arc<AtomicBool>,
}

fn armed() -> io::Result<&'static Armed> {
    static ARMED: OnceLock<Armed> = OnceLock::new();
    if let Some(armed) = ARMED.get() {
        return Ok(armed);
    }
    let armed = Armed { count: Mutex::new(0), idle: Arc::new(AtomicBool::new(true)) };
    for signal in signals() {
        signal_hook::flag::register_conditional_default(signal, Arc::clone(&armed.idle))?;
    }
    Ok(ARMED.get_or_init(|| armed))
}

/// SIGHUP stays out where it is ignored, as under nohup(1).
fn signals() -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0);
    let is_ignored = |signal: i32| ignored & (1 << (signal - 1)) != 0;
    [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|&s| s != SIGHUP || !is_ignored(s)).collect()
}

impl Interrupts {
    /// Takes the signals over.
    pub fn arm() -> Result<Self> {
        Self::take().doing("taking over", "Ctrl-C")
    }

    fn take() -> io::Result<Self> {
        let armed = armed()?;
        let (wake, sender) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let signal = Arc::new(AtomicUsize::new(0));
        let mut ids = Vec::new();
        for number in signals() {
            let flag = Arc::clone(&signal);
            ids.push(signal_hook::flag::register_usize(number, flag, number as usize)?);
            ids.push(signal_hook::low_level::pipe::register(number, sender.try_clone()?)?);
        }
        let mut count = armed.count.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        *count += 1;
        armed.idle.store(false, Ordering::SeqCst);
        Ok(Self { wake, signal, ids })
    }

    /// The signal that came, if one did.
    pub(crate) fn signal(&self) -> Option<i32> {
        let mut sink = [0; 64];
        while matches!((&self.wake).read(&mut sink), Ok(n) if n > 0) {}
        match self.signal.load(Ordering::SeqCst) {
            0 => None,
            signal => Some(signal as i32),
        }
    }

    /// The number of the signal that came, or 0.
    pub fn flag(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.signal)
    }

    /// An error once a signal came.
    pub fn check(&self) -> Result<()> {
        self.signal().map_or(Ok(()), |signal| Err(Error::Interrupted(signal)))
    }

    /// Readable when a signal came.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Interrupts {
    fn drop(&mut self) {
        if let Ok(armed) = armed() {
            let mut count = armed.count.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            *count -= 1;
            armed.idle.store(*count == 0, Ordering::SeqCst);
        }
        for id in self.ids.drain(..) {
            signal_hook::low_level::unregister(id);
        }
    }
}
