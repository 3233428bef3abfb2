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
    /// Median nanoseconds until the share had settled. A repetition in which it had not before the
    /// phase ended counts as long as its phase, which is less than it would have taken.
    pub settled_ns: f64,
    /// 95 % interval of that median.
    pub ci: (f64, f64),
    /// The longest that it took where it settled; 0 if it never did.
    pub longest_ns: f64,
    /// Median part of the bytes after that which went the other way, from 0 to 1: what the kernel
    /// spent on trying, or on changing its mind.
    pub astray: f64,
    /// Repetitions in which it had not settled when the phase ended.
    pub unsettled: usize,
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

/// Where a phase ended up: the share of the bytes in the last quarter of its time. None without
/// windows.
#[must_use]
pub fn end_share(windows: &[Window]) -> Option<f64> {
    let end_ns = windows.last()?.at_ns;
    let late: Vec<&Window> =
        windows.iter().filter(|window| window.at_ns > end_ns / 4 * 3).collect();
    let of = |bytes: fn(&&Window) -> u64| late.iter().map(bytes).sum();
    Some(share(of(|window| window.nontemporal_bytes), of(|window| window.bytes)))
}

/// How a phase got to a share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settled {
    /// When it first got there, in nanoseconds: the beginning of [`IN_A_ROW`] windows in a row
    /// that are no further away than [`TOLERANCE`].
    pub at_ns: u64,
    /// Part of the bytes after that which went the other way.
    pub astray: f64,
}

/// When a phase got to a share; none if it ended before that.
#[must_use]
pub fn settled(windows: &[Window], at: f64) -> Option<Settled> {
    let is_there = |window: &Window| (window.share() - at).abs() <= TOLERANCE;
    let first = windows.windows(IN_A_ROW).position(|some| some.iter().all(is_there))?;
    let at_ns = first.checked_sub(1).map_or(0, |before| windows[before].at_ns);
    let after = &windows[first..];
    let bytes: u64 = after.iter().map(|window| window.bytes).sum();
    let off: f64 = after.iter().map(|w| (w.share() - at.round()).abs() * w.bytes as f64).sum();
    let astray = if bytes == 0 { 0.0 } else { off / bytes as f64 };
    Some(Settled { at_ns, astray })
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

/// Where a phase ends up is for all repetitions to say: by its own end, one that was never followed
/// would have been there from the beginning.
fn one(samples: &[Vec<Window>], number: usize, sockets: u64) -> Option<Phase> {
    let of_phase = |windows: &Vec<Window>| -> Vec<Window> {
        windows.iter().filter(|window| window.phase == number).copied().collect()
    };
    let ours: Vec<Vec<Window>> = samples.iter().map(of_phase).collect();
    let shares: Vec<f64> = ours.iter().map(|windows| end_share(windows)).collect::<Option<_>>()?;
    let share = median(&shares);
    let settled: Vec<Option<Settled>> = ours.iter().map(|all| settled(all, share)).collect();
    let ends = ours.iter().filter_map(|windows| windows.last()).map(|window| window.at_ns);
    let times: Vec<f64> = settled
        .iter()
        .zip(ends)
        .map(|(settled, end_ns)| settled.map_or(end_ns, |settled| settled.at_ns) as f64)
        .collect();
    let there: Vec<Settled> = settled.iter().copied().flatten().collect();
    let astray: Vec<f64> = there.iter().map(|settled| settled.astray).collect();
    Some(Phase {
        number,
        sockets,
        share,
        settled_ns: median(&times),
        ci: interval(&times),
        longest_ns: there.iter().map(|settled| settled.at_ns).max().unwrap_or(0) as f64,
        astray: if astray.is_empty() { 0.0 } else { median(&astray) },
        unsettled: times.len() - there.len(),
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
        let steps = |shares: &[u64]| {
            let windows: Vec<Window> =
                (1..).zip(shares).map(|(n, percent)| window(5 * n, *percent)).collect();
            let share = end_share(&windows).unwrap();
            (share, settled(&windows, share))
        };
        let at_ns = |shares: &[u64]| steps(shares).1.map(|settled| settled.at_ns);
        let settled_at = |at_ns| Some(Settled { at_ns, astray: 0.0 });
        assert_eq!(steps(&[0, 40, 100, 100, 100, 100]), (1.0, settled_at(10_000_000)));
        // An excursion after that is astray; one that comes before three in a row delays.
        let (share, tried) = steps(&[0, 100, 100, 100, 100, 100, 60, 100, 100, 100]);
        let tried = tried.unwrap();
        assert_eq!((tried.at_ns, share), (5_000_000, 1.0));
        assert!((tried.astray - 0.4 / 9.0).abs() < 1e-9, "{tried:?}");
        assert_eq!(at_ns(&[0, 100, 0, 100, 100, 100, 100]), Some(15_000_000));
        assert_eq!(at_ns(&[3, 0, 0, 0]), Some(0));
        assert_eq!(at_ns(&[0, 100, 0, 100]), None, "never");
        assert_eq!(end_share(&[]), None);
    }

    #[test]
    fn phases_are_medians_over_repetitions() {
        let record = sketch([10, 20, 10, 10, 60]);
        let phases = phases(&record, &record.cells[0]);
        let sockets: Vec<u64> = phases.iter().map(|phase| phase.sockets).collect();
        assert_eq!(sockets, [1, 128, 1]);
        assert_eq!((phases[1].settled_ns, phases[1].longest_ns), (10e6, 60e6));
        assert_eq!(phases[1].unsettled, 0);
        assert_eq!((phases[0].share, phases[1].share, phases[2].share), (0.0, 1.0, 0.0));
        assert_eq!(phases[2].settled_ns, 0.0);
    }

    #[test]
    fn what_was_never_followed_has_not_settled() {
        let record = sketch([10, 20, 10, 1000, 95]);
        let phase = &phases(&record, &record.cells[0])[1];
        assert_eq!((phase.share, phase.unsettled, phase.repetitions), (1.0, 2, 5));
        assert_eq!((phase.settled_ns, phase.longest_ns), (20e6, 20e6));
        assert_eq!(phase.ci.1, 100e6, "as long as the phase");
    }

    #[test]
    fn where_most_stay_is_where_a_phase_ends_up() {
        let record = sketch([1000, 1000, 1000, 10, 10]);
        let phase = &phases(&record, &record.cells[0])[1];
        assert_eq!((phase.share, phase.settled_ns, phase.unsettled), (0.0, 0.0, 2));
    }
}
