//! The adaptive mode against the better of the two that it chooses between.

use serde_json::Value;

use super::bootstrap::count_by_chance;
use super::{THROUGHPUT, Versus, geomean, median, mode_median, versus};
use crate::record::{Cell, Record, Sample};

const COPY: &str = "copy";
const NT: &str = "nt";
const ADAPTIVE: &str = "adaptive";
/// The counter whose share of the bytes is the adaptive mode's decision.
const NONTEMPORAL: &str = "nontemporal_bytes";

/// What every cell is expected to reach of the better mode.
pub const AIM: f64 = 0.97;

#[derive(Debug, Clone, PartialEq)]
pub struct SweepCell<'a> {
    pub cell: &'a Cell,
    /// `nt` against `copy`.
    pub nt: Versus,
    /// `adaptive` against `copy`.
    pub adaptive: Versus,
    /// The mode with the higher median over all its samples, `copy` or `nt`.
    pub better: &'static str,
    /// `adaptive` against that mode.
    pub against_better: Versus,
    /// Part of the bytes that `adaptive` sent non-temporally, from 0 to 1; the median of its
    /// samples.
    pub nontemporal_share: f64,
    /// Part of a plain round's time that is spent in the sends, from 0 to 1.
    pub send_share: f64,
}

impl SweepCell<'_> {
    /// A number among the cell's parameters.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.cell.params.get(name).and_then(Value::as_u64)
    }

    #[must_use]
    pub fn family(&self) -> &str {
        self.cell.params.get("family").and_then(Value::as_str).unwrap_or("unix")
    }
}

/// The cells of a record in which all three modes were measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Sweep<'a> {
    /// At least two, by family, object, data set and sockets.
    pub cells: Vec<SweepCell<'a>>,
}

impl<'a> Sweep<'a> {
    /// Finds the sweep in a record; none if there is no second cell.
    ///
    /// Which mode is the better one is decided once a cell, by the medians, and the ratio is then
    /// taken against that mode in every group. Where the two are equal but for noise, the better
    /// median is a little too good, so the adaptive mode comes out a little too low: the error is
    /// on its side of the scales.
    #[must_use]
    pub fn of(record: &'a Record) -> Option<Sweep<'a>> {
        let mut cells: Vec<SweepCell<'a>> =
            record.cells.iter().filter_map(|cell| sweep_cell(record, cell)).collect();
        cells.sort_by_key(|cell| {
            let number = |name| cell.number(name).unwrap_or(0);
            let sizes = (number("object_bytes"), number("dataset_bytes"), number("sockets"));
            (cell.family().to_owned(), sizes)
        });
        (cells.len() >= 2).then_some(Sweep { cells })
    }

    /// The cell in which `adaptive` stays furthest behind the better mode.
    ///
    /// # Panics
    ///
    /// Never: there are at least two cells.
    #[must_use]
    pub fn worst(&self) -> &SweepCell<'a> {
        let ratio = |cell: &&SweepCell<'a>| cell.against_better.ratio;
        let worst = self.cells.iter().min_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        worst.expect("a sweep has at least two cells")
    }

    /// Geometric mean over the cells of `adaptive` against the better mode, with its interval.
    ///
    /// # Panics
    ///
    /// Never: there are at least two cells.
    #[must_use]
    pub fn geomean(&self) -> (f64, (f64, f64)) {
        let all = self.cells.iter().map(|cell| &cell.against_better);
        geomean(all).expect("a sweep has at least two cells")
    }

    /// How many cells stay below [`AIM`].
    #[must_use]
    pub fn below_aim(&self) -> usize {
        self.cells.iter().filter(|cell| cell.against_better.ratio < AIM).count()
    }

    /// How many would by chance alone, if `adaptive` were as good as the better mode in every
    /// cell: least and most of 95 in 100 such sweeps, as noisy as this one.
    ///
    /// That the better mode's median is a little too good is not allowed for, so this is a little
    /// too low.
    #[must_use]
    pub fn below_aim_by_chance(&self) -> (usize, usize) {
        let lists: Vec<&[f64]> =
            self.cells.iter().map(|cell| &cell.against_better.ratios[..]).collect();
        count_by_chance(&lists, AIM)
    }

    /// The cells with at least `bytes` in flight.
    pub fn beyond(&self, bytes: u64) -> impl Iterator<Item = &SweepCell<'a>> {
        self.cells.iter().filter(move |cell| {
            cell.number("in_flight_bytes").is_some_and(|in_flight| in_flight >= bytes)
        })
    }
}

fn sweep_cell<'a>(record: &'a Record, cell: &'a Cell) -> Option<SweepCell<'a>> {
    let against = |mode, other| versus(record, cell.cell, mode, other, THROUGHPUT);
    let typical = |mode| mode_median(record, cell.cell, mode, THROUGHPUT);
    let better = if typical(NT)? > typical(COPY)? { NT } else { COPY };
    let adaptive = against(ADAPTIVE, COPY)?;
    Some(SweepCell {
        cell,
        nt: against(NT, COPY)?,
        against_better: if better == COPY { adaptive.clone() } else { against(ADAPTIVE, NT)? },
        adaptive,
        better,
        nontemporal_share: median_of(record, cell.cell, ADAPTIVE, nontemporal_share)?,
        send_share: median_of(record, cell.cell, COPY, send_share)?,
    })
}

fn median_of(
    record: &Record,
    cell: u32,
    mode: &str,
    of: impl Fn(&Sample) -> Option<f64>,
) -> Option<f64> {
    let ours = record.samples.iter().filter(|s| s.cell == cell && s.mode == mode);
    let values: Vec<f64> = ours.filter_map(of).collect();
    (!values.is_empty()).then(|| median(&values))
}

/// Part of the sample's bytes that was copied non-temporally, from 0 to 1; none if it sent none.
#[must_use]
pub fn nontemporal_share(sample: &Sample) -> Option<f64> {
    let nontemporal = sample.counters.get(NONTEMPORAL).copied().unwrap_or(0);
    (sample.bytes > 0).then(|| nontemporal as f64 / sample.bytes as f64)
}

/// Part of the sample's time that was spent in the sends, from 0 to 1; none if they were not
/// clocked by themselves.
#[must_use]
pub fn send_share(sample: &Sample) -> Option<f64> {
    let send_ns = *sample.phases_ns.get("send")?;
    (sample.elapsed_ns > 0).then(|| send_ns as f64 / sample.elapsed_ns as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{Sketch, record};

    /// Cells of (copy, nt, adaptive) at these bytes per second.
    fn sketch(cells: &[[u64; 3]]) -> Record {
        let params: Vec<[(&str, u64); 2]> = (0..cells.len() as u64)
            .map(|n| [("in_flight_bytes", 32 << (20 + n)), ("sockets", 32 << n)])
            .collect();
        let params: Vec<&[(&str, u64)]> = params.iter().map(|cell| &cell[..]).collect();
        let modes = [COPY, NT, ADAPTIVE];
        let mut sketch = Sketch::of(&modes, record(&modes, &params));
        for (cell, rates) in (0..).zip(cells) {
            for pair in 0..5 {
                sketch.pair(cell, pair, rates);
            }
        }
        sketch.record()
    }

    #[test]
    fn adaptive_is_held_against_whichever_is_better() {
        let record = sketch(&[[1000, 800, 990], [1000, 1250, 1200]]);
        let sweep = Sweep::of(&record).unwrap();
        let better: Vec<&str> = sweep.cells.iter().map(|cell| cell.better).collect();
        assert_eq!(better, [COPY, NT]);
        let close = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(close(sweep.cells[0].against_better.ratio, 0.99));
        assert!(close(sweep.worst().against_better.ratio, 0.96));
        assert!(close(sweep.worst().adaptive.ratio, 1.2));
        let (mean, (low, high)) = sweep.geomean();
        assert!(close(mean, (0.99_f64 * 0.96).sqrt()) && close(low, mean) && close(high, mean));
        assert_eq!(sweep.beyond(64 << 20).count(), 1);
        assert!(close(sweep.cells[0].send_share, 0.5));
    }

    #[test]
    fn what_noise_puts_below_the_aim_is_told_from_what_is_there() {
        let record = sketch(&[[1000, 800, 960], [1000, 1250, 1200], [1000, 900, 1000]]);
        let sweep = Sweep::of(&record).unwrap();
        assert_eq!((sweep.below_aim(), sweep.below_aim_by_chance()), (2, (0, 0)));
        let mut record = record;
        for sample in record.samples.iter_mut().filter(|sample| sample.mode == ADAPTIVE) {
            sample.elapsed_ns =
                sample.elapsed_ns / 100 * [80, 120, 90, 110, 100][sample.pair as usize];
        }
        let (least, most) = Sweep::of(&record).unwrap().below_aim_by_chance();
        assert!(least == 0 && most == 3, "{least} {most}");
    }

    #[test]
    fn the_share_is_of_the_bytes() {
        let mut record = sketch(&[[1, 1, 1], [1, 1, 1]]);
        for sample in record.samples.iter_mut().filter(|sample| sample.mode == ADAPTIVE) {
            sample.counters = [(NONTEMPORAL.to_owned(), sample.bytes / 4)].into();
        }
        assert_eq!(Sweep::of(&record).unwrap().cells[0].nontemporal_share, 0.25);
    }

    #[test]
    fn a_record_without_the_three_modes_has_no_sweep() {
        assert_eq!(Sweep::of(&sketch(&[[1, 1, 1]])), None);
        let mut record = sketch(&[[1, 1, 1], [1, 1, 1]]);
        record.samples.retain(|sample| sample.mode != NT);
        assert_eq!(Sweep::of(&record), None);
    }
}
