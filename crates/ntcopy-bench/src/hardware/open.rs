//! Opening counters and reading them: the only place that asks the kernel.

use std::fs;
use std::hint::black_box;
use std::io;

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
    /// Whether what the thread starts is counted, too.
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

    pub fn attempt(&self) -> Result<(), Absent> {
        self.open().map(drop).map_err(|error| refused(&error))
    }

    /// Opens it, and sees whether a million additions make it move: the counters of some
    /// hypervisors open and stand still.
    pub fn attempt_to_count(&self) -> Result<(), Absent> {
        let counted = || -> io::Result<u64> {
            let mut counter = self.open()?;
            counter.enable()?;
            black_box((0..1_000_000u64).fold(0, |sum: u64, term| black_box(sum ^ term)));
            counter.disable()?;
            counter.read()
        };
        match counted() {
            Ok(0) => Err(Absent::Silent),
            Ok(_) => Ok(()),
            Err(error) => Err(refused(&error)),
        }
    }
}

/// Why an event does not count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absent {
    /// It was opened, but stood at zero after a million additions: some hypervisors do that.
    Silent,
    /// It could not be opened.
    Refused(Errno),
}

impl Absent {
    /// What that means, in plain words.
    pub fn meaning(&self) -> String {
        let Absent::Refused(errno) = self else {
            return "opens, but does not count (a hypervisor's empty counter)".to_owned();
        };
        match *errno {
            Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV | Errno::NXIO => {
                "not offered by this CPU or its hypervisor".to_owned()
            }
            Errno::ACCESS | Errno::PERM => {
                let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
                    .map_or_else(|_| "?".to_owned(), |level| level.trim().to_owned());
                format!("not allowed (kernel.perf_event_paranoid is {level}; or run as root)")
            }
            Errno::NOSYS => "this kernel has no performance events".to_owned(),
            other => format!("refused: {}", io::Error::from(other)),
        }
    }
}

fn refused(error: &io::Error) -> Absent {
    Absent::Refused(Errno::from_io_error(error).unwrap_or(Errno::IO))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_say_what_to_make_of_them() {
        let meaning = |errno| Absent::Refused(errno).meaning();
        assert!(meaning(Errno::NOENT).contains("hypervisor"));
        assert!(meaning(Errno::ACCESS).contains("perf_event_paranoid"));
        assert!(meaning(Errno::NOSYS).contains("no performance events"));
        assert!(meaning(Errno::MFILE).contains(&io::Error::from(Errno::MFILE).to_string()));
    }
}
