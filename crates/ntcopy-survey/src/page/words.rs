//! Words that text and page have in common.

use ntcopy_judge::Ratio;
use ntcopy_judge::stats::{self, THROUGHPUT, Verdict};
use ntcopy_record::foreign::visible;
use ntcopy_report::text;

use crate::analysis::Analysis;
use crate::analysis::over::Over;
use crate::analysis::series::Series;
use crate::analysis::unlike::Unlike;
use crate::summary::Question;

/// `1 machine`, `2,500 machines`.
pub fn count(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", text::thousands(count as f64))
}

/// `memcpy: ours relative to libc; threads 1`, and in what, unless it is throughput.
pub fn question(question: &Question) -> String {
    let Question { experiment, mode, baseline, metric, words, .. } = question;
    let metric = match metric.as_str() {
        THROUGHPUT => "",
        other => &format!(", {}", stats::words(other)),
    };
    let about = if words.is_empty() { String::new() } else { format!("; {words}") };
    format!("{experiment}: {mode} relative to {baseline}{metric}{about}")
}

/// `1.31x (1.29-1.33)`; with `*` where that is no interval over machines.
pub fn figure(over: &Over) -> String {
    let mark = if over.machines < crate::analysis::over::LEAST_MACHINES { "*" } else { "" };
    format!("{}{mark}", Ratio { ratio: over.median, ci: (over.low, over.high) })
}

/// The size from which on a mode wins.
pub fn wins_from(series: &Series) -> String {
    let points = &series.points;
    let has = |verdict| points.iter().any(|point| point.verdict == verdict);
    match series.wins_from_bytes {
        Some(bytes) if points.len() > 1 && Some(bytes) == points[0].size_bytes => {
            "every size".to_owned()
        }
        Some(bytes) => text::size(bytes),
        None if points.iter().all(|point| point.verdict == Verdict::Equal) => {
            "no difference".to_owned()
        }
        None if !has(Verdict::Win) && !has(Verdict::Loss) => "unresolved".to_owned(),
        None if points[0].size_bytes.is_none() => points[0].verdict.as_str().to_owned(),
        None if has(Verdict::Win) => "not to stay".to_owned(),
        None => "never".to_owned(),
    }
}

/// `0.71x at 64 KiB`.
pub fn least(series: &Series) -> String {
    let least = series.least();
    let size = least.size_bytes.map_or(String::new(), |bytes| format!(" at {}", text::size(bytes)));
    format!("{}{size}", text::ratio(least.ratio.median))
}

/// What the report comes to.
pub fn verdict(analysis: &Analysis) -> Vec<String> {
    let mut sentences = vec![format!(
        "{} of {}, {}.",
        count(analysis.records, "record"),
        count(analysis.machines, "machine"),
        count(analysis.models.len(), "CPU model")
    )];
    sentences.push(match (analysis.unlike.len(), analysis.judged) {
        (_, 0) => "No model has enough machines to tell which are unlike the others.".to_owned(),
        (named, judged) => format!("Unlike their model: {named} of {}.", count(judged, "machine")),
    });
    for (why, records) in &analysis.left_out {
        sentences.push(format!("Not counted: {}, since {why}.", count(*records, "record")));
    }
    sentences
}

/// A machine by its node's name, or the beginning of its id.
pub fn machine(one: &Unlike) -> String {
    let id = &one.machine.0;
    visible(one.node.as_deref().unwrap_or(id.get(..12).unwrap_or(id))).into_owned()
}

/// How far a machine is from its model, and what shows it most.
pub fn unlike(one: &Unlike) -> String {
    let asked = &one.example.question;
    let size = asked
        .size_bytes
        .map_or(String::new(), |bytes| format!(" at {} {}", text::size(bytes), asked.size_of));
    format!(
        "typically {} off its model in {}, where {} is usual; {}{size}: {}, its model {}",
        text::percent(one.off - 1.0),
        one.experiment,
        text::percent(one.usual - 1.0),
        question(asked),
        text::ratio(one.example.ratio),
        text::ratio(one.example.model),
    )
}

/// What the machine's record says differs.
pub fn differs(one: &Unlike) -> String {
    let differs = one.differs.iter();
    let words: Vec<String> =
        differs.map(|one| format!("{} {}, others {}", one.what, one.here, one.others)).collect();
    if words.is_empty() { "no recorded fact".to_owned() } else { words.join("; ") }
}
