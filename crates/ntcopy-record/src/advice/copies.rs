//! Copies and fills in user space, and what they leave of a hot set.

use super::check::{Check, distinct};
use super::pays::Pays;
use super::points::{Gain, Point, Question, figure, number, points, sizes, word, words};
use super::{Advice, Decision, Target, Topic};
use crate::record::{Cell, ExperimentKind, Record};
use crate::stats::{THROUGHPUT, WALKS, versus};

/// The library's own choice.
const OURS: &str = "ours";
/// Normal copies beside a hot set, and those with both sides non-temporal.
const COPY: &str = "copy";
const NT_BOTH: &str = "nt-both";
const LIBC: &str = "libc";
/// A loop that is non-temporal at any size.
const MOVNTI: &str = "movnti";
/// How many bytes of a sample the library placed non-temporally.
const NONTEMPORAL: &str = "nontemporal_bytes";

pub fn all(records: &[&Record], target: &Target) -> Vec<Advice> {
    vec![copies(records), in_use(records, target), fills(records, target), hot_set(records)]
}

/// Whether the library chose non-temporal stores in a cell: only there it says something of them.
fn is_nontemporal(record: &Record, cell: &Cell) -> bool {
    record.samples.iter().any(|sample| {
        sample.cell == cell.cell
            && sample.mode == OURS
            && sample.counters.get(NONTEMPORAL).is_some_and(|bytes| *bytes > 0)
    })
}

fn destination_is(cell: &Cell, heat: &str) -> bool {
    word(&cell.params, "destination") == Some(heat)
}

/// Whether the C library is temporal in a cell: above its own threshold a comparison with it says
/// nothing of whether to be temporal.
fn libc_is_temporal(record: &Record, cell: &Cell) -> bool {
    let machine = &record.machine;
    let own = match record.header.experiment {
        ExperimentKind::Memset => machine.libc_memset_nt_threshold_bytes,
        _ => machine.libc_nt_threshold_bytes,
    };
    own.is_none_or(|own| number(&cell.params, "size_bytes").is_some_and(|size| size < own))
}

/// A way that is non-temporal against libc that is not.
fn against_libc<'a>(
    records: &[&'a Record],
    (experiment, mode): (ExperimentKind, &str),
    is_about: &dyn Fn(&Record, &Cell) -> bool,
) -> Vec<Point<'a>> {
    let question = Question {
        experiment,
        mode,
        other: LIBC,
        metric: THROUGHPUT,
        size: "size_bytes",
        is_about: &|record, cell| is_about(record, cell) && libc_is_temporal(record, cell),
    };
    points(records, &question)
}

/// The library, where it chose non-temporal stores.
fn ours<'a>(
    records: &[&'a Record],
    experiment: ExperimentKind,
    is_about: &dyn Fn(&Cell) -> bool,
) -> Vec<Point<'a>> {
    against_libc(records, (experiment, OURS), &|record, cell| {
        is_about(cell) && is_nontemporal(record, cell)
    })
}

fn copies(records: &[&Record]) -> Advice {
    let points = ours(records, ExperimentKind::Memcpy, &|cell| destination_is(cell, "cold"));
    let pays = Pays {
        topic: Topic::Copies,
        points: &points,
        thing: "Non-temporal copies of a stream into memory that is not in cache",
        unit: "a call",
        setting: &|from| {
            format!(
                "ntcopy::Stream::known(total), or a non-temporal hint for the \
                 destination, for calls of {} and more",
                crate::units::Bytes(from)
            )
        },
        leave: "non-temporal hints for the destination",
        least: 1.0,
        run: &["ntcopy", "bench", "memcpy", "--modes", "ours", "--destination", "cold"],
    };
    let (mut advice, used) = pays.answer();
    advice.check = checked(&advice, &used, "memcpy", OURS);
    advice
}

fn in_use(records: &[&Record], target: &Target) -> Advice {
    let mut points = ours(records, ExperimentKind::Memcpy, &|cell| destination_is(cell, "hot"));
    let (mut mode, mut thing) = (OURS, "Non-temporal copies into the same buffer again and again");
    if points.is_empty() {
        // The library leaves what is in use to the C library; the loop does not.
        let is_hot = |_: &Record, cell: &Cell| destination_is(cell, "hot");
        points = against_libc(records, (ExperimentKind::Memcpy, MOVNTI), &is_hot);
        (mode, thing) = (MOVNTI, "Copies by MOVNTI into the same buffer again and again");
    }
    let profile = target.profile.as_ref();
    let pays = Pays {
        topic: Topic::CopiesInUse,
        points: &points,
        thing,
        unit: "a call",
        setting: &|_| "Hints::AUTO, the library's own choice".to_owned(),
        leave: "non-temporal stores into buffers in use",
        least: 1.0,
        run: &["ntcopy", "bench", "memcpy", "--modes", "ours,movnti", "--destination", "hot"],
    };
    let (mut advice, used) = pays.answer();
    say_profile(
        &mut advice,
        profile.map(|p| (p.place.as_str(), p.date.as_str(), p.copy_from_bytes)),
    );
    advice.check = checked(&advice, &used, "memcpy", mode);
    advice
}

fn fills(records: &[&Record], target: &Target) -> Advice {
    let points = ours(records, ExperimentKind::Memset, &|_| true);
    let profile = target.profile.as_ref();
    let pays = Pays {
        topic: Topic::Fills,
        points: &points,
        thing: "Non-temporal fills",
        unit: "a call",
        setting: &|from| {
            format!(
                "a non-temporal hint for fills of {} and more (ntcopy footprint calibrate \
                 writes the library's own threshold)",
                crate::units::Bytes(from)
            )
        },
        leave: "non-temporal hints for fills",
        least: 1.0,
        run: &["ntcopy", "bench", "memset", "--modes", "ours"],
    };
    let (mut advice, used) = pays.answer();
    say_profile(
        &mut advice,
        profile.map(|p| (p.place.as_str(), p.date.as_str(), p.fill_from_bytes)),
    );
    advice.check = checked(&advice, &used, "memset", OURS);
    advice
}

/// What the library goes by now.
fn say_profile(advice: &mut Advice, profile: Option<(&str, &str, Option<u64>)>) {
    advice.current = Some(match profile {
        Some((place, date, from)) => {
            let from = from.map_or("never".to_owned(), |bytes| {
                format!("from {} on", crate::units::Bytes(bytes))
            });
            format!("non-temporal {from}, by the profile of {date} ({place})")
        }
        None => {
            "by CPUID: there is no profile of this machine (ntcopy footprint calibrate)".to_owned()
        }
    });
}

/// `bench memcpy` or `memset` over the cells that the advice rests on.
fn checked(advice: &Advice, used: &[&Point<'_>], experiment: &str, mode: &str) -> Option<Check> {
    if advice.decision != Decision::Set {
        return None;
    }
    let used = distinct(used);
    let size_list = sizes(&used, "size_bytes");
    let threads = words(&used, "threads");
    let mut args: Vec<String> =
        ["bench", experiment, "--modes", mode, "--size", &size_list, "--threads", &threads]
            .map(str::to_owned)
            .into();
    for side in ["source", "destination"] {
        let heats = words(&used, side);
        if !heats.is_empty() {
            args.extend([format!("--{side}"), heats]);
        }
    }
    Some(Check::of(args, &used, (mode, LIBC), THROUGHPUT))
}

/// What copies leave of a hot set on the same core: the victim's speed, and all of it together.
fn hot_set(records: &[&Record]) -> Advice {
    let question = Question {
        experiment: ExperimentKind::Retention,
        mode: NT_BOTH,
        other: COPY,
        metric: WALKS,
        size: "hot_set_bytes",
        is_about: &|_, cell| word(&cell.params, "victim") == Some("same-core"),
    };
    let found = points(records, &question);
    let pays = Pays {
        topic: Topic::HotSetCopies,
        points: &found,
        thing: "For a hot set on the same core, copies that are non-temporal on both sides",
        unit: "of hot set",
        setting: &|_| {
            "non-temporal hints for source and destination of copies that are \
             not read soon"
                .to_owned()
        },
        leave: "non-temporal hints for a hot set's sake",
        least: 1.0,
        run: &["ntcopy", "bench", "retention", "--victim", "same-core"],
    };
    let (mut advice, used) = pays.answer();
    if let Some(whole) = whole(&used, NT_BOTH, COPY) {
        advice.why.push_str(&format!(
            " The figure is the other program's speed; copies and that program together come to {}.",
            figure(whole.ratio, whole.ci)
        ));
    }
    if advice.decision == Decision::Set {
        let used = distinct(&used);
        let objects = sizes(&used, "object_bytes");
        let hot = sizes(&used, "hot_set_bytes");
        let args = [
            "bench",
            "retention",
            "--victim",
            "same-core",
            "--modes",
            "copy,nt-both",
            "--object",
            &objects,
            "--hot-set",
            &hot,
        ];
        advice.check =
            Some(Check::of(args.map(str::to_owned).into(), &used, (NT_BOTH, COPY), WALKS));
    }
    advice
}

/// Traffic and victim together, over the same cells.
pub fn whole(used: &[&Point<'_>], mode: &str, other: &str) -> Option<Gain> {
    let all: Vec<_> = used
        .iter()
        .filter_map(|point| versus(point.record, point.cell.cell, mode, other, THROUGHPUT))
        .collect();
    Gain::of_all(&all.iter().collect::<Vec<_>>())
}

/// Bytes of the level-2 cache; 0 if the record does not say.
pub fn l2_bytes(target: &Target) -> u64 {
    let l2 = target.machine.caches.iter().filter(|cache| cache.level == 2);
    l2.map(|cache| cache.size_bytes).max().unwrap_or(0)
}
