//! Opening counters and reading them: the only place that asks the kernel.

use std::hint::black_box;
use std::io;

use ntcopy::hardware::Outcome;
use perf_event::events::Raw as RawEvent;
use perf_event::{Builder, Counter};
use rustix::io::Errno;

use super::scale::{Counted, Raw};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// `perf_event_attr.type`.
    pub kind: u32,
    /// `perf_event_attr.config`.
    pub config: u64,
    /// Of all that the thread starts as well.
    pub with_started: bool,
    /// In the kernel as well as in user space.
    pub kernel: bool,
}

impl Request {
    fn open(&self) -> io::Result<Counter> {
        let mut builder = Builder::new(RawEvent::new(self.config));
        builder.attrs_mut().type_ = self.kind;
        builder.exclude_kernel(!self.kernel).exclude_hv(!self.kernel);
        builder.inherit(self.with_started);
        builder.build()
    }

    pub fn attempt(&self) -> Result<(), Outcome> {
        self.open().map(drop).map_err(|error| refused(&error))
    }

    /// Opens it, and sees whether a million additions make it move: the counters of some
    /// hypervisors open and stand still.
    pub fn attempt_to_count(&self) -> Result<(), Outcome> {
        let counted = || -> io::Result<u64> {
            let mut counter = self.open()?;
            counter.enable()?;
            black_box((0..1_000_000u64).fold(0, |sum: u64, term| black_box(sum ^ term)));
            counter.disable()?;
            counter.read()
        };
        match counted() {
            Ok(0) => Err(Outcome::Silent),
            Ok(_) => Ok(()),
            Err(error) => Err(refused(&error)),
        }
    }
}

fn refused(error: &io::Error) -> Outcome {
    Outcome::Refused(Errno::from_io_error(error).unwrap_or(Errno::IO))
}

pub struct Opened {
    counter: Counter,
    before: Option<Raw>,
}

impl Opened {
    /// None if it cannot be had: it was seen to open before, but others may use the hardware now.
    pub fn new(request: &Request) -> Option<Opened> {
        let counter = request.open().ok()?;
        Some(Opened { counter, before: None })
    }

    pub fn start(&mut self) {
        self.before = self.read();
        if self.counter.enable().is_err() {
            self.before = None;
        }
    }

    pub fn stop(&mut self) {
        // One that cannot be stopped would go on counting what is not clocked.
        if self.counter.disable().is_err() {
            self.before = None;
        }
    }

    /// What was counted between the two; none if it never was on the hardware.
    pub fn counted(&mut self) -> Option<Counted> {
        let before = self.before.take()?;
        self.read()?.since(&before).scaled()
    }

    fn read(&mut self) -> Option<Raw> {
        let data = self.counter.read_full().ok()?;
        let nanos = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Some(Raw {
            count: data.count(),
            enabled_ns: nanos(data.time_enabled()?),
            running_ns: nanos(data.time_running()?),
        })
    }
}
