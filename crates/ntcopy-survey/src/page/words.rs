//! Words that text and page have in common.

use ntcopy_record::ExperimentKind;
use ntcopy_record::advice::{Advice, Decision};
use ntcopy_record::stats::{P99, PER_CPU, THROUGHPUT, Verdict, WALKS};
use ntcopy_report::text;
use serde_json::Value;

use crate::analysis::Analysis;
use crate::analysis::advice::{ModelAdvice, Rests};
use crate::analysis::facts::{Differs, Thresholds};
use crate::analysis::series::{Crossover, Series};
use crate::analysis::unlike::{Example, Unlike};
use crate::summary::Question;

/// `1 machine`, `2,500 machines`.
pub fn count(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", text::thousands(count as f64))
}

/// A name on one line: it comes from a record, and a record may come from anybody.
pub fn plain(name: &str) -> String {
    name.replace(char::is_control, "?")
}

/// The parameters of a cell, taken apart: names and values.
fn parameters(about: &str) -> Vec<(&str, Value)> {
    let (mut rest, mut found) = (about, Vec::new());
    while let Some((name, tail)) = rest.split_once('=') {
        let mut values = serde_json::Deserializer::from_str(tail).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { break };
        rest = tail.get(values.byte_offset()..).unwrap_or_default();
        found.push((name.trim(), value));
    }
    found
}

/// The same in words: `destination cold, source cold, threads 1`.
pub fn about(about: &str) -> String {
    let words: Vec<String> = parameters(about)
        .into_iter()
        .filter(|(name, _)| *name != "form")
        .map(|(name, value)| match (name.strip_suffix("_bytes"), value.as_u64()) {
            (Some(name), Some(bytes)) => {
                let name = if name == "dataset" { "data set" } else { name };
                format!("{} {}", name.replace('_', " "), text::size(bytes))
            }
            _ => {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                format!("{} {value}", name.replace('_', " "))
            }
        })
        .collect();
    words.join(", ")
}

/// `memcpy: ours by libc`, and by what, unless it is throughput.
pub fn kind(question: &Question) -> String {
    let Question { experiment, mode, baseline, .. } = question;
    let by = match question.metric.as_str() {
        THROUGHPUT => "",
        WALKS => ", the victim's speed",
        PER_CPU => ", bytes for a CPU second",
        P99 => ", the 99th percentile of latency",
        other => return format!("{experiment}: {mode} by {baseline}, {other}"),
    };
    format!("{experiment}: {mode} by {baseline}{by}")
}

/// What a size is of.
pub fn unit(question: &Question) -> &'static str {
    match ExperimentKind::from(question.experiment.rsplit(' ').next().unwrap_or_default()) {
        ExperimentKind::Unix => "in flight",
        ExperimentKind::Retention if question.about.contains("form=\"copies\"") => "of hot set",
        ExperimentKind::Retention => "in flight",
        ExperimentKind::Http => "asked for",
        _ => "a call",
    }
}

/// `1.31x (1.29-1.33)`.
pub fn figure(ratio: f64, bracket: (f64, f64)) -> String {
    format!("{} ({})", text::ratio(ratio), text::interval(bracket))
}

/// The size from which on a mode wins.
pub fn wins_from(series: &Series) -> String {
    let smallest = series.points[0].size_bytes;
    match series.wins_from_bytes {
        Some(bytes) if series.points.len() > 1 && Some(bytes) == smallest => {
            "every size".to_owned()
        }
        Some(bytes) => text::size(bytes),
        None if !series.makes_a_difference() => "no difference".to_owned(),
        None if smallest.is_none() => verdict(series.points[0].verdict()).to_owned(),
        None if series.points.iter().any(|point| point.verdict() == Verdict::Win) => {
            "not to stay".to_owned()
        }
        None => "never".to_owned(),
    }
}

fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Win => "wins",
        Verdict::Loss => "loses",
        Verdict::NoDifference => "no difference",
    }
}

/// `3.1 MiB (2.8-3.4)`.
pub fn crossover(crossover: &Crossover) -> String {
    let (low, high) = crossover.bytes.bracket();
    let middle = place(crossover.bytes.median);
    // A curve without a crossing has no interval worth a word.
    if low == high {
        return middle;
    }
    let (low, high) = (place(low), place(high));
    let same = |unit: &&str| [&middle, &low, &high].iter().all(|words| words.ends_with(*unit));
    match ["GiB", "MiB", "KiB"].iter().find(|unit| same(unit)) {
        Some(unit) => {
            let number = |words: &str| words.trim_end_matches(unit).trim_end().to_owned();
            format!("{middle} ({}-{})", number(&low), number(&high))
        }
        None => format!("{middle} ({low} to {high})"),
    }
}

fn place(bytes: f64) -> String {
    match bytes {
        0.0 => "below all".to_owned(),
        bytes if bytes.is_finite() => rounded(bytes),
        _ => "none".to_owned(),
    }
}

/// A size that was not chosen: two digits or more.
fn rounded(bytes: f64) -> String {
    let (unit, name) = match bytes {
        bytes if bytes >= 1024.0 * 1024.0 * 1024.0 => (1024.0 * 1024.0 * 1024.0, "GiB"),
        bytes if bytes >= 1024.0 * 1024.0 => (1024.0 * 1024.0, "MiB"),
        bytes if bytes >= 1024.0 => (1024.0, "KiB"),
        _ => (1.0, "bytes"),
    };
    let value = bytes / unit;
    if value < 100.0 { format!("{value:.1} {name}") } else { format!("{value:.0} {name}") }
}

/// `17 %`, by which a factor is off.
pub fn off(factor: f64) -> String {
    text::percent(factor - 1.0)
}

/// What the report comes to, in a sentence or two.
pub fn verdict_of(analysis: &Analysis) -> Vec<String> {
    let fleet = &analysis.fleet;
    let mut sentences = vec![format!(
        "{} of {}, {}.",
        count(fleet.records, "record"),
        count(fleet.machines.len(), "machine"),
        count(fleet.models.len(), "CPU model")
    )];
    sentences.push(match (analysis.unlike.len(), analysis.judged) {
        (_, 0) => "No model has enough machines to tell which are unlike the others.".to_owned(),
        (0, judged) => format!(
            "Each of the {} that could be judged behaves like its model.",
            count(judged, "machine")
        ),
        (1, judged) => format!("1 of {} behaves unlike its model.", count(judged, "machine")),
        (named, judged) => {
            format!("{named} of {} behave unlike their model.", count(judged, "machine"))
        }
    });
    for (why, records) in &fleet.left_out {
        sentences.push(format!("Not counted: {}, since {why}.", count(*records, "record")));
    }
    sentences
}

/// A machine by name, and the beginning of its id where that is not its name.
pub fn machine(analysis: &Analysis, machine: usize) -> String {
    let machine = &analysis.fleet.machines[machine];
    let id = &machine.facts.id.0;
    match &machine.node {
        Some(node) => format!("{} ({})", plain(node), plain(id.get(..12).unwrap_or(id))),
        None => plain(machine.name()),
    }
}

/// How far a machine is from its model, and what else it is like.
pub fn unlike(one: &Unlike) -> String {
    let mut words = format!("typically {} off its model", off(one.off));
    if !one.experiments.is_empty() {
        words.push_str(&format!(" in {}", one.experiments.join(", ")));
    }
    if let Some(like) = &one.resembles {
        words.push_str(&format!("; behaves like {} ({} off that)", like.signature, off(like.off)));
    }
    words
}

/// The reason that the data gives.
pub fn reasons(differs: &[Differs]) -> Vec<String> {
    if differs.is_empty() {
        return vec!["no recorded fact differs".to_owned()];
    }
    differs
        .iter()
        .map(|one| {
            let too = match one.same {
                0 => String::new(),
                same => format!("; {same} have it too"),
            };
            format!(
                "{} {} ({} of {} others: {}{too})",
                one.what, one.here, one.with, one.of, one.others
            )
        })
        .collect()
}

/// `memcpy: ours by libc at 4 MiB a call: 0.71x, its model 1.22x (1.21-1.23)`.
pub fn example(example: &Example) -> String {
    let question = &example.question;
    let size = question
        .size_bytes
        .map_or(String::new(), |bytes| format!(" at {} {}", text::size(bytes), unit(question)));
    let about = match about(&question.about) {
        words if words.is_empty() => words,
        words => format!(" ({words})"),
    };
    format!(
        "{}{size}{about}: {}, its model {}",
        kind(question),
        text::ratio(example.here),
        figure(example.model.median, example.model.bracket()),
    )
}

/// `glibc 2.36, memcpy non-temporal from 114 MiB, memset from 24 MiB: 55 machines`.
pub fn thresholds(one: &Thresholds) -> String {
    let from = |what: &str, bytes: Option<u64>| {
        bytes.map_or(String::new(), |bytes| format!(", {what} from {}", text::about_size(bytes)))
    };
    format!(
        "{}{}{}: {}",
        one.libc,
        from("memcpy non-temporal", one.memcpy_bytes),
        from("memset non-temporal", one.memset_bytes),
        count(one.machines, "machine")
    )
}

/// What a model's advice rests on.
pub fn rests(advice: &ModelAdvice) -> String {
    match &advice.rests {
        Rests::Machines(machines) => format!("over {}", count(*machines, "machine")),
        Rests::One(name) => format!("by the records of one machine, {name}"),
    }
}

/// The pieces of advice that say to do something.
pub fn to_do(advice: &ModelAdvice) -> Vec<&Advice> {
    advice.advice.iter().filter(|advice| advice.decision == Decision::Set).collect()
}

/// `GLIBC_TUNABLES=...: 1.31x (1.29-1.33)`.
pub fn setting(advice: &Advice) -> String {
    let gain =
        advice.gain.map_or(String::new(), |gain| format!(": {}", figure(gain.ratio, gain.ci)));
    format!("{}{gain}", advice.setting.as_deref().unwrap_or(advice.topic.title()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::order::Over;

    #[test]
    fn what_was_asked_is_taken_apart() {
        let words = about(
            "dataset_bytes=268435456 family=\"unix\" form=\"rounds\" note=\"a b=c\" threads=1",
        );
        assert_eq!(words, "data set 256 MiB, family unix, note a b=c, threads 1");
        assert_eq!(about(""), "");
    }

    #[test]
    fn counts_and_sizes() {
        assert_eq!(count(1, "machine"), "1 machine");
        assert_eq!(count(2500, "machine"), "2,500 machines");
        assert_eq!(rounded(3.1 * 1024.0 * 1024.0), "3.1 MiB");
        assert_eq!(rounded(300.2 * 1024.0), "300 KiB");
        assert_eq!((place(0.0), place(f64::INFINITY)), ("below all".into(), "none".into()));
        assert_eq!(off(1.17), "17 %");
        let mib = f64::from(1 << 20);
        let over = |values: [f64; 5]| Crossover {
            bytes: Over::of(values.map(|value| value * mib).into()).unwrap(),
            always: 0,
            never: 0,
        };
        assert_eq!(crossover(&over([2.6, 2.9, 3.1, 3.3, 4.0])), "3.1 MiB (2.6-4.0)");
        assert_eq!(crossover(&over([0.5, 2.9, 3.1, 3.3, 4.0])), "3.1 MiB (512 KiB to 4.0 MiB)");
        assert_eq!(crossover(&over([f64::INFINITY; 5])), "none");
    }
}
