//! The size from which the C library's own memcpy and memset should be non-temporal.
//!
//! What the records hold is a second process whose glibc has another threshold (`libc-tuned`),
//! interleaved with one as it is. The two differ in the sizes between the two thresholds and
//! nowhere else; only these tell anything.

use super::copies::l2_bytes;
use super::pays::spread;
use super::points::{
    Gain, Point, Question, argument, cells, figure, ids, number, points, tally, wins_from,
};
use super::{Advice, Decision, Target, Topic, Tunable, Tunables, Value};
use crate::record::{Cell, Machine, Record};
use crate::stats::{THROUGHPUT, Verdict};
use crate::units::Bytes;

const TUNED: &str = "libc-tuned";
const LIBC: &str = "libc";
/// Where the record says which threshold `libc-tuned` had.
const TUNED_BYTES: &str = "libc_tuned_threshold_bytes";
const UNIT: &str = "a call";

/// A function's name, and what is different about it.
pub struct Function {
    topic: Topic,
    name: &'static str,
}

impl Function {
    /// The C library's own threshold on a machine.
    fn own(&self, machine: &Machine) -> Option<u64> {
        match self.topic {
            Topic::MemcpyThreshold => machine.libc_nt_threshold_bytes,
            _ => machine.libc_memset_nt_threshold_bytes,
        }
    }
}

pub const MEMCPY: Function = Function { topic: Topic::MemcpyThreshold, name: "memcpy" };
pub const MEMSET: Function = Function { topic: Topic::MemsetThreshold, name: "memset" };

pub fn advice(function: &Function, records: &[&Record], target: &Target) -> Advice {
    let libc = &target.machine.libc;
    let Tunables { memcpy, memset, .. } = &target.tunables;
    let tunable = if function.topic == Topic::MemcpyThreshold { memcpy } else { memset };
    let Some(tunable) = tunable else {
        return Advice::bare(function.topic, Decision::NotHere, not_here(function, libc));
    };
    let now = tunable.current_bytes.or(own_threshold(function, records, target));
    let mut advice = match now {
        Some(now) => {
            let ours = |record: &&&Record| record.machine.libc == *libc;
            let records: Vec<&Record> = records.iter().filter(ours).copied().collect();
            let found = changed(function, &records);
            lower(function, tunable, &found, now)
                .or_else(|| raise(function, tunable, &found, now))
                .unwrap_or_else(|| stay(function, &found, now, target))
        }
        None => {
            let why = format!("{libc} does not tell from which size its {} is.", function.name);
            Advice::bare(function.topic, Decision::NotHere, why)
        }
    };
    advice.current = now.map(|bytes| format!("{}={bytes} ({})", tunable.name, Bytes(bytes)));
    advice
}

/// Why there is nothing to set.
fn not_here(function: &Function, libc: &str) -> String {
    if !libc.starts_with("glibc") {
        return format!("{libc} is not glibc, and has no such tunable.");
    }
    match function.topic {
        Topic::MemsetThreshold => format!(
            "{libc} has no such tunable: memset's non-temporal stores, and the tunable for them, \
             came with 2.40."
        ),
        _ => format!("{libc} has no such tunable; the first release with one is 2.26."),
    }
}

/// The threshold by the records, where the loader does not tell.
fn own_threshold(function: &Function, records: &[&Record], target: &Target) -> Option<u64> {
    let ours = records.iter().map(|record| &record.machine);
    let ours = ours.filter(|machine| machine.libc == target.machine.libc);
    std::iter::once(&target.machine).chain(ours).find_map(|machine| function.own(machine))
}

/// What a threshold other than its own made of the C library, where it made a difference.
struct Changed<'a> {
    /// Non-temporal by the other threshold, not by its own: the sizes between the lower other one
    /// and its own.
    sooner: Vec<Point<'a>>,
    /// The other way round.
    later: Vec<Point<'a>>,
}

fn changed<'a>(function: &Function, records: &[&'a Record]) -> Changed<'a> {
    let between = |is_sooner: bool| {
        let question = Question {
            experiment: function.name.into(),
            mode: TUNED,
            other: LIBC,
            metric: THROUGHPUT,
            size: "size_bytes",
            is_about: &|record, cell| is_between(function, record, cell, is_sooner),
        };
        points(records, &question)
    };
    Changed { sooner: between(true), later: between(false) }
}

fn is_between(function: &Function, record: &Record, cell: &Cell, is_sooner: bool) -> bool {
    let (Some(other), Some(size)) =
        (number(&cell.params, TUNED_BYTES), number(&cell.params, "size_bytes"))
    else {
        return false;
    };
    let Some(own) = function.own(&record.machine) else { return false };
    if is_sooner { (other..own).contains(&size) } else { (own..other).contains(&size) }
}

/// A lower threshold: the size from which on the earlier non-temporal stores win in every cell.
fn lower(function: &Function, tunable: &Tunable, found: &Changed<'_>, now: u64) -> Option<Advice> {
    let from = wins_from(&found.sooner)?;
    let (above, below): (Vec<&Point<'_>>, Vec<&Point<'_>>) =
        found.sooner.iter().partition(|point| point.size_bytes >= from);
    let gain = Gain::of(above.iter().copied())?;
    let smaller = if below.is_empty() {
        "Smaller calls were not measured.".to_owned()
    } else {
        format!("Below that: {}.", tally(&below, UNIT))
    };
    let why = format!(
        "From {} to {} a call, where it is temporal now, {} is faster non-temporally in every cell \
         that was measured ({}{}). {smaller}",
        Bytes(from),
        Bytes(above.last()?.size_bytes),
        function.name,
        cells(above.len()),
        spread(&gain),
    );
    Some(set(function, tunable, (from, now), (gain, &above), why))
}

/// A higher threshold: the size up to which temporal stores, which a higher threshold gave, win in
/// every cell.
fn raise(function: &Function, tunable: &Tunable, found: &Changed<'_>, now: u64) -> Option<Advice> {
    let others = found.later.iter().filter(|point| point.verdict() != Verdict::Win);
    let first_other = others.map(|point| point.size_bytes).min();
    let wins: Vec<&Point<'_>> = found
        .later
        .iter()
        .filter(|point| first_other.is_none_or(|other| point.size_bytes < other))
        .collect();
    let gain = Gain::of(wins.iter().copied())?;
    let most = wins.last()?.size_bytes;
    // It may be as it was from the first size that is no win; else it is what was measured with.
    let threshold = match first_other {
        Some(other) => other,
        None => wins.iter().filter_map(|point| point.number(TUNED_BYTES)).min()?,
    };
    let why = format!(
        "Up to {} a call, where it is non-temporal now, {} is faster temporally in every cell that \
         was measured ({}{}).",
        Bytes(most),
        function.name,
        cells(wins.len()),
        spread(&gain),
    );
    Some(set(function, tunable, (threshold, now), (gain, &wins), why))
}

/// The advice to set a threshold; `--list-tunables` names the range that glibc takes.
fn set(
    function: &Function,
    tunable: &Tunable,
    (threshold, now): (u64, u64),
    (gain, used): (Gain, &[&Point<'_>]),
    why: String,
) -> Advice {
    let bytes = tunable.range_bytes.map_or(threshold, |(least, most)| threshold.clamp(least, most));
    let mut advice = Advice {
        gain: Some(gain),
        records: ids(used),
        ..Advice::bare(function.topic, Decision::Set, why)
    };
    if bytes == now {
        advice.decision = Decision::AsItIs;
        advice.why.push_str(" That is how it is set already.");
    } else {
        advice.setting = Some(format!("GLIBC_TUNABLES={}={bytes}", tunable.name));
        advice.value = Some(Value::Tunable(tunable.name.clone(), bytes));
    }
    advice
}

/// Its own threshold is no worse than those that were tried; or none was.
fn stay(function: &Function, found: &Changed<'_>, now: u64, target: &Target) -> Advice {
    let tried: Vec<&Point<'_>> = found.sooner.iter().chain(&found.later).collect();
    let Some(gain) = Gain::of(tried.iter().copied()) else {
        return untried(function, now, target);
    };
    let decision = gain.without_setting();
    let earlier = if found.sooner.is_empty() { "higher" } else { "lower" };
    let why = format!(
        "With a {earlier} threshold {} is at {} of what it is with its own, over {}: {}. No size is \
         there from which on it wins in every cell.",
        function.name,
        figure(gain.ratio, gain.ci),
        cells(gain.cells),
        tally(&tried, UNIT),
    );
    Advice {
        setting: Some(format!("another threshold of {}", function.name)),
        gain: Some(gain),
        records: ids(&tried),
        ..Advice::bare(function.topic, decision, why)
    }
}

/// No evidence: which threshold to try, and over which sizes.
///
/// The sizes go from the level-2 cache, since what fits that is better left there, in powers of two
/// up to the C library's own threshold.
fn untried(function: &Function, now: u64, target: &Target) -> Advice {
    let least = l2_bytes(target).max(1 << 20).next_power_of_two();
    let sizes: Vec<u64> =
        (0..).map(|step| least << step).take_while(|size| *size < now.min(1 << 40)).collect();
    let Some((first, _)) = sizes.split_first() else {
        let why = format!(
            "Its own threshold, {}, lies within the level-2 cache: nothing lower is worth trying.",
            Bytes(now)
        );
        return Advice::bare(function.topic, Decision::NoEvidence, why);
    };
    let list: Vec<String> = sizes.iter().copied().map(argument).collect();
    let why = format!(
        "No record holds sizes between {} and the threshold of {}, {}, with another threshold.",
        Bytes(*first),
        target.machine.libc,
        Bytes(now)
    );
    let (first, list) = (argument(*first), list.join(","));
    let command = ["ntcopy", "bench", function.name, "--modes", TUNED];
    let run = [&command[..], &["--libc-threshold", &first, "--size", &list]].concat();
    Advice::no_evidence(function.topic, why, &run)
}
