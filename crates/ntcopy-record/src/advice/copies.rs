//! Copies and fills in user space.

use super::pays::Pays;
use super::points::{Point, Question, number, points, word};
use super::{Advice, ProfileFacts, Target, Topic};
use crate::record::{Cell, ExperimentKind, Record};
use crate::stats::THROUGHPUT;
use crate::units::Bytes;

/// The library's own choice.
const OURS: &str = "ours";
const LIBC: &str = "libc";
/// A loop that is non-temporal at any size.
const MOVNTI: &str = "movnti";
/// How many bytes of a sample the library placed non-temporally.
const NONTEMPORAL: &str = "nontemporal_bytes";

pub fn all(records: &[&Record], target: &Target) -> Vec<Advice> {
    vec![copies(records), in_use(records, target), fills(records, target)]
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
        smaller: &[],
        thing: "Non-temporal copies of a stream into memory that is not in cache",
        unit: "a call",
        setting: &|from| {
            format!(
                "ntcopy::Stream::known(total), or a non-temporal hint for the \
                 destination, for calls of {} and more",
                Bytes(from)
            )
        },
        leave: "non-temporal hints for the destination",
        least: Some(1.0),
        run: &["ntcopy", "bench", "memcpy", "--modes", "ours", "--destination", "cold"],
    };
    pays.answer().0
}

fn in_use(records: &[&Record], target: &Target) -> Advice {
    let mut points = ours(records, ExperimentKind::Memcpy, &|cell| destination_is(cell, "hot"));
    let mut thing = "Non-temporal copies into the same buffer again and again";
    if points.is_empty() {
        // The library leaves what is in use to the C library; the loop does not.
        let is_hot = |_: &Record, cell: &Cell| destination_is(cell, "hot");
        points = against_libc(records, (ExperimentKind::Memcpy, MOVNTI), &is_hot);
        thing = "Copies by MOVNTI into the same buffer again and again";
    }
    let pays = Pays {
        topic: Topic::CopiesInUse,
        points: &points,
        smaller: &[],
        thing,
        unit: "a call",
        setting: &|_| "Hints::AUTO, the library's own choice".to_owned(),
        leave: "non-temporal stores into buffers in use",
        least: Some(1.0),
        run: &["ntcopy", "bench", "memcpy", "--modes", "ours,movnti", "--destination", "hot"],
    };
    let (mut advice, _) = pays.answer();
    advice.current = Some(profile_words(target, |profile| profile.copy_from_bytes));
    advice
}

fn fills(records: &[&Record], target: &Target) -> Advice {
    let points = ours(records, ExperimentKind::Memset, &|_| true);
    let pays = Pays {
        topic: Topic::Fills,
        points: &points,
        smaller: &[],
        thing: "Non-temporal fills",
        unit: "a call",
        setting: &|from| {
            format!(
                "a non-temporal hint for fills of {} and more (ntcopy footprint calibrate \
                 writes the library's own threshold)",
                Bytes(from)
            )
        },
        leave: "non-temporal hints for fills",
        least: Some(1.0),
        run: &["ntcopy", "bench", "memset", "--modes", "ours"],
    };
    let (mut advice, _) = pays.answer();
    advice.current = Some(profile_words(target, |profile| profile.fill_from_bytes));
    advice
}

/// What the library goes by now.
fn profile_words(target: &Target, from: fn(&ProfileFacts) -> Option<u64>) -> String {
    let Some(profile) = &target.profile else {
        return "by CPUID: there is no profile of this machine (ntcopy footprint calibrate)"
            .to_owned();
    };
    let from =
        from(profile).map_or("never".to_owned(), |bytes| format!("from {} on", Bytes(bytes)));
    format!("non-temporal {from}, by the profile of {} ({})", profile.date, profile.place)
}
