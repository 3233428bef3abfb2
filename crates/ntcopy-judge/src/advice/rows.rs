//! What pays or does not by one experiment: copies and fills in user space.

use super::pays::Pays;
use super::{About, Advice, Now, ProfileFacts, Target, Topic};
use crate::Judged;
use crate::claims::{Question, of_cells};
use crate::modes::{LIBC, MOVNTI, OURS};
use crate::stats::THROUGHPUT;
use ntcopy_record::{Cell, ExperimentKind, number, word};

/// A question.
pub struct Row {
    topic: Topic,
    experiment: ExperimentKind,
    /// What is held against the C library; the first that was measured counts.
    modes: &'static [&'static str],
    is_about: fn(&Cell) -> bool,
    /// From which size on the library is non-temporal by its profile.
    now: Option<fn(&ProfileFacts) -> Option<u64>>,
}

pub const LIBRARY: [Row; 3] = [
    Row {
        topic: Topic::Copies,
        experiment: ExperimentKind::Memcpy,
        modes: &[OURS],
        is_about: |cell| word(&cell.params, "destination") == Some("cold"),
        now: None,
    },
    Row {
        topic: Topic::CopiesInUse,
        experiment: ExperimentKind::Memcpy,
        // The library leaves what is in use to the C library; a loop does not.
        modes: &[OURS, MOVNTI],
        is_about: |cell| word(&cell.params, "destination") == Some("hot"),
        now: Some(|profile| profile.copy_from_bytes),
    },
    Row {
        topic: Topic::Fills,
        experiment: ExperimentKind::Memset,
        modes: &[OURS],
        is_about: |_| true,
        now: Some(|profile| profile.fill_from_bytes),
    },
];

impl Row {
    pub fn advice(&self, records: &[&Judged], target: &Target) -> Advice {
        let measured = |&mode: &&'static str| {
            let question = Question { mode, other: LIBC, metric: THROUGHPUT };
            let says = |record: &Judged, cell: &Cell| {
                (self.is_about)(cell) && says_something(mode, record, cell)
            };
            (mode, of_cells(records, &self.experiment, &|_| Some(question), &says))
        };
        let all = self.modes.iter().map(measured);
        let found = all.reduce(|first, next| if first.1.is_empty() { next } else { first });
        let (mode, points) = found.unwrap_or_default();
        let pays = Pays { topic: self.topic, about: About::Mode(mode), least: Some(1.0) };
        let (advice, _) = pays.answer(&points);
        let now = self.now.map(|from| match &target.profile {
            Some(profile) => Now::Profile { from_bytes: from(profile), profile: profile.clone() },
            None => Now::NoProfile,
        });
        Advice { now, ..advice }
    }
}

/// What the library is held against the C library by says something of non-temporal stores only
/// where the library chose them, and nothing where the C library has them itself, above its own
/// threshold.
fn says_something(mode: &str, record: &Judged, cell: &Cell) -> bool {
    let is_nontemporal = || {
        let ours = record.figures(cell.cell, OURS);
        ours.and_then(|ours| ours.counted).is_some_and(|counted| counted.bypassed_bytes > 0)
    };
    let own = match record.header.experiment {
        ExperimentKind::Memset => record.machine.libc_memset_nt_threshold_bytes,
        _ => record.machine.libc_nt_threshold_bytes,
    };
    let is_below = |own: u64| number(&cell.params, "size_bytes").is_some_and(|size| size < own);
    own.is_none_or(is_below) && (mode != OURS || is_nontemporal())
}
