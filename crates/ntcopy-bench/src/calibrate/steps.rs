//! The questions, one after the other; each uses the answers before it.

use ntcopy::arch::{COPY_BACKENDS, FILL_BACKENDS};
use ntcopy::policy::{Facts, NEVER, Policy};
use ntcopy::{Method, Path, Turns};
use ntcopy_record::MISSES_PERMILLE;
use ntcopy_record::stats::{interval, median};

use super::decide::{best, from_size, range, ratios};
use super::meter::Meter;
use crate::experiment::bulk::{Heat, Task, Way};
use crate::plan::bulk::Resources;
use crate::run::Failure;

/// Large enough that a call's beginning and end don't count.
const LARGE_BYTES: u64 = 16 << 20;
/// Calls of these lengths decide from where on pages are taken in turn.
const TURNS_BYTES: [u64; 5] = [16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// The turns that stores are tried with before the turns themselves are chosen.
const PROBED: Turns = Turns::ALL[4];
/// A value that is not zero.
const VALUE: u8 = 0xa5;
/// All of an interval has to lie above this where another way is to take the place of the C
/// library's: its own choice may be another tomorrow.
const MARGIN: f64 = 1.03;
/// Below this, what a call costs by itself counts.
const LEAST_TEMPORAL_BYTES: u64 = 16 << 10;

const COLD: Task = Task::copy(Heat::Cold, Heat::Cold);
const FROM_COLD: Task = Task::copy(Heat::Cold, Heat::Hot);
const HOT: Task = Task::copy(Heat::Hot, Heat::Hot);

/// Asks all of them; what nothing is measured for stays as it was.
pub fn all(
    meter: &mut Meter<'_>,
    resources: &Resources,
    before: Policy,
) -> Result<Policy, Failure> {
    let sizes = sizes(resources, meter.region_bytes());
    let fresh = |in_cache| sizes.iter().filter(|size| **size > in_cache).count();
    let temporal = temporal_sizes().count();
    let comparisons = 2 + TURNS_BYTES.len() + 2 + 2 * sizes.len() + 2 * temporal;
    meter.expect((comparisons + fresh(l2_bytes() / 2) + fresh(l2_bytes())) as u64);
    let mut policy = before;
    copy_method(meter, &mut policy)?;
    turns_from(meter, &mut policy)?;
    fill_methods(meter, &mut policy)?;
    copy_sizes(meter, &sizes, &mut policy)?;
    temporal_copies(meter, &mut policy)?;
    fill_sizes(meter, &sizes, &mut policy)?;
    Ok(policy)
}

/// Powers of two, from 64 KiB to where both sides have surely outgrown the cache.
fn sizes(resources: &Resources, region_bytes: u64) -> Vec<u64> {
    let last = resources.llc_bytes.max(LARGE_BYTES).next_power_of_two().min(region_bytes);
    (16..40).map(|shift| 1_u64 << shift).take_while(|size| *size <= last).collect()
}

/// Which stores, with which prefetch, and then which pages in turn. CPUID's choice stays unless
/// another is surely faster.
fn copy_method(meter: &mut Meter<'_>, policy: &mut Policy) -> Result<(), Failure> {
    let chosen = policy.choose_copy(LARGE_BYTES as usize, NEVER, ntcopy::Hints::AUTO);
    if !chosen.is_nontemporal() {
        return Ok(());
    }
    let rows = COPY_BACKENDS.iter().filter(|row| row.method.is_nontemporal() && row.is_available());
    // PREFETCHNTA and flushing are what the source's hint asks for, not a matter of speed.
    let paths: Vec<Path> =
        rows.flat_map(|row| row.paths()).filter(|path| !path.source_is_nontemporal()).collect();
    let some = [chosen.turns, Turns::NONE, PROBED];
    let path = fastest(meter, chosen, paths.iter().filter(|path| some.contains(&path.turns)))?;
    let path = fastest(meter, path, paths.iter().filter(|other| other.method == path.method))?;
    (policy.copy_method, policy.copy_prefetch) = (path.method, path.prefetch);
    policy.turns = path.turns;
    Ok(())
}

/// The first path, unless another is surely faster.
fn fastest<'a>(
    meter: &mut Meter<'_>,
    first: Path,
    others: impl Iterator<Item = &'a Path>,
) -> Result<Path, Failure> {
    let paths: Vec<Path> =
        [first].into_iter().chain(others.copied().filter(|path| *path != first)).collect();
    let ways: Vec<Way> = paths.iter().copied().map(Way::Copy).collect();
    Ok(paths[best(&meter.compare(COLD, LARGE_BYTES, &ways)?)])
}

/// The length of a call from which on pages in turn are no loss.
fn turns_from(meter: &mut Meter<'_>, policy: &mut Policy) -> Result<(), Failure> {
    if policy.turns.is_none() {
        policy.turns_from_bytes = NEVER;
        return Ok(());
    }
    let path = |turns| {
        Way::Copy(Path { method: policy.copy_method, prefetch: policy.copy_prefetch, turns })
    };
    let ways = [path(policy.turns), path(Turns::NONE)];
    let mut scores = Vec::new();
    for size in TURNS_BYTES {
        let rates = meter.compare(COLD, size, &ways)?;
        scores.push((size, median(&ratios(&rates[0], &rates[1]))));
    }
    policy.turns_from_bytes = from_size(&scores).unwrap_or(NEVER);
    Ok(())
}

/// Which stores fill, with zeros and with anything.
fn fill_methods(meter: &mut Meter<'_>, policy: &mut Policy) -> Result<(), Failure> {
    for (value, chosen) in [(0, &mut policy.zero_method), (VALUE, &mut policy.fill_method)] {
        if !chosen.is_nontemporal() {
            continue;
        }
        let rows = FILL_BACKENDS.iter().filter(|row| {
            row.method.is_nontemporal() && row.is_available() && row.can_fill_with(value)
        });
        let others = rows.map(|row| row.method).filter(|method| *method != *chosen);
        let methods: Vec<Method> = [*chosen].into_iter().chain(others).collect();
        let ways: Vec<Way> = methods.iter().copied().map(Way::Fill).collect();
        let task = Task::Fill { value, destination: Heat::Cold };
        *chosen = methods[best(&meter.compare(task, LARGE_BYTES, &ways)?)];
    }
    Ok(())
}

/// The size from which on copies are non-temporal, and those between which they are `rep movsb`.
fn copy_sizes(meter: &mut Meter<'_>, sizes: &[u64], policy: &mut Policy) -> Result<(), Failure> {
    let whole = |size: u64| {
        let hints = ntcopy::Hints::NONTEMPORAL_DESTINATION;
        Way::Copy(policy.choose_copy(size as usize, size, hints))
    };
    let rep = Way::Copy(Path::of(Method::RepMovsb));
    // What is copied and what becomes of it both want resources.
    let found = by_size(meter, sizes, l2_bytes() / 2, &[HOT, COLD], rep, &whole)?;
    policy.copy_nontemporal_from_bytes = found.nontemporal_from;
    (policy.rep_movsb_from_bytes, policy.rep_movsb_below_bytes) = found.rep;
    Ok(())
}

/// Powers of two of which source and destination fit level 2 together.
fn temporal_sizes() -> impl Iterator<Item = u64> {
    let last = l2_bytes() / 2;
    std::iter::successors(Some(LEAST_TEMPORAL_BYTES), |size| Some(size * 2))
        .take_while(move |size| *size <= last)
}

/// The sizes between which temporal copies are the library's own: into a buffer in use, out of
/// memory and out of one in use. With AVX-512 only where CPUID chose it, since earlier CPUs slow
/// down everything else by it.
fn temporal_copies(meter: &mut Meter<'_>, policy: &mut Policy) -> Result<(), Failure> {
    let method = match policy.temporal_method {
        Method::Libc => Method::Avx2,
        chosen => chosen,
    };
    (policy.temporal_from_bytes, policy.temporal_below_bytes) = (NEVER, NEVER);
    if !COPY_BACKENDS.iter().any(|row| row.method == method && row.is_available()) {
        return Ok(());
    }
    let always = Policy {
        temporal_method: method,
        temporal_from_bytes: 0,
        rep_movsb_from_bytes: NEVER,
        ..*policy
    };
    let mut scores = Vec::new();
    for size in temporal_sizes() {
        let ours = always.choose_copy(size as usize, size, ntcopy::Hints::AUTO);
        let otherwise = policy.choose_copy(size as usize, size, ntcopy::Hints::AUTO);
        let ways = [Way::Copy(otherwise), Way::Copy(ours)];
        let cold = meter.compare(FROM_COLD, size, &ways)?;
        let used = meter.compare(HOT, size, &ways)?;
        scores.push((size, mean_gain(&cold, &used)));
    }
    if let Some((from, below)) = range(&scores, MARGIN) {
        let end = scores.last().map_or(NEVER, |(size, _)| size + 1);
        policy.temporal_method = method;
        let below = below.unwrap_or(end);
        (policy.temporal_from_bytes, policy.temporal_below_bytes) = (from, below);
        // `rep movsb` comes first where the ranges overlap.
        if from <= policy.rep_movsb_from_bytes {
            policy.rep_movsb_from_bytes = policy.rep_movsb_from_bytes.max(below);
        }
    }
    Ok(())
}

/// The least that the second way gains for sure over the first, in the mean of both tasks.
fn mean_gain(cold: &[Vec<f64>], used: &[Vec<f64>]) -> f64 {
    let gain = |rates: &[Vec<f64>]| ratios(&rates[1], &rates[0]);
    let both: Vec<f64> =
        gain(cold).iter().zip(gain(used)).map(|(cold, used)| (cold * used).sqrt()).collect();
    interval(&both, MISSES_PERMILLE).0
}

fn fill_sizes(meter: &mut Meter<'_>, sizes: &[u64], policy: &mut Policy) -> Result<(), Failure> {
    let task = |destination| Task::Fill { value: 0, destination };
    let tasks = [task(Heat::Hot), task(Heat::Cold)];
    let rep = Way::Fill(Method::RepStosb);
    let nontemporal = |_| Way::Fill(policy.zero_method);
    let found = by_size(meter, sizes, l2_bytes(), &tasks, rep, &nontemporal)?;
    policy.fill_nontemporal_from_bytes = found.nontemporal_from;
    (policy.rep_stosb_from_bytes, policy.rep_stosb_below_bytes) = found.rep;
    Ok(())
}

struct Found {
    nontemporal_from: u64,
    rep: (u64, u64),
}

/// Compares libc, `rep` and the non-temporal way at each size, over a buffer in use and over fresh
/// ones. Up to `in_cache` bytes only the first two: what fits level 2 stays there, whatever would
/// be faster this once.
fn by_size(
    meter: &mut Meter<'_>,
    sizes: &[u64],
    in_cache: u64,
    [hot, cold]: &[Task; 2],
    rep: Way,
    nontemporal: &dyn Fn(u64) -> Way,
) -> Result<Found, Failure> {
    let (mut scores, mut reps) = (Vec::new(), Vec::new());
    for size in sizes {
        let mut ways = vec![Way::Libc, rep];
        if *size > in_cache {
            ways.push(nontemporal(*size));
        }
        let used = meter.compare(*hot, *size, &ways)?;
        reps.push((*size, interval(&ratios(&used[1], &used[0]), MISSES_PERMILLE).0));
        if let Some(ours) = used.get(2) {
            let fresh = meter.compare(*cold, *size, &[Way::Libc, nontemporal(*size)])?;
            scores.push((*size, score((ours, &used[0]), (&fresh[1], &fresh[0]))));
        }
    }
    Ok(Found { nontemporal_from: from_size(&scores).unwrap_or(NEVER), rep: rep_range(&reps) })
}

/// Bytes of level 2; nothing is known to fit it if CPUID doesn't say.
fn l2_bytes() -> u64 {
    Facts::detect().l2_bytes
}

/// Ours by libc, in the mean of buffers that were used before and of fresh ones: the library can't
/// know which it has.
fn score(used: (&[f64], &[f64]), fresh: (&[f64], &[f64])) -> f64 {
    let ratio = |(ours, libc)| median(&ratios(ours, libc));
    (ratio(used) * ratio(fresh)).sqrt()
}

fn rep_range(scores: &[(u64, f64)]) -> (u64, u64) {
    match range(scores, MARGIN) {
        Some((from, below)) => (from, below.unwrap_or(NEVER)),
        None => (NEVER, NEVER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_reach_beyond_the_cache_and_not_beyond_the_memory() {
        let resources = |llc_bytes| Resources { cpus: vec![0], available_bytes: 0, llc_bytes };
        let sizes_of = |llc: u64, region: u64| sizes(&resources(llc), region);
        assert_eq!(sizes_of(300 << 20, 1 << 30).last(), Some(&(512 << 20)));
        assert_eq!(sizes_of(300 << 20, 1 << 27).last(), Some(&(128 << 20)));
        assert_eq!(sizes_of(0, 1 << 30).first(), Some(&(64 << 10)));
    }

    #[test]
    fn losing_in_use_can_be_made_good_by_winning_on_fresh_memory() {
        let (libc, half, double) = ([1.0; 5], [0.4; 5], [1.6; 5]);
        assert!(score((&[0.8; 5], &libc), (&double, &libc)) > 1.0);
        assert!(score((&half, &libc), (&double, &libc)) < 1.0);
        assert_eq!(rep_range(&[(1, 1.0), (2, 1.0)]), (NEVER, NEVER));
        let rates = |ours| [vec![1.0; 5], vec![ours; 5]];
        assert!((mean_gain(&rates(2.0), &rates(0.5)) - 1.0).abs() < 1e-9);
    }
}
