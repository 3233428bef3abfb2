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

/// A part of the hinted bytes that counts as most of them.
const MOST: f64 = 0.5;

/// What a record of turns says.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// `time`, `requests per second`, or the expression that found the number.
    pub metric: String,
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
    /// Above 1 the hinted turns needed less.
    pub versus: Versus,
}

/// What the record says; none of another experiment's, or with fewer than five pairs.
pub(crate) fn outcome(record: &Record) -> Option<Outcome> {
    let cell = record.cells.first().filter(|_| record.header.experiment == ExperimentKind::Try)?;
    let params = cell.params.clone();
    let metric = word(&params, METRIC)?.to_owned();
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
    Some(Outcome {
        versus: Versus::new(ratios, [&ours, &theirs], permille),
        counted: counted(hinted),
        hinted_plain_bytes: counted(plain).hinted_bytes,
        alike: alike([&halves(plain, figure)]),
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

/// The name of a latency that counts itself.
const LATENCY: &str = "latency, ms";

fn beside(turns: &[Vec<&Sample>; 2], metric: &str, permille: u32) -> Vec<Beside> {
    let versus = |(name, figure): &(&'static str, Figure)| {
        let (ours, theirs) = both(turns, figure)?;
        let ratios = ours.iter().zip(&theirs).map(|(hinted, plain)| plain / hinted).collect();
        Some(Beside { metric: name, versus: Versus::new(ratios, [&ours, &theirs], permille) })
    };
    let cpu = [&PER_GB[..], &PER_ANSWERS, &PER_TURN]
        .map(|figures| figures.iter().filter_map(versus).collect::<Vec<Beside>>());
    let latencies = LATENCIES.iter().filter(|(name, _)| metric != LATENCY || *name != "p50, ms");
    let mut all = cpu.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    all.extend(latencies.filter_map(versus));
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
        if self.is_unfit() { Verdict::Unresolved } else { self.versus.verdict() }
    }

    /// The figure, then what was noted beside it: the name, hinted against plain turns, the verdict.
    pub fn figures(&self) -> impl Iterator<Item = (&str, &Versus, Verdict)> {
        let beside = self.beside.iter();
        let beside = beside.map(|one| (one.metric, &one.versus, one.versus.verdict()));
        [(self.metric.as_str(), &self.versus, self.verdict())].into_iter().chain(beside)
    }

    fn is_unfit(&self) -> bool {
        self.alike.is_some_and(|alike| alike.differs())
    }

    /// Whether hinted turns are at least so good relative to plain ones; none where that is unresolved.
    #[must_use]
    pub fn reaches(&self, bar: f64) -> Option<bool> {
        let (low, high) = self.versus.ci;
        let is_known = !self.is_unfit() && (low >= bar || high < bar);
        is_known.then_some(low >= bar)
    }

    /// What the machine makes of turns that are alike.
    #[must_use]
    pub fn alike_sentence(&self) -> Option<String> {
        let alike = self.alike?;
        Some(match self.is_unfit() {
            false => format!("Plain turns relative to plain ones, odd against even: {alike}."),
            true => format!(
                "Not fit: plain turns relative to plain ones, odd against even, are at {alike}, so \
                 the machine makes differences of its own."
            ),
        })
    }

    #[must_use]
    pub fn sentence(&self) -> String {
        let figures = format!("{}, {} pairs", self.versus.result(), self.versus.ratios.len());
        let better = if self.metric == "time" { "faster" } else { "better" };
        let worse = if self.metric == "time" { "slower" } else { "worse" };
        match self.verdict() {
            Verdict::Win => format!("Win: hinted, the program is {better}: {figures}."),
            Verdict::Loss => format!("Loss: hinted, the program is {worse}: {figures}."),
            Verdict::Equal => {
                format!("Equal: hinted, the program is as good as plain: {figures}.")
            }
            Verdict::Unresolved => {
                format!("Unresolved, by a bar of 3 %: {figures}.")
            }
        }
    }

    /// Where the load had a rate, CPU time is the other half of the answer.
    #[must_use]
    pub fn cpu_sentence(&self) -> Option<String> {
        let cpu = self.beside.iter().rfind(|beside| beside.metric.starts_with("CPU "))?;
        (self.metric == LATENCY).then(|| {
            format!("{}: {}, {}.", cpu.metric, cpu.versus.verdict().as_str(), cpu.versus.result())
        })
    }

    /// What was counted of the hints, in one sentence.
    #[must_use]
    pub fn counted_sentence(&self) -> String {
        let Some(part) = self.counted.bypassed_part() else {
            return "No hinted byte was counted.".to_owned();
        };
        let each = self.counted.hinted_bytes / self.versus.ratios.len().max(1) as u64;
        let of_opted_in = self.counted.hinted_part().map_or_else(String::new, |part| {
            format!(", {:.1} % of those on sockets that opted in", part * 100.0)
        });
        let past = part * 100.0;
        format!(
            "{each} hinted bytes were counted per turn{of_opted_in}; {past:.1} % of them went past \
             the caches."
        )
    }

    #[must_use]
    pub fn advice(&self) -> String {
        let nothing_hinted = self.counted.hinted_bytes == 0;
        if self.hinted_plain_bytes > 0 {
            return "The program hints by itself: hinted bytes were counted in its plain turns, \
                    so these figures compare little."
                .to_owned();
        }
        match self.verdict() {
            _ if nothing_hinted => "Leave it as it is: no send of it was large enough, or none \
                                    goes through the C library's calls to a socket of the kinds \
                                    that were named. What difference there is comes of loading the \
                                    library."
                .to_owned(),
            Verdict::Win => "Start it by `ntcopy run` with the same options.".to_owned(),
            Verdict::Loss => "Leave it as it is.".to_owned(),
            Verdict::Unresolved => {
                "Leave it as it is for now, and take more turns (--budget) on a quieter machine."
                    .to_owned()
            }
            Verdict::Equal if self.counted.bypassed_part().unwrap_or(0.0) < MOST => {
                "Leave it as it is: most of its hinted bytes did not go past the caches, since the \
                 kernel reads them itself or the socket cannot."
                    .to_owned()
            }
            Verdict::Equal => {
                "Leave it as it is; `ntcopy bench retention` shows what its sends leave of the \
                 cache for others on its CPU."
                    .to_owned()
            }
        }
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
    fn turns_that_differ_by_chance_are_unresolved_until_the_interval_is_narrow() {
        let figures = [(100, 108), (108, 100), (100, 92), (94, 100), (101, 102), (102, 101)];
        let wide = outcome(&detailed(&figures, "less", false, 10)).unwrap();
        assert_eq!(wide.versus.verdict(), Verdict::Unresolved);
        assert!(
            wide.sentence().starts_with("Unresolved, by a bar of 3 %: "),
            "{}",
            wide.sentence()
        );
        assert!(wide.advice().contains("--budget"), "{}", wide.advice());
        let figures = [(100, 101), (102, 100), (100, 99), (99, 100), (101, 102), (102, 101)];
        let outcome = outcome(&detailed(&figures, "less", false, 10)).unwrap();
        assert_eq!(outcome.versus.verdict(), Verdict::Equal);
        assert!(outcome.sentence().starts_with("Equal: "), "{}", outcome.sentence());
        assert_eq!(outcome.counted.bypassed_part(), Some(0.25));
        assert!(outcome.advice().contains("did not go past the caches"), "{}", outcome.advice());
        let counted = outcome.counted_sentence();
        assert!(
            ["40 hinted bytes", "50.0 % of those", "25.0 % of them"]
                .iter()
                .all(|words| counted.contains(words)),
            "{counted}"
        );
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
                    let Beside { metric, versus } = beside;
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
        assert_eq!(outcome(&record).unwrap().cpu_sentence(), None);
        record.cells[0].params.insert(METRIC.to_owned(), LATENCY.into());
        let sentence = outcome(&record).unwrap().cpu_sentence().unwrap();
        assert!(sentence.starts_with("CPU s per GB: both: win, 1.67x"), "{sentence}");
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
        assert!(outcome.alike_sentence().unwrap().starts_with("Not fit: "));
        assert_eq!([1.5, 9.0].map(|bar| outcome.reaches(bar)), [None; 2], "of no bar");
        let figures = [(100, 50), (101, 50), (100, 51), (99, 50), (101, 50), (100, 51)];
        let fit = super::outcome(&detailed(&figures, "less", false, 10)).unwrap();
        assert_eq!(fit.verdict(), Verdict::Win, "{:?}", fit.alike_sentence());
        let reached = [1.5, 2.0, 9.0].map(|bar| fit.reaches(bar));
        assert_eq!(reached, [Some(true), None, Some(false)], "{:?}", fit.versus.ci);
    }

    #[test]
    fn a_program_that_was_not_hinted_says_so_whatever_the_interval() {
        let outcome = outcome(&detailed(&[(100, 200); 6], "less", false, 0)).unwrap();
        assert_eq!(outcome.versus.verdict(), Verdict::Loss);
        assert!(outcome.counted_sentence().contains("No hinted byte"));
        assert!(outcome.advice().contains("loading the library"), "{}", outcome.advice());
    }
}
