//! Turns results into plain sentences. Pure functions of records.

mod app;
mod bulk;
mod crossover;
mod http;
mod net;
mod pages;
mod retention;
mod sweep;
mod unresolved;
mod wins;

use crate::params::cell_words;
use crate::record::{Cell, ExperimentKind, Record};
use crate::stats::footprint::LevelFigures;
use crate::stats::{self, CellResult, THROUGHPUT, Verdict, Versus, versus};

pub use sweep::below_aim;

/// Plain sends of a kernel with the patches, where those of one without them are the baseline.
const PATCHED: &str = "patched";
/// The modes whose sends are hinted.
const HINTED: [&str; 2] = ["nt", "adaptive"];

/// What the record says, in a few sentences: one for each mode that was compared
/// with the baseline or should have been (the hint gets one a data set, if there
/// are two), and one for what went wrong.
///
/// The figures are of [`THROUGHPUT`], the whole way of the bytes, since a
/// faster send that makes a slower reader is no win.
#[must_use]
pub fn sentences(record: &Record) -> Vec<String> {
    if let Some(why) = &record.header.not_a_timing {
        let mut said = vec![format!("These are not timings ({why}), so there is no verdict.")];
        if record.header.experiment == ExperimentKind::Try {
            said.extend(turns_without_verdict(record));
        }
        return said;
    }
    let mut sentences = match record.header.experiment {
        ExperimentKind::Retention => retention::sentences(record),
        ExperimentKind::Memcpy | ExperimentKind::Memset | ExperimentKind::Order => {
            bulk::sentences(record)
        }
        ExperimentKind::Pages => pages::sentences(record),
        ExperimentKind::Http => http::sentences(record),
        ExperimentKind::Net => net::sentences(record),
        ExperimentKind::Pingpong => net::pingpong(record),
        ExperimentKind::App => app::sentences(record),
        ExperimentKind::Try => turns_sentences(record),
        ExperimentKind::Footprint => footprint_sentences(record),
        ExperimentKind::Unix | ExperimentKind::Other(_) => comparison(record),
    };
    sentences.extend(pacing_sentence(record));
    sentences.extend(unresolved::sentence(record));
    sentences.extend(trouble(record));
    sentences
}

/// Mode by mode; of a sweep what it comes to before that.
fn comparison(record: &Record) -> Vec<String> {
    let mut sentences = sweep::sentences(record);
    let results = stats::results(record);
    for mode in compared_modes(record) {
        sentences.extend(mode_sentences(record, &results, mode));
    }
    sentences.extend(HINTED.iter().filter_map(|mode| by_patched(record, mode)));
    sentences.extend(bulk_by_obeyed(record));
    if sentences.is_empty() {
        sentences.push(format!(
            "Nothing was compared: the record holds no mode beside {}.",
            record.header.baseline
        ));
    }
    sentences
}

/// What the hint adds to plain sends of the same kernel, where another kernel's are the baseline.
fn by_patched(record: &Record, mode: &str) -> Option<String> {
    let one = |cell: &Cell| versus(record, cell.cell, mode, PATCHED, THROUGHPUT);
    let cells: Vec<(&Cell, Versus)> =
        record.cells.iter().filter_map(|cell| Some((cell, one(cell)?))).collect();
    wins::sentence(&cells, (mode, PATCHED), "is faster")
}

/// Of a bulk sender beside a small one, what the rule leaves of the gain that obeyed hints have.
fn bulk_by_obeyed(record: &Record) -> Option<String> {
    let is_bulk = |cell: &&Cell| cell.params.get("clocked").is_some_and(|whose| whose == "bulk");
    let one = |cell: &Cell| versus(record, cell.cell, "adaptive", "nt", THROUGHPUT);
    let bulk = record.cells.iter().filter(is_bulk);
    let cells: Vec<(&Cell, Versus)> = bulk.filter_map(|cell| Some((cell, one(cell)?))).collect();
    wins::sentence(&cells, ("adaptive", "nt"), "lets a bulk sender be faster")
}

/// How a mode is called in a sentence.
fn name(mode: &str) -> &str {
    match mode {
        "nt" => "MSG_NTCOPY",
        "adaptive" => "The hint by the rule",
        PATCHED => "The patched kernel, unhinted,",
        "new" => "The new kernel",
        "hinted-once" => "The patched kernel, once hinted,",
        "module" => "The module",
        other => other,
    }
}

/// The modes beside the baseline that the record mentions, samples or not.
fn compared_modes(record: &Record) -> Vec<&str> {
    let mentioned = stats::modes(record)
        .into_iter()
        .chain(record.unavailable.iter().map(|line| line.mode.as_str()))
        .chain(record.errors.iter().map(|line| line.mode.as_str()));
    let mut modes: Vec<&str> = Vec::new();
    for mode in mentioned.filter(|mode| *mode != record.header.baseline) {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    // The project's own question first; otherwise as the record has them.
    modes.sort_by_key(|mode| *mode != "nt");
    modes
}

fn mode_sentences(record: &Record, results: &[CellResult], mode: &str) -> Vec<String> {
    let ours: Vec<&CellResult> = results
        .iter()
        .filter(|result| result.mode == mode && result.metric == THROUGHPUT)
        .collect();
    if (mode == "nt" || mode == "adaptive")
        && let Some(sentences) = crossover::by_dataset(name(mode), &ours)
    {
        return sentences;
    }
    vec![mode_sentence(record, &ours, mode)]
}

fn mode_sentence(record: &Record, ours: &[&CellResult], mode: &str) -> String {
    let name = name(mode);
    let mut sentence = if !ours.is_empty() {
        let series = crossover::series(ours);
        series.map_or_else(|| tally(name, ours), |series| crossover::sentence(name, &series))
    } else if let Some(line) = record.unavailable.iter().find(|line| line.mode == mode) {
        format!("{name} was not measured: {}", line.why.trim_end_matches('.'))
    } else {
        format!("{name} has no result: fewer than {} good pairs of samples", stats::MIN_PAIRS)
    };
    if mode == "vmsplice" && !ours.is_empty() {
        sentence.push_str("; its buffer must not be touched until the reader is done");
    }
    sentence.push('.');
    sentence
}

/// For cells that do not line up along the bytes in flight: how many of which kind.
fn tally(name: &str, results: &[&CellResult]) -> String {
    if let [only] = results {
        let says = says(only.verdict);
        return format!("{name} {says} ({}; {})", figure(only), cell_words(&only.params));
    }
    let with = |verdict| -> Vec<&CellResult> {
        results.iter().filter(|result| result.verdict == verdict).copied().collect()
    };
    let (wins, losses) = (with(Verdict::Win), with(Verdict::Loss));
    let total = results.len();
    let mut parts = Vec::new();
    if let Some(best) = wins.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
        let count = count(wins.len(), total);
        parts.push(format!(
            "wins in {count} (best {}; {})",
            figure(best),
            cell_words(&best.params)
        ));
    }
    if let Some(worst) = losses.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
        let count = count(losses.len(), total);
        parts.push(format!(
            "loses in {count} (worst {}; {})",
            figure(worst),
            cell_words(&worst.params)
        ));
    }
    for verdict in [Verdict::Equal, Verdict::Unresolved] {
        let cells = with(verdict).len();
        if cells > 0 {
            parts.push(format!("{} in {}", says(verdict), count(cells, total)));
        }
    }
    format!("{name} {}", parts.join(", "))
}

/// A verdict as a verb.
fn says(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Win => "wins",
        Verdict::Loss => "loses",
        Verdict::Equal => "makes no difference",
        Verdict::Unresolved => "is unresolved",
    }
}

fn count(part: usize, total: usize) -> String {
    if part == total { format!("all {total} cells") } else { format!("{part} of {total} cells") }
}

/// `1.31x, interval 1.28-1.35`.
fn figure(result: &CellResult) -> String {
    format!("{:.2}x, interval {:.2}-{:.2}", result.ratio, result.ci.0, result.ci.1)
}

/// For each level of the caches, how far known displacers are off; what the calls displaced is in
/// the table.
fn footprint_sentences(record: &Record) -> Vec<String> {
    let mut said: Vec<String> =
        stats::footprint::levels(record).iter().flat_map(level_sentences).collect();
    if said.is_empty() {
        said.push("No level of the caches could be measured.".to_owned());
    }
    said
}

fn level_sentences(level: &LevelFigures) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(level.program.as_ref().map(|program| {
        format!(
            "{}: the program displaces {}{:.0} lines ({:.0}-{:.0}) in {:.0} us of CPU time, {:.0} \
             lines in 100 us; {} slices.",
            level.level,
            if program.is_at_least { "at least " } else { "" },
            program.lines,
            program.ci.0,
            program.ci.1,
            program.cpu_ns / 1000.0,
            program.per_100_us,
            program.slices
        )
    }));
    said.push(format!("{}: {}", level.level, level.sentence()));
    said.extend(
        level.least_lines.map(|least| {
            format!("{}: fewer than {least:.0} lines read cannot be seen.", level.level)
        }),
    );
    said
}

/// The verdict on a program's turns, what the kernel counted, and what to do.
fn turns_sentences(record: &Record) -> Vec<String> {
    match stats::turns::outcome(record) {
        Some(outcome) => {
            vec![outcome.sentence(), outcome.counted_sentence(), outcome.advice()]
        }
        None => vec![format!(
            "No verdict: the record holds {} good turns, and five pairs make one.",
            record.samples.len()
        )],
    }
}

fn turns_without_verdict(record: &Record) -> Vec<String> {
    turns_sentences(record).into_iter().skip(1).collect()
}

/// A warning where TCP that paces was between processes that were measured: that says more than
/// what was compared.
///
/// Over a loopback an acknowledgement takes about a microsecond, and what BBR makes of that is up
/// to whether the reader happened to be awake: a timer for each packet, or none.
fn pacing_sentence(record: &Record) -> Option<String> {
    let names = record.tcp_congestion_controls();
    let name = names.iter().find(|name| name.starts_with("bbr"))?;
    let remedy = match record.header.experiment {
        ExperimentKind::Http => " With --congestion reno it does not.",
        _ => "",
    };
    Some(format!(
        "TCP's congestion control was {name}, which paces: on one machine its estimate of the \
         bandwidth decides what goes through and what that costs, and differs by chance from one \
         connection to the next.{remedy}"
    ))
}

/// What kept the record from being whole and clean, in one sentence.
fn trouble(record: &Record) -> Option<String> {
    let mut parts = Vec::new();
    let wrong = record.errors.iter().filter(|error| error.wrong_byte).count();
    if wrong > 0 {
        parts.push(format!("a byte was wrong in {}", runs(wrong)));
    }
    let failed = record.errors.len() - wrong;
    if failed > 0 {
        parts.push(format!("{} failed and gave no number", runs(failed)));
    }
    if !record.complete {
        parts.push(format!("the record was cut short after {} samples", record.samples.len()));
    }
    if parts.is_empty() {
        return None;
    }
    Some(capital(&parts.join(", and ")) + ".")
}

/// A text with its first letter in upper case.
fn capital(text: &str) -> String {
    let mut text = text.to_owned();
    if let Some(first) = text.get_mut(0..1) {
        first.make_ascii_uppercase();
    }
    text
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".to_owned() } else { format!("{count} runs") }
}

#[cfg(test)]
#[path = "verdict/tests.rs"]
mod tests;
