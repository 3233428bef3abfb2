//! The size from which the C library's own memcpy and memset should be non-temporal.
//!
//! What the records hold is a second process whose glibc has a lower threshold (`libc-tuned`),
//! interleaved with one as it is. The two differ in the sizes between the two thresholds and
//! nowhere else; only these tell anything.

use super::pays::Pays;
use super::{About, Advice, Decision, Measure, Now, Reason, Target, Topic};
use crate::Judged;
use crate::claims::{Point, Question, of_cells};
use crate::modes::{LIBC, TUNED};
use crate::stats::THROUGHPUT;
use ntcopy_record::{Cell, ExperimentKind, Machine, number};

/// Where the record says which threshold `libc-tuned` had.
const TUNED_BYTES: &str = "libc_tuned_threshold_bytes";
/// What fits a cache of this size is better left there.
const LEAST_L2_BYTES: u64 = 1 << 20;

/// A function, and what is different about it.
pub struct Function {
    topic: Topic,
    experiment: ExperimentKind,
    /// The first release that has its threshold among its tunables, by glibc's NEWS.
    since: (u32, u32),
    /// The C library's own threshold on a machine.
    own: fn(&Machine) -> Option<u64>,
}

pub const MEMCPY: Function = Function {
    topic: Topic::MemcpyThreshold,
    experiment: ExperimentKind::Memcpy,
    since: (2, 29),
    own: |machine| machine.libc_nt_threshold_bytes,
};

pub const MEMSET: Function = Function {
    topic: Topic::MemsetThreshold,
    experiment: ExperimentKind::Memset,
    since: (2, 40),
    own: |machine| machine.libc_memset_nt_threshold_bytes,
};

impl Function {
    /// Whether the machine's C library has the tunable: its loader told the threshold, as it does
    /// where a distribution brought it into an older release, or it is of such a release.
    fn has_tunable(&self, machine: &Machine) -> bool {
        let release = machine.libc.strip_prefix("glibc ").and_then(release);
        (self.own)(machine).is_some() || release.is_some_and(|release| release >= self.since)
    }
}

/// `2.36` as numbers; `2.36.9000` and `2.36-9+deb12u1` are of that release too.
fn release(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(|c: char| !c.is_ascii_digit());
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

pub fn advice(function: &Function, records: &[&Judged], target: &Target) -> Advice {
    let libc = &target.machine.libc;
    let not_here = |reason: Reason| Advice::bare(function.topic, Decision::NotHere, reason);
    if !function.has_tunable(&target.machine) {
        return not_here(Reason::NoTunable { libc: libc.clone() });
    }
    let records: Vec<&Judged> =
        records.iter().filter(|record| record.machine.libc == *libc).copied().collect();
    // As the loader told it, or by the records of the same library where it does not.
    let mut machines =
        std::iter::once(&target.machine).chain(records.iter().map(|one| &one.machine));
    let Some(now) = machines.find_map(function.own) else {
        return not_here(Reason::ThresholdUnknown { libc: libc.clone() });
    };
    let sizes = sizes(now, target);
    if sizes.is_empty() {
        return not_here(Reason::ThresholdWithinLevel2 { libc: libc.clone(), bytes: now });
    }
    let pays = Pays { topic: function.topic, about: About::Whole, least: None };
    let (mut advice, _) = pays.answer(&sooner(function, &records));
    if advice.from_bytes == Some(now) {
        advice.decision = Decision::AsItIs;
    }
    let measure = advice.measure.map(|_| Measure::Sizes(sizes));
    Advice { now: Some(Now::Threshold(now)), measure, ..advice }
}

/// The sizes that are non-temporal by the other threshold, and not by its own.
fn sooner<'a>(function: &Function, records: &[&'a Judged]) -> Vec<Point<'a>> {
    let is_between = |record: &Judged, cell: &Cell| {
        let (other, size) = (number(&cell.params, TUNED_BYTES), number(&cell.params, "size_bytes"));
        let own = (function.own)(&record.machine);
        let between = || Some((other?..own?).contains(&size?));
        between().unwrap_or(false)
    };
    let question = Question { mode: TUNED, other: LIBC, metric: THROUGHPUT };
    of_cells(records, &function.experiment, &|_| Some(question), &is_between)
}

/// Sizes to measure: from the level-2 cache on, since what fits that is better left there, in powers
/// of two up to the C library's own threshold; none where that lies within the cache.
fn sizes(now: u64, target: &Target) -> Vec<u64> {
    let l2 = target.machine.caches.iter().filter(|cache| cache.level == 2);
    let l2_bytes = l2.map(|cache| cache.size_bytes).max().unwrap_or(0);
    let least = l2_bytes.max(LEAST_L2_BYTES).next_power_of_two();
    (0..).map(|step| least << step).take_while(|size| *size < now.min(1 << 40)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_has_the_tunables_of_its_release_and_those_that_its_loader_told() {
        let mut machine = ntcopy_record::testing::record(&["libc"], &[]).machine;
        let mut has = |libc: &str| {
            machine.libc = libc.to_owned();
            [&MEMCPY, &MEMSET].map(|function| function.has_tunable(&machine))
        };
        for (libc, tunables) in [
            ("glibc 2.28", [false, false]),
            ("glibc 2.29", [true, false]),
            ("glibc 2.39.9000", [true, false]),
            ("glibc 2.40", [true, true]),
            ("glibc 2.41-6", [true, true]),
            ("glibc 3.0", [true, true]),
            ("musl unknown", [false, false]),
            ("glibc unknown", [false, false]),
        ] {
            assert_eq!(has(libc), tunables, "{libc}");
        }
        machine.libc = "glibc 2.36".to_owned();
        machine.libc_memset_nt_threshold_bytes = Some(1 << 20);
        assert!(MEMSET.has_tunable(&machine), "a distribution's own");
    }
}
