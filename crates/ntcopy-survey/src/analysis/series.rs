//! What a CPU model gains, question by question, over the sizes that were asked about.

use std::collections::BTreeMap;
use std::sync::Arc;

use ntcopy_record::stats::Verdict;

use super::fleet::Fleet;
use super::order::Over;
use crate::summary::Question;

/// What stands for an interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The 95 % interval of the median over machines.
    Machines,
    /// What the machines span, where there are too few for an interval.
    Span,
    /// The interval of the one machine's own pairs.
    Pairs,
}

impl Basis {
    /// A word for programs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Basis::Machines => "interval over machines",
            Basis::Span => "span of the machines",
            Basis::Pairs => "interval over pairs of one machine",
        }
    }
}

/// One size of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Bytes of a call, or in flight, or of a hot set; none of what has no size.
    pub size_bytes: Option<u64>,
    /// The ratio over machines.
    pub ratio: Over,
    /// What stands for its interval: low, high.
    pub bracket: (f64, f64),
    /// What that is.
    pub basis: Basis,
}

impl Point {
    /// Which side won, by what stands for an interval.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        Verdict::of(self.bracket)
    }
}

/// Where machines begin to win for good.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crossover {
    /// Over machines, in bytes: 0 where a machine wins at every size that was asked about,
    /// infinite where it does not win at the largest.
    pub bytes: Over,
    /// Machines that win at every size.
    pub always: usize,
    /// Machines that do not win at the largest size.
    pub never: usize,
}

/// One mode against another over several sizes, everything else the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The first question of it; its size says nothing.
    pub question: Arc<Question>,
    /// By size, ascending. At least one.
    pub points: Vec<Point>,
    /// Where the mode begins to win; none with a single size.
    pub crossover: Option<Crossover>,
    /// The smallest size from which on every interval lies above 1.
    pub wins_from_bytes: Option<u64>,
    /// Over machines: the geometric mean of the ratios from there on, or of all of them where
    /// there is no such size.
    pub gain: Over,
    /// The gain's interval, or what stands for it.
    pub gain_bracket: (f64, f64),
}

impl Series {
    /// What stands for intervals in it.
    #[must_use]
    pub fn basis(&self) -> Basis {
        self.points[0].basis
    }

    /// The point with the least ratio.
    #[must_use]
    pub fn least(&self) -> &Point {
        let by = |a: &&Point, b: &&Point| a.ratio.median.total_cmp(&b.ratio.median);
        self.points.iter().min_by(by).unwrap_or(&self.points[0])
    }

    /// The point with the largest.
    #[must_use]
    pub fn most(&self) -> &Point {
        let by = |a: &&Point, b: &&Point| a.ratio.median.total_cmp(&b.ratio.median);
        self.points.iter().max_by(by).unwrap_or(&self.points[0])
    }

    /// Whether anything differs anywhere.
    #[must_use]
    pub fn makes_a_difference(&self) -> bool {
        self.points.iter().any(|point| point.verdict() != Verdict::NoDifference)
    }
}

/// One machine's answer at a size: logarithms.
#[derive(Clone, Copy)]
struct At {
    machine: usize,
    log_ratio: f64,
    log_ci: (f64, f64),
}

/// The answers of some machines to a series' questions, by size.
struct Answers {
    question: Arc<Question>,
    by_size: BTreeMap<Option<u64>, Vec<At>>,
}

/// Every series of some machines, by experiment, modes and what else was asked.
#[must_use]
pub fn all(fleet: &Fleet, machines: &[usize]) -> Vec<Series> {
    let mut found: BTreeMap<Key<'_>, Answers> = BTreeMap::new();
    for machine in machines {
        for answer in &fleet.machines[*machine].answers {
            let question = &fleet.questions[answer.question as usize];
            let answers = found.entry(key(question)).or_insert_with(|| Answers {
                question: Arc::clone(question),
                by_size: BTreeMap::new(),
            });
            let (log_ratio, log_ci) = (answer.log_ratio, answer.log_ci);
            let at = At { machine: *machine, log_ratio, log_ci };
            answers.by_size.entry(question.size_bytes).or_default().push(at);
        }
    }
    found.into_values().filter_map(series).collect()
}

/// Experiment, mode, baseline, metric, and what else was asked.
type Key<'q> = (&'q str, &'q str, &'q str, &'q str, &'q str);

/// What questions of one series have in common.
fn key(question: &Question) -> Key<'_> {
    let Question { experiment, mode, baseline, metric, about, .. } = question;
    (experiment, mode, baseline, metric, about)
}

fn series(answers: Answers) -> Option<Series> {
    let points: Vec<Point> =
        answers.by_size.iter().filter_map(|(size, answers)| point(*size, answers)).collect();
    let wins_from_bytes = wins_from(&points);
    let logs = mean_logs(&answers.by_size, wins_from_bytes);
    let gain = Over::of(logs)?.map(f64::exp);
    let alone = points.first().is_some_and(|point| point.basis == Basis::Pairs);
    let gain_bracket = if alone { of_pairs(&points, wins_from_bytes) } else { gain.bracket() };
    Some(Series {
        crossover: crossover(&answers.by_size),
        question: answers.question,
        points,
        wins_from_bytes,
        gain,
        gain_bracket,
    })
}

fn point(size_bytes: Option<u64>, answers: &[At]) -> Option<Point> {
    let ratio = Over::of(answers.iter().map(|at| at.log_ratio).collect())?.map(f64::exp);
    let (bracket, basis) = match (answers, ratio.ci) {
        ([only], _) => ((only.log_ci.0.exp(), only.log_ci.1.exp()), Basis::Pairs),
        (_, Some(ci)) => (ci, Basis::Machines),
        _ => (ratio.span, Basis::Span),
    };
    Some(Point { size_bytes, ratio, bracket, basis })
}

/// The smallest size from which on every point wins; none if the largest does not.
fn wins_from(points: &[Point]) -> Option<u64> {
    let winning = points.iter().rev().take_while(|point| point.verdict() == Verdict::Win);
    winning.last().and_then(|point| point.size_bytes)
}

/// Each machine's mean logarithm over the sizes from one on.
fn mean_logs(by_size: &BTreeMap<Option<u64>, Vec<At>>, from: Option<u64>) -> Vec<f64> {
    let mut sums: BTreeMap<usize, (f64, usize)> = BTreeMap::new();
    // None is less than any size: without a size to begin at, all of them.
    for at in by_size.range(from..).flat_map(|(_, answers)| answers) {
        let sum = sums.entry(at.machine).or_default();
        *sum = (sum.0 + at.log_ratio, sum.1 + 1);
    }
    sums.into_values().map(|(sum, count)| sum / count as f64).collect()
}

/// The one machine's own brackets, as a geometric mean: too wide rather than too narrow.
fn of_pairs(points: &[Point], from: Option<u64>) -> (f64, f64) {
    let ours: Vec<(f64, f64)> =
        points.iter().filter(|point| point.size_bytes >= from).map(|point| point.bracket).collect();
    let mean = |of: &dyn Fn(&(f64, f64)) -> f64| {
        (ours.iter().map(|bracket| of(bracket).ln()).sum::<f64>() / ours.len() as f64).exp()
    };
    (mean(&|bracket| bracket.0), mean(&|bracket| bracket.1))
}

/// Each machine's own crossover, and the machine in the middle.
fn crossover(by_size: &BTreeMap<Option<u64>, Vec<At>>) -> Option<Crossover> {
    let mut curves: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
    for (size, answers) in by_size {
        let Some(size) = size.filter(|size| *size > 0) else { continue };
        for at in answers {
            curves.entry(at.machine).or_default().push(((size as f64).ln(), at.log_ratio));
        }
    }
    let crossings: Vec<f64> =
        curves.values().filter(|curve| curve.len() > 1).map(|curve| crossing(curve)).collect();
    let count = |value: f64| crossings.iter().filter(|crossing| **crossing == value).count();
    let (always, never) = (count(f64::NEG_INFINITY), count(f64::INFINITY));
    // The exponential of minus infinity is 0: at every size.
    let bytes = Over::of(crossings)?.map(f64::exp);
    Some(Crossover { bytes, always, never })
}

/// Where a curve of (logarithm of the size, logarithm of the ratio) goes above 0 to stay.
fn crossing(curve: &[(f64, f64)]) -> f64 {
    let Some(last) = curve.iter().rposition(|(_, ratio)| *ratio <= 0.0) else {
        return f64::NEG_INFINITY;
    };
    let Some((beyond, above)) = curve.get(last + 1) else { return f64::INFINITY };
    let (size, below) = curve[last];
    size + (beyond - size) * below / (below - above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_crosses_where_it_goes_above_to_stay() {
        let curve =
            |ratios: [f64; 4]| -> Vec<(f64, f64)> { (0..).map(f64::from).zip(ratios).collect() };
        assert_eq!(crossing(&curve([-0.2, -0.1, 0.1, 0.2])), 1.5);
        assert_eq!(crossing(&curve([0.1, -0.1, 0.3, 0.2])), 1.25);
        assert_eq!(crossing(&curve([0.1; 4])), f64::NEG_INFINITY);
        assert_eq!(crossing(&curve([0.1, 0.1, 0.1, 0.0])), f64::INFINITY);
    }

    fn at(machine: usize, ratio: f64) -> At {
        At { machine, log_ratio: ratio.ln(), log_ci: ((ratio * 0.9).ln(), (ratio * 1.1).ln()) }
    }

    fn of(ratios: &[(u64, &[f64])]) -> Series {
        let question = Question {
            experiment: "memcpy".into(),
            mode: "ours".into(),
            baseline: "libc".into(),
            metric: "throughput".into(),
            about: String::new(),
            size_bytes: None,
        };
        let by_size = ratios
            .iter()
            .map(|(size, ratios)| {
                let answers = ratios.iter().enumerate().map(|(machine, ratio)| at(machine, *ratio));
                (Some(*size), answers.collect())
            })
            .collect();
        series(Answers { question: Arc::new(question), by_size }).unwrap()
    }

    #[test]
    fn five_machines_have_intervals_over_machines() {
        let found = of(&[
            (1 << 10, &[0.7, 0.72, 0.74, 0.71, 0.73]),
            (2 << 10, &[0.98, 1.03, 1.01, 0.99, 1.0]),
            (4 << 10, &[1.2, 1.22, 1.24, 1.21, 1.23]),
        ]);
        let verdicts: Vec<Verdict> = found.points.iter().map(Point::verdict).collect();
        assert_eq!(verdicts, [Verdict::Loss, Verdict::NoDifference, Verdict::Win]);
        assert_eq!((found.basis(), found.wins_from_bytes), (Basis::Machines, Some(4 << 10)));
        assert!((found.gain.median - 1.22).abs() < 1e-9, "{found:?}");
        let crossover = found.crossover.unwrap();
        let (low, high) = crossover.bytes.ci.unwrap();
        assert!(1500.0 < low && low < 2048.0 && 2048.0 < high && high < 2300.0, "{crossover:?}");
        assert_eq!((crossover.always, crossover.never), (0, 0));
        assert!((found.least().ratio.median - 0.72).abs() < 1e-9 && found.makes_a_difference());
    }

    #[test]
    fn few_machines_have_their_span_and_one_has_its_own_pairs() {
        let two = of(&[(1 << 10, &[0.9, 1.1]), (2 << 10, &[1.2, 1.3])]);
        assert_eq!((two.basis(), two.points[0].ratio.ci), (Basis::Span, None));
        assert_eq!(two.wins_from_bytes, Some(2 << 10));
        let one = of(&[(1 << 10, &[1.05]), (2 << 10, &[1.2])]);
        assert_eq!((one.basis(), one.wins_from_bytes), (Basis::Pairs, Some(2 << 10)));
        let (low, high) = one.gain_bracket;
        assert!((low - 1.08).abs() < 1e-9 && (high - 1.32).abs() < 1e-9, "{one:?}");
        assert_eq!(one.crossover.unwrap().always, 1);
    }

    #[test]
    fn what_never_wins_has_no_size() {
        let never = of(&[(1 << 10, &[0.7; 6]), (2 << 10, &[0.8; 6])]);
        assert_eq!(never.wins_from_bytes, None);
        assert_eq!(never.crossover.unwrap().bytes.median, f64::INFINITY);
        assert!((never.gain.median - 0.56_f64.sqrt()).abs() < 1e-9, "{never:?}");
    }
}
