//! What a record of a program's turns says, plain and hinted.

use std::collections::BTreeMap;

use super::{MIN_PAIRS, Verdict, Versus, alike, by_pair, halves, paired};
use crate::ratio::Ratio;
use ntcopy_record::{Counted, ExperimentKind, Params, Record, Sample, add_counts, word};

/// The program as it is: the baseline.
pub const PLAIN: &str = "plain";
/// The program with the library of `ntcopy run`.
pub const HINTED: &str = "hinted";

/// Name of a cell's parameter: what a turn's figure is.
pub const METRIC: &str = "metric";
/// Name of a cell's parameter: which figures are better, `more` or `less`.
pub const BETTER: &str = "better";
/// Name of a cell's parameter: the program and its arguments.
pub const PROGRAM: &str = "program";
/// Name of a cell's parameter: the load, if there is one.
pub const LOAD: &str = "load";
/// Name of a cell's parameter: the command before each turn, if there is one.
pub const PREPARE: &str = "prepare";
/// Name of the series that has a turn's number, in millionths.
pub const PRINTED: &str = "printed_millionths";
/// Names of the series with the CPU time of the program, and of its load.
pub const PROGRAM_CPU: &str = "program_cpu_ns";
pub const LOAD_CPU: &str = "load_cpu_ns";
/// Names of the series with what half and 99 in 100 of the answers did not exceed.
pub const P50: &str = "p50_ns";
pub const P99: &str = "p99_ns";
/// Name of the series with the number of answers.
pub const ANSWERS: &str = "answers";

/// What a turn's figure is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FigureOf {
    /// The seconds that the program took.
    Time,
    /// A latency that its load told.
    Latency,
    /// What was printed: `requests per second`, or the expression that found the number.
    Printed(String),
}

/// Their names in a record.
const TIME: &str = "time";
pub const LATENCY: &str = "latency, ms";

impl FigureOf {
    /// As a cell of turns says it.
    #[must_use]
    pub fn cell(params: &Params) -> Option<FigureOf> {
        Some(match word(params, METRIC)? {
            TIME => FigureOf::Time,
            LATENCY => FigureOf::Latency,
            printed => FigureOf::Printed(printed.to_owned()),
        })
    }

    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            FigureOf::Time => TIME,
            FigureOf::Latency => LATENCY,
            FigureOf::Printed(printed) => printed,
        }
    }
}

/// What a record of turns says.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub metric: FigureOf,
    /// Hinted against plain turns; above 1 the hinted one was the better. Medians are seconds, or the
    /// numbers that were printed.
    pub versus: Versus,
    /// What was counted of the hinted turns, all together.
    pub counted: Counted,
    /// Hinted bytes of the plain turns, where the program hints by itself.
    pub hinted_plain_bytes: u64,
    /// Plain turns relative to plain ones, every second against the others.
    pub alike: Option<Ratio>,
    /// What was noted beside the figure, each with hinted against plain turns.
    pub beside: Vec<Beside>,
    pub params: Params,
}

/// Something that less is better of, noted beside the figure of a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Beside {
    pub metric: &'static str,
    /// Whether it is CPU time; else it is a latency.
    pub is_cpu: bool,
    /// Above 1 the hinted turns needed less.
    pub versus: Versus,
}

/// What the record says; none of another experiment's, or with fewer than five pairs.
pub(crate) fn outcome(record: &Record) -> Option<Outcome> {
    let cell = record.cells.first().filter(|_| record.header.experiment == ExperimentKind::Try)?;
    let params = cell.params.clone();
    let metric = FigureOf::cell(&params)?;
    let more_is_better = word(&params, BETTER)? == "more";
    let turns = [HINTED, PLAIN].map(|mode| -> Vec<&Sample> {
        record.samples.iter().filter(|sample| sample.mode == mode).collect()
    });
    let permille = record.misses_permille(cell.cell);
    let (ours, theirs) = both(&turns, figure)?;
    let better = |(hinted, plain): (&f64, &f64)| {
        if more_is_better { hinted / plain } else { plain / hinted }
    };
    let ratios = ours.iter().zip(&theirs).map(better).collect();
    let [hinted, plain] = &turns;
    let plain_figures: Vec<_> = plain.iter().map(|turn| (turn.pair, figure(turn))).collect();
    Some(Outcome {
        versus: Versus::new(ratios, [&ours, &theirs], permille),
        counted: counted(hinted),
        hinted_plain_bytes: counted(plain).hinted_bytes,
        alike: alike([&halves(&plain_figures)]),
        beside: beside(&turns, &metric, permille),
        metric,
        params,
    })
}

fn counted(turns: &[&Sample]) -> Counted {
    let mut all = BTreeMap::new();
    turns.iter().for_each(|turn| add_counts(&mut all, &turn.counters));
    Counted::of(&all).unwrap_or_default()
}

/// A figure of the hinted and of the plain turns, pair by pair; none with fewer than five pairs.
fn both(
    [hinted, plain]: &[Vec<&Sample>; 2],
    figure: impl Fn(&Sample) -> Option<f64>,
) -> Option<(Vec<f64>, Vec<f64>)> {
    let (ours, theirs) = paired(&by_pair(hinted, &figure), &by_pair(plain, &figure));
    (ours.len() >= MIN_PAIRS).then_some((ours, theirs))
}

/// A figure of a turn; none where it was not noted.
type Figure = fn(&Sample) -> Option<f64>;

const PER_GB: [(&str, Figure); 3] = [
    ("CPU s per GB: program", |turn| per_gb(turn, program_cpu_s(turn)?)),
    ("CPU s per GB: load", |turn| per_gb(turn, cpu_s(turn, LOAD_CPU)?)),
    ("CPU s per GB: both", |turn| per_gb(turn, both_cpu_s(turn)?)),
];
const PER_ANSWERS: [(&str, Figure); 3] = [
    ("CPU s per million answers: program", |turn| per_million(turn, program_cpu_s(turn)?)),
    ("CPU s per million answers: load", |turn| per_million(turn, cpu_s(turn, LOAD_CPU)?)),
    ("CPU s per million answers: both", |turn| per_million(turn, both_cpu_s(turn)?)),
];
/// A program by itself has the same to do in each turn; so may have one whose load tells neither
/// bytes nor answers.
const PER_TURN: [(&str, Figure); 2] =
    [("CPU s: program", program_cpu_s), ("CPU s: load", |turn| cpu_s(turn, LOAD_CPU))];
const LATENCIES: [(&str, Figure); 2] =
    [("p50, ms", |turn| series_ms(turn, P50)), ("p99, ms", |turn| series_ms(turn, P99))];

fn beside(turns: &[Vec<&Sample>; 2], counts: &FigureOf, permille: u32) -> Vec<Beside> {
    let versus = |(metric, figure): &(&'static str, Figure), is_cpu| {
        let (ours, theirs) = both(turns, figure)?;
        let ratios = ours.iter().zip(&theirs).map(|(hinted, plain)| plain / hinted).collect();
        Some(Beside { metric, is_cpu, versus: Versus::new(ratios, [&ours, &theirs], permille) })
    };
    let cpu = [&PER_GB[..], &PER_ANSWERS, &PER_TURN]
        .map(|rows| rows.iter().filter_map(|row| versus(row, true)).collect::<Vec<Beside>>());
    // A latency that counts is the median already.
    let from = usize::from(*counts == FigureOf::Latency);
    let latencies = LATENCIES[from..].iter();
    let mut all = cpu.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    all.extend(latencies.filter_map(|row| versus(row, false)));
    all
}

fn series(turn: &Sample, name: &str) -> Option<f64> {
    let first = turn.series.get(name)?.first()?;
    Some(*first as f64).filter(|value| *value > 0.0)
}

fn cpu_s(turn: &Sample, name: &str) -> Option<f64> {
    series(turn, name).map(|ns| ns / 1e9)
}

fn program_cpu_s(turn: &Sample) -> Option<f64> {
    cpu_s(turn, PROGRAM_CPU)
}

fn both_cpu_s(turn: &Sample) -> Option<f64> {
    Some(program_cpu_s(turn)? + cpu_s(turn, LOAD_CPU)?)
}

fn per_gb(turn: &Sample, seconds: f64) -> Option<f64> {
    (turn.bytes > 0).then(|| seconds / (turn.bytes as f64 / 1e9))
}

fn per_million(turn: &Sample, seconds: f64) -> Option<f64> {
    Some(seconds / (series(turn, ANSWERS)? / 1e6))
}

fn series_ms(turn: &Sample, name: &str) -> Option<f64> {
    series(turn, name).map(|ns| ns / 1e6)
}

/// A turn's figure, or one by it where less is better: more is better of what this gives.
#[must_use]
pub fn rate(sample: &Sample, is_less_better: bool) -> Option<f64> {
    figure(sample).map(|figure| if is_less_better { 1.0 / figure } else { figure })
}

/// A turn's figure: seconds, or what was printed.
#[must_use]
pub fn figure(sample: &Sample) -> Option<f64> {
    match sample.series.get(PRINTED) {
        Some(printed) => Some(*printed.first()? as f64 / 1e6),
        None => Some(sample.elapsed_ns as f64 / 1e9),
    }
    .filter(|figure| *figure > 0.0)
}

impl Outcome {
    /// That of the figure; unresolved where plain turns differ from each other.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.verdict_of(&self.versus)
    }

    /// The same of what was noted beside it.
    #[must_use]
    pub fn verdict_of(&self, versus: &Versus) -> Verdict {
        if self.is_unfit() { Verdict::Unresolved } else { versus.verdict() }
    }

    /// The figure, then what was noted beside it: the name, hinted against plain turns, the verdict.
    pub fn figures(&self) -> impl Iterator<Item = (&str, &Versus, Verdict)> {
        let beside = self.beside.iter();
        let beside = beside.map(|one| (one.metric, &one.versus, self.verdict_of(&one.versus)));
        [(self.metric.name(), &self.versus, self.verdict())].into_iter().chain(beside)
    }

    /// Whether plain turns differ from each other, so that the machine is not fit to tell.
    #[must_use]
    pub fn is_unfit(&self) -> bool {
        self.alike.is_some_and(|alike| alike.differs())
    }

    /// Whether hinted turns are at least so good relative to plain ones; none where that is unresolved.
    #[must_use]
    pub fn reaches(&self, bar: f64) -> Option<bool> {
        let (low, high) = self.versus.ci;
        let is_known = !self.is_unfit() && (low >= bar || high < bar);
        is_known.then_some(low >= bar)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntcopy_record::testing;

    /// Turns, with what the kernel counted of the hinted turns.
    fn detailed(figures: &[(u64, u64)], better: &str, printed: bool, counted: u64) -> Record {
        let mut record = testing::turns(figures);
        record.cells[0].params.insert(BETTER.to_owned(), better.into());
        for sample in &mut record.samples {
            if printed {
                sample.series.insert(PRINTED.to_owned(), vec![sample.elapsed_ns]);
            }
            if sample.mode == HINTED && counted > 0 {
                sample.counters.insert("NtcopyBytes".to_owned(), 8 * counted);
                sample.counters.insert("NtcopyHintedBytes".to_owned(), 4 * counted);
                sample.counters.insert("NtcopyBypassedBytes".to_owned(), counted);
            }
        }
        record
    }

    #[test]
    fn less_time_is_a_win_and_a_smaller_number_is_if_less_is_better() {
        let figures = [(200, 100); 6];
        for (better, printed, ratio, verdict) in [
            ("less", false, 2.0, Verdict::Win),
            ("less", true, 2.0, Verdict::Win),
            ("more", true, 0.5, Verdict::Loss),
        ] {
            let outcome = outcome(&detailed(&figures, better, printed, 10)).unwrap();
            let Versus { ratio: found, ratios, .. } = &outcome.versus;
            let found = (*found, outcome.versus.verdict(), ratios.len());
            assert_eq!(found, (ratio, verdict, 6));
        }
        assert_eq!(outcome(&detailed(&figures[..4], "less", false, 10)), None, "four pairs");
    }

    #[test]
    fn cpu_time_and_latencies_stand_beside_the_figure() {
        let mut record = detailed(&[(100, 100); 6], "more", true, 10);
        for turn in &mut record.samples {
            let saves = u64::from(turn.mode == HINTED);
            let noted = [
                (PROGRAM_CPU, 400_000_000 >> saves),
                (LOAD_CPU, 100_000_000),
                (P99, 8_000_000 << saves),
                (ANSWERS, 1000),
            ];
            turn.series.extend(noted.map(|(name, value)| (name.to_owned(), vec![value])));
        }
        let told = |record: &Record| -> Vec<(&str, f64, Verdict)> {
            let rounded = |median: f64| (median * 1e6).round() / 1e6;
            let beside = outcome(record).unwrap().beside;
            beside
                .into_iter()
                .map(|beside| {
                    let Beside { metric, versus, .. } = beside;
                    (metric, rounded(versus.median), versus.verdict())
                })
                .collect()
        };
        assert_eq!(
            told(&record),
            [
                ("CPU s per million answers: program", 200.0, Verdict::Win),
                ("CPU s per million answers: load", 100.0, Verdict::Equal),
                ("CPU s per million answers: both", 300.0, Verdict::Win),
                ("p99, ms", 16.0, Verdict::Loss),
            ]
        );
        record.samples.iter_mut().for_each(|turn| turn.bytes = 2_000_000_000);
        assert_eq!(told(&record)[0], ("CPU s per GB: program", 0.1, Verdict::Win));
    }

    #[test]
    fn where_plain_turns_differ_from_each_other_nothing_is_resolved() {
        // Every second plain turn takes a tenth longer, and hinted ones half as long.
        let figures = [(100, 50), (110, 50), (100, 51), (111, 50), (101, 50), (110, 51)];
        let outcome = outcome(&detailed(&figures, "less", false, 10)).unwrap();
        assert_eq!(
            (outcome.versus.verdict(), outcome.verdict()),
            (Verdict::Win, Verdict::Unresolved)
        );
        assert_eq!([1.5, 9.0].map(|bar| outcome.reaches(bar)), [None; 2], "of no bar");
        let figures = [(100, 50), (101, 50), (100, 51), (99, 50), (101, 50), (100, 51)];
        let fit = super::outcome(&detailed(&figures, "less", false, 10)).unwrap();
        assert_eq!(fit.verdict(), Verdict::Win, "{:?}", fit.alike);
        let reached = [1.5, 2.0, 9.0].map(|bar| fit.reaches(bar));
        assert_eq!(reached, [Some(true), None, Some(false)], "{:?}", fit.versus.ci);
    }
}
