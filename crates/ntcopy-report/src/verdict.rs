//! Turns results into plain sentences. Pure functions of records.

mod footprint;
mod turns;

use ntcopy_judge::claims::{
    Claim, OF_SAMPLES, Point, Question, against_best, hint, least, results, tally, wins_from,
};
use ntcopy_judge::experiments::{IN_FLIGHT, Of, experiment};
use ntcopy_judge::params::cell_words;
use ntcopy_judge::stats::{METRICS, MIN_PAIRS, THROUGHPUT, Use, Verdict, Versus, WALKS, words};
use ntcopy_judge::{CEILING, Judged};
use ntcopy_record::lists::grouped;
use ntcopy_record::units::{count, percent, sentence};
use ntcopy_record::{LookEnd, Sends};

pub(crate) use turns::{advice, said_of};

use crate::text;

/// What the record says, in a few sentences: one for each metric of each mode that was compared or
/// should have been, and one for what went wrong.
#[must_use]
pub fn sentences(record: &Judged) -> Vec<String> {
    let of = experiment(&record.header.experiment).of;
    if let Some(why) = &record.header.not_a_timing {
        let mut said = vec![format!("These are not timings ({why}), so there is no verdict.")];
        if of == Of::Turns {
            said.extend(turns_sentences(record).into_iter().skip(1));
        }
        said.extend(trouble(record));
        return said;
    }
    let mut sentences = match of {
        Of::Turns => turns_sentences(record),
        Of::Calls => footprint_sentences(record),
        Of::Cells => comparison(record),
    };
    sentences.extend(parts_of_ceiling(record));
    sentences.extend(unanswered(record));
    sentences.extend(behind(record));
    sentences.extend(pacing_sentence(record));
    sentences.extend(unresolved(record));
    sentences.extend(trouble(record));
    sentences
}

/// The sentence that the hint's own question has: its sends relative to plain ones of the same kernel,
/// by another program's speed where that was measured.
#[must_use]
pub fn of_hint(record: &Judged) -> Option<String> {
    let by = |metric| answer(record, hint(record, metric)?);
    by(WALKS).or_else(|| by(THROUGHPUT))
}

/// Mode by mode, metric by metric.
fn comparison(record: &Judged) -> Vec<String> {
    let mut sentences: Vec<String> = against_peers(record).into_iter().collect();
    for mode in compared_modes(record) {
        let before = sentences.len();
        for other in record.others(mode) {
            let metrics = METRICS.iter().filter(|metric| metric.used == Use::Judged);
            let asked = metrics.map(|one| Question { mode, other, metric: one.name });
            sentences.extend(asked.filter_map(|question| answer(record, question)));
        }
        if sentences.len() == before {
            sentences.push(no_result(record, mode));
        }
    }
    if sentences.is_empty() {
        sentences.push(format!("Nothing was compared with {}.", record.header.baseline));
    }
    sentences
}

/// What the cells answer to a question, in a sentence; none where no cell does.
fn answer(record: &Judged, question: Question<'_>) -> Option<String> {
    let of_cell = |cell| question.of(record, cell);
    let points: Vec<Point<'_>> = record.cells.iter().filter_map(of_cell).collect();
    let Question { mode, other, metric } = question;
    let most = points.iter().max_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))?;
    let (least, most) = (in_words(least(&points)?), in_words(most));
    let head = format!("{mode} relative to {other}, {}: ", words(metric));
    if record.header.sends(mode) == Sends::Idle {
        let most = if points.len() > 1 { format!(" to {most}") } else { String::new() };
        return Some(format!("{head}the {CEILING}, {least}{most}."));
    }
    if let [only] = &points[..] {
        return Some(format!("{head}{}, {least}.", only.verdict().as_str()));
    }
    let is_in_flight = points.iter().all(|point| point.size.of == IN_FLIGHT);
    let from = wins_from(&points).filter(|(_, is_other_below)| is_in_flight && *is_other_below);
    let from = from.map_or(String::new(), |(from, _)| format!("; every cell wins from {from} on"));
    let words =
        [("win", "wins"), ("loss", "losses"), ("equal", "equal"), ("unresolved", "unresolved")];
    Some(format!(
        "{head}{} among {}, from {least} to {most}{from}.",
        text::tally(&tally(&points), words),
        count(points.len(), "cell"),
    ))
}

/// `1.31x (1.28-1.35) [objects of 1 MiB, 64 MiB in flight]`
fn in_words(point: &Point<'_>) -> String {
    format!("{} [{}]", point.versus.result(), cell_words(&point.cell.params))
}

/// The modes beside the baseline that the record mentions.
fn compared_modes(record: &Judged) -> Vec<&str> {
    let mut modes = record.mentioned();
    modes.retain(|mode| *mode != record.header.baseline);
    // The project's own question first; otherwise as the record has them.
    modes.sort_by_key(|mode| record.header.sends(mode) != Sends::Hinted);
    modes
}

/// Why a mode is compared by nothing.
fn no_result(record: &Judged, mode: &str) -> String {
    match record.unavailable.iter().find(|line| line.mode == mode) {
        Some(line) => format!("{mode} was not measured: {}.", line.why.trim_end_matches('.')),
        None => {
            format!("{mode} has no result: fewer than {} good pairs of samples.", MIN_PAIRS)
        }
    }
}

/// The library's own way against the best peer of each cell that has enough pairs of both: mean and
/// worst.
fn against_peers(record: &Judged) -> Option<String> {
    let points = against_best(record);
    let (mean, worst) = (Claim::of(&points)?, least(&points)?);
    Some(format!(
        "Over {} ours is at {mean} of the best peer of each (geometric mean); worst, against {}, {}.",
        count(points.len(), "cell"),
        worst.question.other,
        in_words(worst),
    ))
}

/// For each hinted mode, what part it has of the gain of sends that copy nothing.
fn parts_of_ceiling(record: &Judged) -> Vec<String> {
    let mut parts: Vec<(&str, f64)> = Vec::new();
    for cell in &record.cells {
        let all = record.measured(cell);
        parts.extend(all.iter().filter_map(|one| Some((one.mode, one.part_of_ceiling()?))));
    }
    let of_mode = |(mode, parts): (&str, Vec<f64>)| {
        let bound = |of: fn(f64, f64) -> f64| parts.iter().copied().reduce(of).map(percent);
        let (least, most) = (bound(f64::min)?, bound(f64::max)?);
        let span = if parts.len() == 1 { least } else { format!("{least} to {most}") };
        Some(format!(
            "{mode} has {span} of the gain of sends that copy nothing, where that is above 3 %: in {}.",
            count(parts.len(), "cell")
        ))
    };
    grouped(parts).into_iter().filter_map(of_mode).collect()
}

/// Whether requests were left without an answer: then the rate was too much for a mode.
fn unanswered(record: &Judged) -> Option<String> {
    let all = record.cells.iter().flat_map(|cell| record.measured(cell));
    let left = all.map(|one| (one.mode, one.unanswered));
    let left: Vec<(&str, u64)> = left.filter(|(_, unanswered)| *unanswered > 0).collect();
    let total: u64 = left.iter().map(|(_, unanswered)| unanswered).sum();
    let mut modes: Vec<&str> = left.into_iter().map(|(mode, _)| mode).collect();
    modes.sort_unstable();
    modes.dedup();
    (total > 0).then(|| {
        format!(
            "{total} requests of {} were not answered before no more was waited for; they count \
             with the time until then.",
            modes.join(", ")
        )
    })
}

/// Whether less was moved in time than was offered.
fn behind(record: &Judged) -> Option<String> {
    let short = record.short;
    (short > 0).then(|| {
        format!(
            "In {short} of {} samples the traffic fell more than 2 % behind what was offered: the \
             others had more.",
            record.samples
        )
    })
}

/// For each level of the caches, how far known displacers are off; what the calls displaced is in
/// the table.
fn footprint_sentences(record: &Judged) -> Vec<String> {
    let mut said: Vec<String> = record.levels.iter().flat_map(footprint::sentences).collect();
    if said.is_empty() {
        said.push("No level of the caches could be measured.".to_owned());
    }
    said
}

/// The verdict on a program's turns, what the kernel counted, and what to do.
fn turns_sentences(record: &Judged) -> Vec<String> {
    match &record.outcome {
        Some(outcome) => turns::sentences(outcome),
        None => vec![format!(
            "No verdict: the record holds {} good turns, and five pairs make one.",
            record.samples
        )],
    }
}

/// A warning where TCP that paces was between processes that were measured: that says more than
/// what was compared.
///
/// Over a loopback an acknowledgement takes about a microsecond, and what BBR makes of that is up
/// to whether the reader happened to be awake: a timer for each packet, or none.
fn pacing_sentence(record: &Judged) -> Option<String> {
    let name = record.congestion.iter().find(|name| name.starts_with("bbr"))?;
    Some(format!(
        "TCP's congestion control was {name}, which paces: on one machine its estimate of the \
         bandwidth decides what goes through and what that costs, and differs by chance from one \
         connection to the next."
    ))
}

/// One sentence of all results whose interval is too wide to say anything; none where there are none.
fn unresolved(record: &Judged) -> Option<String> {
    let mut all = results(record, OF_SAMPLES);
    all.retain(|result| record.header.sends(result.question.mode) != Sends::Idle);
    let wide = all.iter().map(|result| result.versus);
    let wide: Vec<&Versus> =
        wide.filter(|versus| versus.verdict() == Verdict::Unresolved).collect();
    let most_pairs = wide.iter().map(|versus| versus.ratios.len()).max()?;
    let half_width = |versus: &&Versus| (versus.ci.1 - versus.ci.0) / 2.0;
    let widest = wide.iter().map(half_width).fold(0.0, f64::max);
    let spent = record.looks.iter().filter(|look| look.end == LookEnd::Budget).count();
    let why = match spent {
        0 => String::new(),
        spent => format!("; the time for {} was up", count(spent, "cell")),
    };
    Some(format!(
        "Unresolved: {} of {} results have an interval that is too wide for a win, a loss or equality, by up \
         to {:.0} % to either side after {most_pairs} pairs{why}. Four times the pairs halve it \
         (--budget SECONDS); processes that are pinned (taskset) and a quieter machine need \
         fewer.",
        wide.len(),
        all.len(),
        widest * 100.0,
    ))
}

/// What kept the record from being whole and clean, in one sentence.
fn trouble(record: &Judged) -> Option<String> {
    let mut parts = Vec::new();
    let wrong = record.errors.iter().filter(|error| error.wrong_byte).count();
    if wrong > 0 {
        parts.push(format!("a byte was wrong in {}", count(wrong, "run")));
    }
    let failed = record.errors.len() - wrong;
    if failed > 0 {
        parts.push(format!("{} failed and gave no number", count(failed, "run")));
    }
    if !record.complete {
        parts.push(format!("the record was cut short after {} samples", record.samples));
    }
    parts.extend(record.disturbed());
    (!parts.is_empty()).then(|| sentence(&parts.join(", and ")))
}

#[cfg(test)]
mod tests;
