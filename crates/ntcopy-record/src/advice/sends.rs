//! What sends hinted responses of the daemons, and an unmodified program.

use super::hints::{ADAPTIVE, COPY, RUN_SWEEP, name_kernel, rounds};
use super::pays::Pays;
use super::points::{Gain, Point, Question, argument, cells, ids, points, tally, wins_from, word};
use super::{Advice, Decision, Topic};
use crate::record::{ExperimentKind, Record};
use crate::stats::THROUGHPUT;
use crate::units::Bytes;

/// Whole responses through proxyd; alone, or as one of several stacks.
pub(super) fn http(records: &[&Record]) -> Advice {
    let beside = |mode: &str, other: &str| -> Vec<Point<'_>> {
        let question = Question {
            experiment: ExperimentKind::Http,
            mode,
            other,
            metric: THROUGHPUT,
            size: "asked_bytes",
            is_about: &|_, cell| word(&cell.params, "form") == Some("closed"),
        };
        points(records, &question)
    };
    let mut found = beside(ADAPTIVE, COPY);
    if found.is_empty() {
        found = beside("storaged+proxyd:adaptive", "storaged+proxyd:copy");
    }
    let pays = Pays {
        topic: Topic::Http,
        points: &found,
        smaller: &[],
        thing: "Hinted responses (storaged behind proxyd, by the rule)",
        unit: "asked for",
        setting: &|from| {
            format!(
                "--mode adaptive of storaged and proxyd where {} or more are asked \
                 for at a time",
                Bytes(from)
            )
        },
        leave: "--mode adaptive of storaged and proxyd",
        least: Some(1.0),
        run: &["ntcopy", "bench", "http", "--kernel", "um"],
    };
    let (mut advice, used) = pays.answer();
    name_kernel(&mut advice, &used);
    advice
}

/// Which sends are large enough for a hint to pay, where enough is in flight for any to pay.
pub(super) struct Large<'a> {
    /// Bytes in flight from which on sends of the largest object win in every cell.
    pub in_flight_bytes: u64,
    /// There, the size of a send from which on every cell wins.
    pub send_bytes: u64,
    /// The cells there with such sends.
    pub large: Vec<Point<'a>>,
    /// The cells there with smaller ones.
    pub small: Vec<Point<'a>>,
}

/// Finds them; none where hints do not win in every cell from any number of bytes in flight on.
///
/// Only cells with that much in flight are looked at: elsewhere a loss says nothing of the size of
/// a send.
pub(super) fn large_sends<'a>(records: &[&'a Record]) -> Option<Large<'a>> {
    let object = |point: &Point<'_>| point.number("object_bytes");
    let mut points = rounds(records, "unix", ADAPTIVE, COPY);
    let largest = points.iter().filter_map(object).max()?;
    let of_largest: Vec<Point<'_>> =
        points.iter().filter(|point| object(point) == Some(largest)).cloned().collect();
    let in_flight_bytes = wins_from(&of_largest)?;
    points.retain(|point| point.size_bytes >= in_flight_bytes);
    // What follows goes by the size of one send.
    for point in &mut points {
        point.size_bytes = object(point).unwrap_or(0);
    }
    points.sort_by_key(|point| point.size_bytes);
    let send_bytes = wins_from(&points)?;
    let (large, small) = points.into_iter().partition(|point| point.size_bytes >= send_bytes);
    Some(Large { in_flight_bytes, send_bytes, large, small })
}

/// `ntcopy run`: from which send on an unmodified program's sends are hinted.
pub fn run(records: &[&Record]) -> Advice {
    let Some(found) = large_sends(records) else { return do_not_run(records) };
    let used: Vec<&Point<'_>> = found.large.iter().collect();
    let smaller = if found.small.is_empty() {
        "Smaller sends were not measured there.".to_owned()
    } else {
        format!("Among smaller ones {}.", tally(&found.small.iter().collect::<Vec<_>>(), "a send"))
    };
    let why = format!(
        "For programs that have {} or more in flight: there hinted sends of {} and more win in every \
         cell ({}). {smaller}",
        Bytes(found.in_flight_bytes),
        Bytes(found.send_bytes),
        cells(used.len()),
    );
    let setting = format!("ntcopy run --min-bytes {} -- PROGRAM", argument(found.send_bytes));
    let mut advice = Advice {
        setting: Some(setting),
        gain: Gain::of(used.iter().copied()),
        records: ids(&used),
        ..Advice::bare(Topic::Run, Decision::Set, why)
    };
    name_kernel(&mut advice, &used);
    advice
}

fn do_not_run(records: &[&Record]) -> Advice {
    let sends = rounds(records, "unix", ADAPTIVE, COPY);
    let Some(gain) = Gain::of(&sends) else {
        let why = "Hinted sends were not measured on this machine.";
        return Advice::no_evidence(Topic::Run, why, &RUN_SWEEP);
    };
    let all: Vec<&Point<'_>> = sends.iter().collect();
    let why = format!(
        "Hinted sends do not win in every cell from any number of bytes in flight on: of {} {}.",
        cells(all.len()),
        tally(&all, "in flight")
    );
    Advice {
        setting: Some("ntcopy run".to_owned()),
        gain: Some(gain),
        records: ids(&all),
        ..Advice::bare(Topic::Run, gain.without_setting(), why)
    }
}
