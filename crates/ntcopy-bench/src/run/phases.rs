//! The clocked form whose traffic changes: one socket, many, one again.

use std::collections::BTreeMap;
use std::time::Duration;

use ntcopy::uapi;

use super::clock::Stopwatch;
use super::form::drain_order;
use super::{Clocked, Failure, Rig, counters};
use crate::experiment::Mode;

/// What happened window by window, in columns of equal length.
#[derive(Default)]
struct Windows {
    /// Number of the phase, from 0.
    phase: Vec<u64>,
    /// End of the window: nanoseconds since the phase began.
    at_ns: Vec<u64>,
    /// Payload bytes sent in it.
    bytes: Vec<u64>,
    /// How many of them were copied non-temporally.
    nontemporal_bytes: Vec<u64>,
}

/// The window that is being filled.
struct Open {
    since_ns: u64,
    bytes: u64,
    nontemporal_before: u64,
}

impl Rig {
    /// One run through the three phases.
    pub(super) fn phases(
        &mut self,
        mode: Mode,
        phase: Duration,
        window: Duration,
    ) -> Result<Clocked, Failure> {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut windows = Windows::default();
        let mut phases_ns = BTreeMap::new();
        let (mut bytes, mut elapsed_ns) = (0, 0);
        for (number, sockets) in (0..).zip([1, self.sockets.len(), 1]) {
            let clock = Stopwatch::start();
            let mut open = Open::at(0)?;
            while clock.ns() < nanos(phase) {
                self.stop.check()?;
                for socket in 0..sockets {
                    self.send_next(socket, mode)?;
                    open.bytes += self.cell.object_bytes;
                    let now = clock.ns();
                    if now - open.since_ns >= nanos(window) {
                        bytes += windows.close(number, &open, now)?;
                        open = Open::at(clock.ns())?;
                    }
                }
                self.drain(&drain_order(sockets, self.cell.object_bytes), sockets)?;
            }
            let now = clock.ns();
            if open.bytes > 0 {
                bytes += windows.close(number, &open, now)?;
            }
            phases_ns.insert(format!("phase_{number}"), now);
            elapsed_ns += now;
        }
        let counters = BTreeMap::new();
        Ok(Clocked { bytes, elapsed_ns, phases_ns, counters, series: windows.series() })
    }
}

impl Open {
    fn at(since_ns: u64) -> Result<Open, Failure> {
        Ok(Open { since_ns, bytes: 0, nontemporal_before: nontemporal_bytes()? })
    }
}

impl Windows {
    /// Adds the window, and gives the bytes in it.
    fn close(&mut self, phase: u64, open: &Open, now_ns: u64) -> Result<u64, Failure> {
        self.phase.push(phase);
        self.at_ns.push(now_ns);
        self.bytes.push(open.bytes);
        self.nontemporal_bytes.push(nontemporal_bytes()? - open.nontemporal_before);
        Ok(open.bytes)
    }

    fn series(self) -> BTreeMap<String, Vec<u64>> {
        let columns = [
            ("phase", self.phase),
            ("at_ns", self.at_ns),
            ("bytes", self.bytes),
            (uapi::STAT_NONTEMPORAL, self.nontemporal_bytes),
        ];
        columns.map(|(name, column)| (name.to_owned(), column)).into()
    }
}

fn nontemporal_bytes() -> Result<u64, Failure> {
    counters::read()?
        .map(|counters| counters.get(uapi::STAT_NONTEMPORAL))
        .ok_or_else(|| Failure::Counters(format!("this kernel has no {}", uapi::STAT_PATH)))
}
