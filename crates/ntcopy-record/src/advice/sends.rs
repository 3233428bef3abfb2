//! Sends: hinted and obeyed, hinted and decided by the rule, behind a proxy, beside a hot set.

use super::check::{Check, distinct};
use super::copies::whole;
use super::pays::Pays;
use super::points::{
    Gain, Point, Question, argument, cells, figure, ids, points, sizes, tally, wins_from, word,
    words,
};
use super::{Advice, Decision, Topic};
use crate::record::{Cell, ExperimentKind, Record};
use crate::stats::{THROUGHPUT, WALKS};
use crate::units::Bytes;

pub(super) const COPY: &str = "copy";
pub(super) const NT: &str = "nt";
pub(super) const ADAPTIVE: &str = "adaptive";

/// What is measured where the running kernel has no flag.
const RUN_SWEEP: [&str; 6] = ["ntcopy", "bench", "unix", "--kernel", "um", "--sweep"];

pub fn all(records: &[&Record]) -> Vec<Advice> {
    let mut all = vec![obeyed(records)];
    all.extend(adaptive(records));
    all.extend([http(records), hot_set(records)]);
    all
}

/// Rounds over sockets of a family: a mode by another, by the bytes in flight.
pub(super) fn rounds<'a>(
    records: &[&'a Record],
    family: &str,
    mode: &str,
    other: &str,
) -> Vec<Point<'a>> {
    let question = Question {
        experiment: ExperimentKind::Unix,
        mode,
        other,
        metric: THROUGHPUT,
        size: "in_flight_bytes",
        is_about: &|_, cell| {
            // What small pieces come to says nothing of whole objects.
            word(&cell.params, "form") == Some("rounds")
                && family_of(cell) == family
                && !cell.params.contains_key("pieces")
        },
    };
    points(records, &question)
}

fn family_of(cell: &Cell) -> &str {
    word(&cell.params, "family").unwrap_or("unix")
}

/// The families of rounds that were measured, unix sockets first.
fn families(records: &[&Record]) -> Vec<String> {
    let mut families = vec!["unix".to_owned()];
    let unix = records.iter().filter(|record| record.header.experiment == ExperimentKind::Unix);
    for cell in unix.flat_map(|record| &record.cells) {
        let family = family_of(cell);
        if !families.iter().any(|known| known == family) {
            families.push(family.to_owned());
        }
    }
    families
}

fn obeyed(records: &[&Record]) -> Advice {
    let points = rounds(records, "unix", NT, COPY);
    let pays = Pays {
        topic: Topic::SendsObeyed,
        points: &points,
        thing: "Obeyed hints (MSG_NTCOPY on unix sockets)",
        unit: "in flight",
        setting: &|from| {
            format!("SO_NTCOPY = 3 in programs that always have {} or more in flight", Bytes(from))
        },
        leave: "SO_NTCOPY = 3 (obey)",
        run: &RUN_SWEEP,
    };
    let (mut advice, used) = pays.answer();
    say_kernel(&mut advice, &used);
    checked(advice, &used, NT)
}

fn adaptive(records: &[&Record]) -> Vec<Advice> {
    let one = |family: String| {
        let points = rounds(records, &family, ADAPTIVE, COPY);
        if points.is_empty() && family != "unix" {
            return None;
        }
        let thing = format!("Hinted sends ({family} sockets, by the rule)");
        let pays = Pays {
            topic: Topic::Sends,
            points: &points,
            thing: &thing,
            unit: "in flight",
            setting: &|from| {
                format!(
                    "SO_NTCOPY = 1 and MSG_NTCOPY, or SO_NTCOPY = 2, in programs with {} or more \
                     in flight on {family} sockets",
                    Bytes(from)
                )
            },
            leave: "MSG_NTCOPY",
            run: &RUN_SWEEP,
        };
        let (mut advice, used) = pays.answer();
        say_kernel(&mut advice, &used);
        advice.about = Some(format!("{family} sockets"));
        Some(checked(advice, &used, ADAPTIVE))
    };
    families(records).into_iter().filter_map(one).collect()
}

/// Which kernel the figures are of: not always the one that runs.
pub(super) fn say_kernel(advice: &mut Advice, used: &[&Point<'_>]) {
    if let Some(point) = used.first() {
        let machine = &point.record.machine;
        if machine.kernel_kind != "host" {
            advice.why.push_str(&format!(
                " Measured in {} ({}), whose system calls cost more than a running kernel's.",
                machine.kernel_release, machine.kernel_kind
            ));
        }
    }
}

/// Advice to set something can be measured again.
fn checked(mut advice: Advice, used: &[&Point<'_>], mode: &str) -> Advice {
    if advice.decision == Decision::Set {
        advice.check = again(used, mode);
    }
    advice
}

/// The same rounds again, in the same kind of kernel.
pub(super) fn again(used: &[&Point<'_>], mode: &str) -> Option<Check> {
    let used = distinct(used);
    let kernel = &used.first()?.record.machine.kernel_kind;
    let args = [
        "bench",
        "unix",
        "--kernel",
        kernel,
        "--family",
        &words(&used, "family"),
        "--modes",
        mode,
        "--sockets",
        &words(&used, "sockets"),
        "--object",
        &sizes(&used, "object_bytes"),
        "--dataset",
        &sizes(&used, "dataset_bytes"),
    ];
    Some(Check::of(args.map(str::to_owned).into(), &used, (mode, COPY), THROUGHPUT))
}

/// Whole responses through proxyd; alone, or as one of several stacks.
fn http(records: &[&Record]) -> Advice {
    let of = |mode: &str, other: &str| -> Vec<Point<'_>> {
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
    let mut found = of(ADAPTIVE, COPY);
    if found.is_empty() {
        found = of("storaged+proxyd:adaptive", "storaged+proxyd:copy");
    }
    let pays = Pays {
        topic: Topic::Http,
        points: &found,
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
        run: &["ntcopy", "bench", "http", "--kernel", "um"],
    };
    let (mut advice, used) = pays.answer();
    say_kernel(&mut advice, &used);
    advice
}

/// What obeyed sends leave of a hot set on the sender's CPU.
fn hot_set(records: &[&Record]) -> Advice {
    let question = Question {
        experiment: ExperimentKind::Retention,
        mode: NT,
        other: COPY,
        metric: WALKS,
        size: "in_flight_bytes",
        is_about: &|_, cell| word(&cell.params, "form") == Some("victim"),
    };
    let found = points(records, &question);
    let pays = Pays {
        topic: Topic::HotSetSends,
        points: &found,
        thing: "For a hot set on the sender's CPU, obeyed hints (SO_NTCOPY = 3)",
        unit: "in flight",
        setting: &|_| {
            "SO_NTCOPY = 3 in programs whose hot data matters more than the sends".to_owned()
        },
        leave: "SO_NTCOPY = 3 for a hot set's sake",
        run: &["ntcopy", "bench", "retention", "--kernel", "um"],
    };
    let (mut advice, used) = pays.answer();
    if let Some(whole) = whole(&used, NT, COPY) {
        advice.why.push_str(&format!(
            " The figure is the other program's speed; sends and that program together come to {}.",
            figure(whole.ratio, whole.ci)
        ));
    }
    say_kernel(&mut advice, &used);
    if advice.decision == Decision::Set {
        let used = distinct(&used);
        let kernel = used.first().map_or("um", |point| point.record.machine.kernel_kind.as_str());
        let args = [
            "bench",
            "retention",
            "--kernel",
            kernel,
            "--sockets",
            &words(&used, "sockets"),
            "--object",
            &sizes(&used, "object_bytes"),
            "--dataset",
            &sizes(&used, "dataset_bytes"),
            "--hot-set",
            &sizes(&used, "hot_set_bytes"),
        ];
        let args = args.map(str::to_owned).into();
        advice.check = Some(Check::of(args, &used, (NT, COPY), WALKS));
    }
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
    say_kernel(&mut advice, &used);
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
        ..Advice::bare(Topic::Run, Decision::Leave, why)
    }
}
