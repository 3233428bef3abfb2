//! What a CPU model gains, question by question, over the sizes that were asked about.

use std::collections::BTreeMap;

use ntcopy_judge::Ratio;
use ntcopy_judge::stats::Verdict;
use serde::{Serialize, Serializer};

use super::Machine;
use super::over::{One, Over};
use crate::summary::Question;

/// One size of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Point {
    /// Bytes of a call, or in flight, or of a hot set; none of what has no size.
    pub size_bytes: Option<u64>,
    #[serde(flatten)]
    pub ratio: Over,
    /// Which side won, by the ratio's interval or what stands for it.
    #[serde(serialize_with = "word")]
    pub verdict: Verdict,
}

fn word<S: Serializer>(verdict: &Verdict, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(verdict.as_str())
}

/// One mode against another over several sizes, everything else the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Without its size.
    #[serde(flatten)]
    pub question: Question,
    /// By size, ascending. At least one.
    pub points: Vec<Point>,
    /// The smallest size from which on every size wins.
    pub wins_from_bytes: Option<u64>,
    /// The geometric mean of a machine's ratios from there on, or of all of them where there is no
    /// such size; over machines.
    pub gain: Over,
}

impl Series {
    /// The point with the least ratio.
    #[must_use]
    pub fn least(&self) -> &Point {
        let by = |a: &&Point, b: &&Point| a.ratio.median.total_cmp(&b.ratio.median);
        self.points.iter().min_by(by).unwrap_or(&self.points[0])
    }
}

/// Each machine's answer, by its place, at each size.
type BySize = BTreeMap<Option<u64>, Vec<(usize, One)>>;

/// Every series of some machines, by experiment, modes and what else was asked.
pub(super) fn all(machines: &[&Machine<'_>]) -> Vec<Series> {
    let mut found: BTreeMap<Question, BySize> = BTreeMap::new();
    for (at, machine) in machines.iter().enumerate() {
        for finding in machine.answers.values() {
            let question = Question { size_bytes: None, ..finding.question.clone() };
            let one = One { ratio: finding.ratio, low: finding.low, high: finding.high };
            let by_size = found.entry(question).or_default();
            by_size.entry(finding.question.size_bytes).or_default().push((at, one));
        }
    }
    found.into_iter().filter_map(|(question, by_size)| series(question, &by_size)).collect()
}

fn series(question: Question, by_size: &BySize) -> Option<Series> {
    let points: Vec<Point> =
        by_size.iter().filter_map(|(size, answers)| point(*size, answers)).collect();
    let winning = points.iter().rev().take_while(|point| point.verdict == Verdict::Win);
    let wins_from_bytes = winning.last().and_then(|point| point.size_bytes);
    let gain = Over::of(&means(by_size, wins_from_bytes))?;
    Some(Series { question, points, wins_from_bytes, gain })
}

fn point(size_bytes: Option<u64>, answers: &[(usize, One)]) -> Option<Point> {
    let ones: Vec<One> = answers.iter().map(|(_, one)| *one).collect();
    let ratio = Over::of(&ones)?;
    let whole = Ratio { ratio: ratio.median, ci: (ratio.low, ratio.high) };
    Some(Point { size_bytes, ratio, verdict: whole.verdict() })
}

/// Each machine's geometric mean over the sizes from one on; of its intervals' ends too, which
/// makes them too wide rather than too narrow.
fn means(by_size: &BySize, from: Option<u64>) -> Vec<One> {
    let mut by_machine: BTreeMap<usize, Vec<One>> = BTreeMap::new();
    // None is less than any size: without a size to begin at, all of them.
    for (machine, one) in by_size.range(from..).flat_map(|(_, answers)| answers) {
        by_machine.entry(*machine).or_default().push(*one);
    }
    let mean = |ones: &[One], of: fn(&One) -> f64| {
        (ones.iter().map(|one| of(one).ln()).sum::<f64>() / ones.len() as f64).exp()
    };
    let one = |ones: Vec<One>| One {
        ratio: mean(&ones, |one| one.ratio),
        low: mean(&ones, |one| one.low),
        high: mean(&ones, |one| one.high),
    };
    by_machine.into_values().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ratios: &[(u64, &[f64])]) -> Series {
        let question = Question {
            experiment: "memcpy".into(),
            mode: "ours".into(),
            baseline: "libc".into(),
            metric: "throughput".into(),
            about: String::new(),
            words: String::new(),
            size_of: String::new(),
            size_bytes: None,
        };
        let one = |ratio: f64| One { ratio, low: ratio * 0.9, high: ratio * 1.1 };
        let by_size = ratios.iter().map(|(size, ratios)| {
            let answers = ratios.iter().enumerate().map(|(machine, &ratio)| (machine, one(ratio)));
            (Some(*size), answers.collect())
        });
        series(question, &by_size.collect()).unwrap()
    }

    #[test]
    fn a_mode_wins_from_the_size_at_which_it_stays_above_one() {
        let found = of(&[
            (1 << 10, &[1.2, 1.22, 1.24, 1.21, 1.23]),
            (2 << 10, &[0.7, 0.72, 0.74, 0.71, 0.73]),
            (4 << 10, &[0.98, 1.03, 1.01, 0.99, 1.0]),
            (8 << 10, &[1.2, 1.22, 1.24, 1.21, 1.23]),
        ]);
        let verdicts: Vec<Verdict> = found.points.iter().map(|point| point.verdict).collect();
        let (win, loss) = (Verdict::Win, Verdict::Loss);
        assert_eq!(verdicts, [win, loss, Verdict::Equal, win]);
        assert_eq!(found.wins_from_bytes, Some(8 << 10));
        assert!((found.gain.median - 1.22).abs() < 1e-9, "{found:?}");
        assert!((found.least().ratio.median - 0.72).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn what_never_wins_has_no_size_and_its_gain_is_over_all() {
        let never = of(&[(1 << 10, &[0.7; 6]), (2 << 10, &[0.8; 6])]);
        assert_eq!(never.wins_from_bytes, None);
        assert!((never.gain.median - 0.56_f64.sqrt()).abs() < 1e-9, "{never:?}");
        let one = of(&[(1 << 10, &[1.05]), (2 << 10, &[1.2])]);
        assert_eq!(one.wins_from_bytes, Some(2 << 10));
        assert!((one.gain.low - 1.08).abs() < 1e-9 && (one.gain.high - 1.32).abs() < 1e-9);
    }
}
