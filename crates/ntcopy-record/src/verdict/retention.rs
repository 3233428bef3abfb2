//! What the victim felt, in words: its own speed, and what all of it took.

mod copies;

use crate::params::cell_words;
use crate::record::Record;
use crate::stats::retention::{Felt, felt};
use crate::stats::{self, Verdict, Versus};

/// A sentence a mode and cell; of copies, what it comes to.
pub fn sentences(record: &Record) -> Vec<String> {
    if record.cells.iter().any(stats::retention::copies::is_one) {
        return copies::sentences(record);
    }
    let mut sentences = Vec::new();
    for cell in &record.cells {
        let felt = felt(record, cell);
        let idle = felt.iter().find(|felt| felt.mode == "idle");
        let place = super::capital(&cell_words(&cell.params));
        if let (Some(idle), Some(copy)) = (idle, of(&felt, &record.header.baseline)) {
            sentences.push(format!(
                "{place}: a line of the hot set takes {:.1} ns when idle and {:.1} ns beside {} \
                 (99 of 100 walks within {:.1} and {:.1}).",
                idle.p50_ns, copy.p50_ns, copy.mode, idle.p99_ns, copy.p99_ns,
            ));
        }
        let others = felt.iter().filter(|felt| felt.mode != "idle");
        sentences.extend(others.filter_map(|felt| sentence(&place, felt)));
    }
    for line in &record.unavailable {
        let why = line.why.trim_end_matches('.');
        sentences.push(format!("{} was not measured: {why}.", super::name(&line.mode)));
    }
    if sentences.is_empty() {
        sentences.push("Nothing was compared: the record holds no walks.".to_owned());
    }
    sentences
}

fn of<'a>(felt: &'a [Felt], mode: &str) -> Option<&'a Felt> {
    felt.iter().find(|felt| felt.mode == mode)
}

fn sentence(place: &str, felt: &Felt) -> Option<String> {
    let victim = felt.against_baseline.as_ref()?;
    let whole = felt.whole_against_baseline.as_ref()?;
    Some(format!(
        "{place}: alongside {} other programs on this CPU {} ({:.1} ns per line; {}); sends and \
         their reads together {} ({}).",
        super::name(&felt.mode).replacen("The ", "the ", 1),
        alone(victim.verdict()),
        felt.p50_ns,
        figure(victim),
        together(whole.verdict()),
        figure(whole),
    ))
}

/// What becomes of the traffic and the other programs together, as a verb.
fn together(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Win => "are faster",
        Verdict::Loss => "are slower",
        Verdict::Equal => "are as fast",
        Verdict::Unresolved => "are unresolved",
    }
}

/// What becomes of the other programs.
fn alone(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Win => "get faster",
        Verdict::Loss => "get slower",
        Verdict::Equal => "feel no difference",
        Verdict::Unresolved => "are unresolved",
    }
}

fn figure(versus: &Versus) -> String {
    format!("{:.2}x, interval {:.2}-{:.2}", versus.ratio, versus.ci.0, versus.ci.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::retention::tests::sketch;

    #[test]
    fn both_sides_are_said() {
        let said = sentences(&sketch([10, 5, 8], [1000, 1, 900]));
        assert_eq!(
            said,
            [
                "Objects of 1 MiB, hot set of 6400 bytes, 1 socket: a line of the hot set takes 5.0 \
                 ns when idle and 10.0 ns beside copy (99 of 100 walks within 45.0 and 90.0).",
                "Objects of 1 MiB, hot set of 6400 bytes, 1 socket: alongside MSG_NTCOPY other \
                 programs on this CPU get faster (8.0 ns per line; 1.25x, interval 1.25-1.25); sends \
                 and their reads together are slower (0.90x, interval 0.90-0.90).",
            ]
        );
    }
}
