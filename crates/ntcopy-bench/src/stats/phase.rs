//! How soon the adaptive mode follows when the traffic changes.

use super::{MIN_PAIRS, interval, median};
use crate::record::{Cell, Record, Sample};

/// How far the share of a window may be from where its phase ends up: shares go from 0 to 1.
pub const TOLERANCE: f64 = 0.10;
/// So many windows in a row have to be there for the phase to have settled.
pub const IN_A_ROW: usize = 3;

/// One phase, over all repetitions.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its number in the run, from 0. The first is no change: the run before ended like it.
    pub number: usize,
    /// Sockets in flight.
    pub sockets: u64,
    /// Median share of non-temporal bytes in its last quarter, from 0 to 1.
    pub share: f64,
    /// Median nanoseconds until the share had settled.
    pub settled_ns: f64,
    /// 95 % interval of that median.
    pub ci: (f64, f64),
    /// The longest that it took.
    pub longest_ns: f64,
    /// Median part of the bytes after that which went the other way, from 0 to 1: what the kernel
    /// spent on trying, or on changing its mind.
    pub astray: f64,
    /// Repetitions.
    pub repetitions: usize,
}

/// One window of a sample.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Number of its phase.
    pub phase: usize,
    /// Its end, in nanoseconds since the phase began.
    pub at_ns: u64,
    /// Bytes sent in it.
    pub bytes: u64,
    /// How many of them were copied non-temporally.
    pub nontemporal_bytes: u64,
}

impl Window {
    /// Part of the bytes that was copied non-temporally, from 0 to 1.
    #[must_use]
    pub fn share(&self) -> f64 {
        share(self.nontemporal_bytes, self.bytes)
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// The windows of a sample, in order; empty if it has none.
#[must_use]
pub fn windows(sample: &Sample) -> Vec<Window> {
    let column = |name: &str| sample.series.get(name).map_or(&[][..], Vec::as_slice);
    let numbers = column("phase").iter().zip(column("at_ns"));
    let bytes = column("bytes").iter().zip(column("nontemporal_bytes"));
    let window =
        |((&phase, &at_ns), (&bytes, &nontemporal_bytes)): ((&u64, &u64), (&u64, &u64))| {
            let phase = usize::try_from(phase).unwrap_or(usize::MAX);
            Window { phase, at_ns, bytes, nontemporal_bytes }
        };
    numbers.zip(bytes).map(window).collect()
}

/// What became of a phase.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settled {
    /// Where it ended up: the share of the bytes in the last quarter of its time.
    pub share: f64,
    /// When it first got there: the beginning of [`IN_A_ROW`] windows in a row that are no further
    /// away than [`TOLERANCE`]; its end if there are none.
    pub at_ns: u64,
    /// Part of the bytes after that which went the other way.
    pub astray: f64,
}

/// Where a phase ended up, and when it got there; none without windows.
#[must_use]
pub fn settled(windows: &[Window]) -> Option<Settled> {
    let end_ns = windows.last()?.at_ns;
    let late: Vec<&Window> =
        windows.iter().filter(|window| window.at_ns > end_ns / 4 * 3).collect();
    let of = |bytes: fn(&&Window) -> u64| late.iter().map(bytes).sum();
    let share = share(of(|window| window.nontemporal_bytes), of(|window| window.bytes));
    let is_there = |window: &Window| (window.share() - share).abs() <= TOLERANCE;
    let first = windows.windows(IN_A_ROW).position(|some| some.iter().all(is_there));
    let at_ns = match first {
        Some(0) => 0,
        Some(first) => windows[first - 1].at_ns,
        None => end_ns,
    };
    let after = &windows[first.unwrap_or(windows.len())..];
    let bytes: u64 = after.iter().map(|window| window.bytes).sum();
    let off: f64 = after.iter().map(|w| (w.share() - share.round()).abs() * w.bytes as f64).sum();
    let astray = if bytes == 0 { 0.0 } else { off / bytes as f64 };
    Some(Settled { share, at_ns, astray })
}

/// The phases of a cell, in order. Fewer than [`MIN_PAIRS`] repetitions make none.
#[must_use]
pub fn phases(record: &Record, cell: &Cell) -> Vec<Phase> {
    let samples: Vec<Vec<Window>> = record
        .samples
        .iter()
        .filter(|sample| sample.cell == cell.cell)
        .map(windows)
        .filter(|windows| !windows.is_empty())
        .collect();
    if samples.len() < MIN_PAIRS {
        return vec![];
    }
    let many = cell.params.get("sockets").and_then(serde_json::Value::as_u64).unwrap_or(0);
    let sockets = [1, many, 1];
    (0..).zip(sockets).filter_map(|(number, sockets)| one(&samples, number, sockets)).collect()
}

fn one(samples: &[Vec<Window>], number: usize, sockets: u64) -> Option<Phase> {
    let (mut shares, mut times, mut astray) = (Vec::new(), Vec::new(), Vec::new());
    for windows in samples {
        let ours: Vec<Window> = windows.iter().filter(|w| w.phase == number).copied().collect();
        let settled = settled(&ours)?;
        shares.push(settled.share);
        times.push(settled.at_ns as f64);
        astray.push(settled.astray);
    }
    Some(Phase {
        number,
        sockets,
        share: median(&shares),
        settled_ns: median(&times),
        ci: interval(&times),
        longest_ns: times.iter().copied().fold(0.0, f64::max),
        astray: median(&astray),
        repetitions: times.len(),
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::testing::{Sketch, record};

    fn window(at_ms: u64, percent: u64) -> Window {
        Window { phase: 0, at_ns: at_ms * 1_000_000, bytes: 100, nontemporal_bytes: percent }
    }

    /// Five repetitions, each of which takes so many milliseconds to follow to 128 sockets.
    pub(crate) fn sketch(settle_ms: [u64; 5]) -> Record {
        let modes = ["adaptive"];
        let mut sketch = Sketch::of(&modes, record(&modes, &[&[("sockets", 128)]]));
        for pair in 0..5 {
            sketch.pair(0, pair, &[1000]);
        }
        let mut record = sketch.record();
        record.header.experiment = "phase".to_owned();
        for (sample, settle) in record.samples.iter_mut().zip(settle_ms) {
            let mut columns: [Vec<u64>; 4] = Default::default();
            for phase in 0..3 {
                for at in (5..=100).step_by(5) {
                    let share = if phase == 1 && at > settle { 100 } else { 0 };
                    for (column, value) in
                        columns.iter_mut().zip([phase, at * 1_000_000, 100, share])
                    {
                        column.push(value);
                    }
                }
            }
            let names = ["phase", "at_ns", "bytes", "nontemporal_bytes"].map(str::to_owned);
            sample.series = names.into_iter().zip(columns).collect();
        }
        record
    }

    #[test]
    fn a_phase_has_settled_when_it_stays_for_three_windows() {
        let steps = |shares: &[u64]| -> Settled {
            let windows = (1..).zip(shares).map(|(n, percent)| window(5 * n, *percent));
            settled(&windows.collect::<Vec<_>>()).unwrap()
        };
        let rising = steps(&[0, 40, 100, 100, 100, 100]);
        assert_eq!((rising.share, rising.at_ns, rising.astray), (1.0, 10_000_000, 0.0));
        // An excursion after that is astray; one that comes before three in a row delays.
        let tried = steps(&[0, 100, 100, 100, 100, 100, 60, 100, 100, 100]);
        assert_eq!((tried.at_ns, tried.share), (5_000_000, 1.0));
        assert!((tried.astray - 0.4 / 9.0).abs() < 1e-9, "{tried:?}");
        assert_eq!(steps(&[0, 100, 0, 100, 100, 100, 100]).at_ns, 15_000_000);
        assert_eq!(steps(&[3, 0, 0, 0]).at_ns, 0);
        assert_eq!(steps(&[0, 100, 0, 100]).at_ns, 20_000_000, "never");
        assert_eq!(settled(&[]), None);
    }

    #[test]
    fn phases_are_medians_over_repetitions() {
        let record = sketch([10, 20, 10, 10, 60]);
        let phases = phases(&record, &record.cells[0]);
        let sockets: Vec<u64> = phases.iter().map(|phase| phase.sockets).collect();
        assert_eq!(sockets, [1, 128, 1]);
        assert_eq!((phases[1].settled_ns, phases[1].longest_ns), (10e6, 60e6));
        assert_eq!((phases[0].share, phases[1].share, phases[2].share), (0.0, 1.0, 0.0));
        assert_eq!(phases[2].settled_ns, 0.0);
    }
}
