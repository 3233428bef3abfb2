//! The size from which the C library's own memcpy and memset should be non-temporal.
//!
//! What the records hold is a second process whose glibc has a lower threshold (`libc-tuned`),
//! interleaved with one as it is. The two differ in the sizes between the two thresholds and
//! nowhere else; only these tell anything.

use super::pays::Pays;
use super::{Advice, Decision, Target, Topic, Value};
use crate::Judged;
use crate::claims::{Point, Question, of_cells};
use crate::modes::{LIBC, TUNED};
use crate::stats::THROUGHPUT;
use ntcopy_record::units::Bytes;
use ntcopy_record::{Cell, Machine, number};

/// Where the record says which threshold `libc-tuned` had.
const TUNED_BYTES: &str = "libc_tuned_threshold_bytes";
/// What fits a cache of this size is better left there.
const LEAST_L2_BYTES: u64 = 1 << 20;

/// A function, and what is different about it.
pub struct Function {
    topic: Topic,
    /// Its name, and that of its experiment.
    name: &'static str,
    /// Its threshold's name in `GLIBC_TUNABLES`.
    tunable: &'static str,
    /// The first release that has it by this name, by glibc's NEWS.
    since: (u32, u32),
    /// The C library's own threshold on a machine.
    own: fn(&Machine) -> Option<u64>,
}

pub const MEMCPY: Function = Function {
    topic: Topic::MEMCPY_THRESHOLD,
    name: "memcpy",
    tunable: "glibc.cpu.x86_non_temporal_threshold",
    since: (2, 29),
    own: |machine| machine.libc_nt_threshold_bytes,
};

pub const MEMSET: Function = Function {
    topic: Topic::MEMSET_THRESHOLD,
    name: "memset",
    tunable: "glibc.cpu.x86_memset_non_temporal_threshold",
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
    let (libc, tunable) = (&target.machine.libc, function.tunable);
    let not_here = |why: String| Advice::bare(function.topic, Decision::NotHere, why);
    if !function.has_tunable(&target.machine) {
        return not_here(format!(
            "{libc} has no such tunable: glibc has it for memcpy since 2.29, and for memset since \
             2.40."
        ));
    }
    let records: Vec<&Judged> =
        records.iter().filter(|record| record.machine.libc == *libc).copied().collect();
    // As the loader told it, or by the records of the same library where it does not.
    let mut machines =
        std::iter::once(&target.machine).chain(records.iter().map(|one| &one.machine));
    let Some(now) = machines.find_map(function.own) else {
        return not_here(format!("{libc} does not tell from which size its {} is.", function.name));
    };
    let points = sooner(function, &records);
    let Some(run) = run(function, now, target) else {
        let why = "lies within the level-2 cache: nothing lower is worth trying";
        return not_here(format!("{}'s own threshold, {}, {why}.", function.name, Bytes(now)));
    };
    let thing = format!("Lower thresholds of {}", function.name);
    let pays = Pays {
        topic: function.topic,
        thing: &thing,
        setting: &|from| format!("GLIBC_TUNABLES={tunable}={}", from.0),
        leave: &format!("another threshold of {}", function.name),
        least: None,
        run: &run,
    };
    let (mut advice, _) = pays.answer(&points);
    match advice.wins_from {
        Some(bytes) if bytes == now => {
            advice.decision = Decision::AsItIs;
            advice.why.push_str(" That is how it is set already.");
        }
        from => advice.value = from.map(|from| Value::Glibc { name: tunable, value: from }),
    }
    advice.current = Some(format!("{tunable}={now} ({})", Bytes(now)));
    advice
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
    of_cells(records, &function.name.into(), &|_| Some(question), &is_between)
}

/// What measures sizes from the level-2 cache, since what fits that is better left there, in powers
/// of two up to the C library's own threshold; none where that lies within the cache.
fn run(function: &Function, now: u64, target: &Target) -> Option<String> {
    let l2 = target.machine.caches.iter().filter(|cache| cache.level == 2);
    let l2_bytes = l2.map(|cache| cache.size_bytes).max().unwrap_or(0);
    let least = l2_bytes.max(LEAST_L2_BYTES).next_power_of_two();
    let sizes = (0..).map(|step| least << step).take_while(|size| *size < now.min(1 << 40));
    let sizes: Vec<String> = sizes.map(|size| Bytes(size).argument()).collect();
    let (first, list) = (sizes.first()?, sizes.join(","));
    let name = function.name;
    Some(format!("ntcopy bench {name} --modes {TUNED} --libc-threshold {first} --size {list}"))
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
