//! One judge: what is asked, what the cells answer, and what that comes to. What a record says, how
//! two sides of records compare, and what to set on a machine are claims of this kind.

use std::collections::BTreeSet;
use std::fmt;

use serde::Serialize;

use crate::experiments::{ASKED, IN_FLIGHT};
use crate::judged::Judged;
use crate::modes::OURS;
use crate::params::identity;
use crate::ratio::Ratio;
use crate::stats::{self, METRICS, THROUGHPUT, Tally, Use, Verdict, Versus, geomean};
use ntcopy_record::lists::unique;
use ntcopy_record::units::Bytes;
use ntcopy_record::{Cell, ExperimentKind, Kernel, Mode, Sends, number};

/// How a mode does relative to another, by a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Question<'r> {
    pub mode: &'r str,
    pub other: &'r str,
    /// Its name in [`METRICS`].
    pub metric: &'static str,
}

/// The size that a cell is about, and what has it; no bytes where a cell is about none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Size {
    pub bytes: u64,
    pub of: &'static str,
}

/// Parameters that are such sizes: the first that a cell has counts.
const SIZES: [(&str, &str); 3] =
    [("in_flight_bytes", IN_FLIGHT), ("size_bytes", "a call"), ("asked_bytes", ASKED)];

impl fmt::Display for Size {
    /// `48 MiB in flight`
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", Bytes(self.bytes), self.of)
    }
}

/// What one cell answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point<'r> {
    pub question: Question<'r>,
    pub record: &'r Judged,
    pub cell: &'r Cell,
    pub size: Size,
    pub versus: &'r Versus,
}

impl<'r> Question<'r> {
    /// What a cell answers; nothing with too few pairs.
    #[must_use]
    pub fn of(self, record: &'r Judged, cell: &'r Cell) -> Option<Point<'r>> {
        let versus = record.versus(cell.cell, self.mode, self.other, self.metric)?;
        let size = |(name, of)| Some(Size { bytes: number(&cell.params, name)?, of });
        let size = SIZES.into_iter().find_map(size).unwrap_or_default();
        Some(Point { question: self, record, cell, size, versus })
    }
}

/// What a record is asked; none where it has not the modes.
pub(crate) type Asks<'q> = &'q dyn for<'r> Fn(&'r Judged) -> Option<Question<'r>>;

/// What cells of an experiment answer, ascending by the size that each of them has. Judgeds come
/// newest first; of a cell that was measured twice, the newest counts.
pub(crate) fn of_cells<'r>(
    records: &[&'r Judged],
    experiment: &ExperimentKind,
    asks: Asks<'_>,
    is_about: &dyn Fn(&Judged, &Cell) -> bool,
) -> Vec<Point<'r>> {
    let mut seen = BTreeSet::new();
    let mut points = Vec::new();
    let ours = records.iter().filter(|record| record.header.experiment == *experiment);
    for &record in ours {
        let Some(question) = asks(record) else { continue };
        for cell in record.cells.iter().filter(|cell| is_about(record, cell)) {
            let key = identity(&cell.params);
            let point = if seen.contains(&key) { None } else { question.of(record, cell) };
            if let Some(point) = point {
                seen.insert(key);
                points.push(point);
            }
        }
    }
    points.sort_by_key(|point| point.size.bytes);
    points
}

/// Who takes the hints: each has a number of its own, and they are never counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    Kernel,
    Module,
}

impl Taker {
    /// Whether it has this mode's sends. Another series of patches is nobody's: it is only compared with.
    fn has(self, mode: &Mode) -> bool {
        match mode.kernel {
            Some(Kernel::Module) => self == Taker::Module,
            Some(Kernel::OtherPatches) => false,
            Some(Kernel::Host | Kernel::Stock | Kernel::Patched) | None => self == Taker::Kernel,
        }
    }

    /// Whose hints a record is about; the kernel's where it has both.
    fn of(record: &Judged) -> Taker {
        let modes = &record.header.modes;
        let is_hinted = |mode: &&Mode| mode.sends == Sends::Hinted;
        let is_any_hinted = modes.iter().any(|mode| is_hinted(&mode));
        let has = |taker: Taker| {
            let mut asked = modes.iter().filter(|mode| !is_any_hinted || is_hinted(mode));
            asked.any(|mode| taker.has(mode))
        };
        if has(Taker::Module) && !has(Taker::Kernel) { Taker::Module } else { Taker::Kernel }
    }
}

/// Which of a record's modes are asked about: those of one taker, and of one stack if it is said.
#[derive(Debug, Clone, Copy)]
pub struct Of<'q> {
    pub taker: Taker,
    pub stack: Option<&'q str>,
}

impl From<Taker> for Of<'_> {
    fn from(taker: Taker) -> Self {
        Of { taker, stack: None }
    }
}

impl Of<'_> {
    fn has(self, mode: &Mode) -> bool {
        self.taker.has(mode) && self.is_stack(mode)
    }

    /// Modes of a record of one stack name none.
    fn is_stack(self, mode: &Mode) -> bool {
        self.stack.zip(mode.stack.as_deref()).is_none_or(|(asked, its)| asked == its)
    }
}

/// What the hint adds: hinted sends relative to plain ones of the same kernel and stack, whatever the
/// record's baseline is.
pub fn hint<'r>(record: &'r Judged, metric: &'static str) -> Option<Question<'r>> {
    hint_of(record, Taker::of(record).into(), metric)
}

/// The same of one taker, and of one stack.
#[must_use]
pub fn hint_of<'r>(record: &'r Judged, of: Of<'_>, metric: &'static str) -> Option<Question<'r>> {
    relative_to_plain(record, Sends::Hinted, of, metric)
}

/// The first mode that sends so, relative to plain sends of the same kernel and stack.
fn relative_to_plain<'r>(
    record: &'r Judged,
    sends: Sends,
    of: Of<'_>,
    metric: &'static str,
) -> Option<Question<'r>> {
    let header = &record.header;
    let mut modes = header.modes.iter().filter(|mode| mode.sends == sends && of.has(mode));
    modes.find_map(|mode| {
        let plain = header.beside(mode, Sends::Plain)?;
        Some(Question { mode: &mode.mode, other: &plain.mode, metric })
    })
}

/// The hinted mode of a record and the plain one that it is held against.
#[must_use]
pub fn hinted_and_plain(record: &Judged) -> Option<(&str, &str)> {
    hint(record, THROUGHPUT).map(|question| (question.mode, question.other))
}

/// What the patches bring: plain sends of the patched kernel relative to those of the stock one.
fn patches<'r>(record: &'r Judged, of: Of<'_>, metric: &'static str) -> Option<Question<'r>> {
    let header = &record.header;
    let is_stock = |mode: &&Mode| mode.sends == Sends::Plain && mode.kernel == Some(Kernel::Stock);
    let stock = header.modes.iter().filter(is_stock).find(|mode| of.has(mode))?;
    let patched = header.elsewhere(stock, Kernel::Patched)?;
    Some(Question { mode: &patched.mode, other: &stock.mode, metric })
}

/// What there is to gain at all: sends that copy nothing relative to plain ones of the same kernel.
fn at_most<'r>(record: &'r Judged, of: Of<'_>, metric: &'static str) -> Option<Question<'r>> {
    relative_to_plain(record, Sends::CopiesNothing, of, metric)
}

/// Three comparisons that stand side by side and are never added up. As JSON, it is what programs
/// are told; what was not measured is null.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Parts {
    /// Plain sends of the patched kernel relative to those of the stock one.
    pub patches: Option<Claim>,
    /// Hinted sends relative to plain ones of the same kernel.
    pub hint: Option<Claim>,
    /// Sends that copy nothing relative to plain ones of the same kernel.
    pub at_most: Option<Claim>,
}

/// The three questions of a record, in this order; none of them that it has not the modes for.
#[must_use]
pub fn three<'r>(record: &'r Judged, metric: &'static str) -> [Option<Question<'r>>; 3] {
    three_of(record, Taker::of(record).into(), metric)
}

fn three_of<'r>(record: &'r Judged, of: Of<'_>, metric: &'static str) -> [Option<Question<'r>>; 3] {
    [patches(record, of, metric), hint_of(record, of, metric), at_most(record, of, metric)]
}

impl Parts {
    /// Of the cells of an experiment that this is about, by the record that has most of the three, so
    /// that they are of the same cells. None where no record has two.
    pub(crate) fn of(
        records: &[&Judged],
        experiment: &ExperimentKind,
        of: Of<'_>,
        is_about: &dyn Fn(&Judged, &Cell) -> bool,
    ) -> Option<Parts> {
        let ours = records.iter().filter(|record| record.header.experiment == *experiment);
        let parts = |record: &&Judged| {
            let claim = |question: Option<Question<'_>>| {
                let cells = record.cells.iter().filter(|cell| is_about(record, cell));
                let points = cells.filter_map(|cell| question?.of(record, cell));
                Claim::of(&points.collect::<Vec<Point<'_>>>())
            };
            let [patches, hint, at_most] = three_of(record, of, THROUGHPUT).map(claim);
            let count = [patches, hint, at_most].iter().flatten().count();
            (count, record.header.started_unix_ns, Parts { patches, hint, at_most })
        };
        let all = ours.map(parts).filter(|(count, ..)| *count > 1);
        all.max_by_key(|(count, started, _)| (*count, *started)).map(|(.., parts)| parts)
    }
}

/// Those that are figures of samples.
pub const OF_SAMPLES: &[Use] = &[Use::Judged, Use::Part];

/// Every answer of a record relative to its baseline by metrics of these uses: by cell, then mode in the
/// order of the record, then metric.
#[must_use]
pub fn results<'r>(record: &'r Judged, uses: &[Use]) -> Vec<Point<'r>> {
    let other = record.header.baseline.as_str();
    let metrics = || METRICS.iter().filter(|metric| uses.contains(&metric.used));
    let of_mode =
        |mode: &'r str| metrics().map(move |metric| Question { mode, other, metric: metric.name });
    let modes = record.modes.iter().filter(|mode| *mode != other);
    let asked: Vec<Question<'r>> = modes.flat_map(|mode| of_mode(mode)).collect();
    let of_cell = |cell| asked.iter().filter_map(move |question| question.of(record, cell));
    record.cells.iter().flat_map(of_cell).collect()
}

/// The library's own way to copy relative to the best of the others, in each cell that has enough pairs
/// of both.
#[must_use]
pub fn against_best<'r>(record: &'r Judged) -> Vec<Point<'r>> {
    let of_cell = |cell: &'r Cell| {
        let other = record.best_peer(cell.cell)?;
        Question { mode: OURS, other, metric: THROUGHPUT }.of(record, cell)
    };
    record.cells.iter().filter_map(of_cell).collect()
}

impl Point<'_> {
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.versus.verdict()
    }
}

/// What some cells claim together. As JSON, it is what programs are told.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Claim {
    /// Of one cell its own ratio, of several their geometric mean.
    #[serde(flatten)]
    pub all: Ratio,
    pub verdict: Verdict,
    pub cells: usize,
    /// The cell that gains least.
    pub least: Ratio,
    /// The cell that gains most.
    pub most: Ratio,
}

impl fmt::Display for Claim {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.all, out)
    }
}

impl Claim {
    /// None without points.
    #[must_use]
    pub fn of(points: &[Point<'_>]) -> Option<Claim> {
        Claim::over(points.iter().map(|point| point.versus))
    }

    /// None without results.
    #[must_use]
    pub fn over<'v>(all: impl IntoIterator<Item = &'v Versus>) -> Option<Claim> {
        let all: Vec<&Versus> = all.into_iter().collect();
        let by_ratio = |a: &&&Versus, b: &&&Versus| a.ratio.total_cmp(&b.ratio);
        let (least, most) = (all.iter().min_by(by_ratio)?, all.iter().max_by(by_ratio)?);
        let (least, most) = (least.result(), most.result());
        let mean = geomean(all.iter().copied())?;
        Some(Claim { all: mean, verdict: mean.verdict(), cells: all.len(), least, most })
    }
}

/// The smallest size from which on every point wins, and whether a smaller one does not; none if the
/// largest ones do not.
pub fn wins_from(points: &[Point<'_>]) -> Option<(Size, bool)> {
    let sized = |point: &Point<'_>| (point.size.bytes, point.verdict() == Verdict::Win);
    let sizes: Vec<(u64, bool)> = points.iter().map(sized).collect();
    let (bytes, is_other_below) = stats::wins_from(&sizes)?;
    Some((Size { bytes, ..points.first()?.size }, is_other_below))
}

/// The point that gains least.
pub fn least<'p, 'r>(points: &'p [Point<'r>]) -> Option<&'p Point<'r>> {
    points.iter().min_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))
}

/// The points below a size, and those from it on, of some that ascend.
pub(crate) fn split<'p, 'r>(
    points: &'p [Point<'r>],
    from_bytes: u64,
) -> (&'p [Point<'r>], &'p [Point<'r>]) {
    points.split_at(points.partition_point(|point| point.size.bytes < from_bytes))
}

pub fn tally(points: &[Point<'_>]) -> Tally {
    points.iter().map(Point::verdict).collect()
}

/// How points came out together.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outcomes {
    pub tally: Tally,
    pub worst: Option<Worst>,
}

/// The point that loses most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Worst {
    pub result: Ratio,
    pub size: Size,
}

impl Outcomes {
    #[must_use]
    pub fn of(points: &[Point<'_>]) -> Outcomes {
        let worst = lost(points).min_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio));
        let worst = worst.map(|worst| Worst { result: worst.versus.result(), size: worst.size });
        Outcomes { tally: tally(points), worst }
    }
}

/// Those that lose.
pub(crate) fn lost<'p, 'r>(points: &'p [Point<'r>]) -> impl Iterator<Item = &'p Point<'r>> {
    points.iter().filter(|point| point.verdict() == Verdict::Loss)
}

/// The ids of the points' records, each once, newest first.
pub(crate) fn ids(points: &[Point<'_>]) -> Vec<String> {
    let mut headers: Vec<_> = points.iter().map(|point| &point.record.header).collect();
    headers.sort_by_key(|header| std::cmp::Reverse(header.started_unix_ns));
    unique(headers.into_iter().map(|header| header.id.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge;
    use crate::stats::SEND_THROUGHPUT;
    use ntcopy_record::Record;
    use ntcopy_record::testing::{pairs, record};

    #[test]
    fn every_mode_but_the_baseline_has_a_result_by_each_metric_that_was_taken() {
        let of = |record: &Record| -> Vec<(String, &str)> {
            let judged = judge(record);
            let all = results(&judged, OF_SAMPLES).into_iter().map(|point| point.question);
            all.map(|asked| (asked.mode.to_owned(), asked.metric)).collect()
        };
        assert_eq!(of(&record(&["plain"], &[])), []);
        assert_eq!(of(&pairs(&["plain"], 9, &[1000])), []);
        let both = [THROUGHPUT, SEND_THROUGHPUT].map(|metric| ("hinted".to_owned(), metric));
        assert_eq!(of(&pairs(&["plain", "hinted"], 5, &[1000, 2000])), both);
    }
}
