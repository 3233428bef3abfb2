//! What pays or does not by one experiment: copies and fills in user space.

use super::pays::Pays;
use super::{Advice, ProfileFacts, Target, Topic};
use crate::Judged;
use crate::claims::{Question, of_cells};
use crate::modes::{LIBC, MOVNTI, OURS};
use crate::stats::THROUGHPUT;
use ntcopy_record::units::Bytes;
use ntcopy_record::{Cell, ExperimentKind, number, word};

/// A question, and how its answer is worded.
pub struct Row {
    topic: Topic,
    experiment: ExperimentKind,
    /// A mode, what it is held against, and what pays by it; the first that was measured counts.
    asked: &'static [(&'static str, &'static str, &'static str)],
    is_about: fn(&Judged, &Cell) -> bool,
    setting: fn(Bytes) -> String,
    leave: &'static str,
    run: &'static str,
    /// From which size on the library is non-temporal by its profile.
    now: Option<fn(&ProfileFacts) -> Option<u64>>,
}

pub const LIBRARY: [Row; 3] = [
    Row {
        topic: Topic::COPIES,
        experiment: ExperimentKind::Memcpy,
        asked: &[(OURS, LIBC, "Non-temporal copies of a stream into memory that is not in cache")],
        is_about: |_, cell| word(&cell.params, "destination") == Some("cold"),
        setting: |from| {
            format!(
                "ntcopy::Stream::known(total), or a non-temporal hint for the \
                 destination, for calls of {from} and more"
            )
        },
        leave: "non-temporal hints for the destination",
        run: "ntcopy bench memcpy --modes ours --destination cold",
        now: None,
    },
    Row {
        topic: Topic::COPIES_IN_USE,
        experiment: ExperimentKind::Memcpy,
        asked: &[
            (OURS, LIBC, "Non-temporal copies into the same buffer again and again"),
            // The library leaves what is in use to the C library; a loop does not.
            (MOVNTI, LIBC, "Copies by MOVNTI into the same buffer again and again"),
        ],
        is_about: |_, cell| word(&cell.params, "destination") == Some("hot"),
        setting: |_| "Hints::AUTO, the library's own choice".to_owned(),
        leave: "non-temporal stores into buffers in use",
        run: "ntcopy bench memcpy --modes ours,movnti --destination hot",
        now: Some(|profile| profile.copy_from_bytes),
    },
    Row {
        topic: Topic::FILLS,
        experiment: ExperimentKind::Memset,
        asked: &[(OURS, LIBC, "Non-temporal fills")],
        is_about: |_, _| true,
        setting: |from| {
            format!(
                "a non-temporal hint for fills of {from} and more (ntcopy footprint calibrate \
                 writes the library's own threshold)"
            )
        },
        leave: "non-temporal hints for fills",
        run: "ntcopy bench memset --modes ours",
        now: Some(|profile| profile.fill_from_bytes),
    },
];

impl Row {
    pub fn advice(&self, records: &[&Judged], target: &Target) -> Advice {
        let measured = |&(mode, other, thing): &(&'static str, &'static str, &'static str)| {
            let question = Question { mode, other, metric: THROUGHPUT };
            let says = |record: &Judged, cell: &Cell| {
                (self.is_about)(record, cell) && says_something((mode, other), record, cell)
            };
            (thing, of_cells(records, &self.experiment, &|_| Some(question), &says))
        };
        let all = self.asked.iter().map(measured);
        let found = all.reduce(|first, next| if first.1.is_empty() { next } else { first });
        let (thing, points) = found.unwrap_or_default();
        let (setting, leave) = (&self.setting, self.leave);
        let (topic, least, run) = (self.topic, Some(1.0), self.run);
        let pays = Pays { topic, thing, setting, leave, least, run };
        let (advice, _) = pays.answer(&points);
        Advice { current: self.now.map(|from| profile_words(target, from)), ..advice }
    }
}

/// What the library is held against the C library by says something of non-temporal stores only
/// where the library chose them, and nothing where the C library has them itself, above its own
/// threshold.
fn says_something((mode, other): (&str, &str), record: &Judged, cell: &Cell) -> bool {
    let is_nontemporal = || {
        let ours = record.figures(cell.cell, OURS);
        ours.and_then(|ours| ours.counted).is_some_and(|counted| counted.bypassed_bytes > 0)
    };
    let own = match record.header.experiment {
        ExperimentKind::Memset => record.machine.libc_memset_nt_threshold_bytes,
        _ => record.machine.libc_nt_threshold_bytes,
    };
    let is_below = |own: u64| number(&cell.params, "size_bytes").is_some_and(|size| size < own);
    other != LIBC || own.is_none_or(is_below) && (mode != OURS || is_nontemporal())
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
