//! What a record of a program's turns says, plain and hinted.

use std::collections::BTreeMap;

use super::{MIN_PAIRS, Verdict, Versus, paired};
use crate::record::{Counted, ExperimentKind, Params, Record, Sample, add_counts, word};

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
/// Name of the series that has a turn's number, in millionths.
pub const PRINTED: &str = "printed_millionths";

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
    pub params: Params,
}

/// What the record says; none with fewer than five pairs.
#[must_use]
pub fn outcome(record: &Record) -> Option<Outcome> {
    let cell = record.cells.first()?;
    let params = cell.params.clone();
    let metric = word(&params, METRIC)?.to_owned();
    let more_is_better = word(&params, BETTER)? == "more";
    let (ours, theirs) = paired(record, cell.cell, [HINTED, PLAIN], figure);
    if ours.len() < MIN_PAIRS {
        return None;
    }
    let better = |(hinted, plain): (&f64, &f64)| {
        if more_is_better { hinted / plain } else { plain / hinted }
    };
    let ratios = ours.iter().zip(&theirs).map(better).collect();
    let counted = |mode: &str| {
        let mut all = BTreeMap::new();
        let samples = record.samples.iter().filter(|sample| sample.mode == mode);
        samples.for_each(|sample| add_counts(&mut all, &sample.counters));
        Counted::of(&all).unwrap_or_default()
    };
    Some(Outcome {
        metric,
        versus: Versus::new(ratios, [&ours, &theirs], record.misses_permille(cell.cell)),
        counted: counted(HINTED),
        hinted_plain_bytes: counted(PLAIN).hinted_bytes,
        params,
    })
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

/// Hinted against plain turns; none of another experiment's record, or with fewer than five pairs.
#[must_use]
pub fn versus(record: &Record) -> Option<Versus> {
    let outcome = outcome(record).filter(|_| record.header.experiment == ExperimentKind::Try);
    outcome.map(|outcome| outcome.versus)
}

impl Outcome {
    #[must_use]
    pub fn sentence(&self) -> String {
        let figures = format!("{}, {} pairs", self.versus.result(), self.versus.ratios.len());
        let better = if self.metric == "time" { "faster" } else { "better" };
        let worse = if self.metric == "time" { "slower" } else { "worse" };
        match self.versus.verdict() {
            Verdict::Win => format!("Win: hinted, the program is {better}: {figures}."),
            Verdict::Loss => format!("Loss: hinted, the program is {worse}: {figures}."),
            Verdict::Equal => {
                format!("Equal: hinted, the program is as good as plain: {figures}.")
            }
            Verdict::Unresolved => {
                format!("Unresolved: the interval holds 1 and is wide: {figures}.")
            }
        }
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
        match self.versus.verdict() {
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
    use crate::record::testing;

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
        assert!(wide.sentence().starts_with("Unresolved: "), "{}", wide.sentence());
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
    fn a_program_that_was_not_hinted_says_so_whatever_the_interval() {
        let outcome = outcome(&detailed(&[(100, 200); 6], "less", false, 0)).unwrap();
        assert_eq!(outcome.versus.verdict(), Verdict::Loss);
        assert!(outcome.counted_sentence().contains("No hinted byte"));
        assert!(outcome.advice().contains("loading the library"), "{}", outcome.advice());
    }
}
