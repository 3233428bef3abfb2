//! The questions, one after the other; each uses the answers before it.

use ntcopy::arch::{COPY_BACKENDS, FILL_BACKENDS};
use ntcopy::policy::{Facts, NEVER, Policy};
use ntcopy::{Hints, Method, Path, Turns};
use ntcopy_judge::stats::{interval, median};
use ntcopy_record::MISSES_PERMILLE;

use super::decide::{best, from_size, range, ratios, safe_from};
use super::meter::Meter;
use crate::experiments::bulk::plan::Resources;
use crate::experiments::bulk::task::{Heat, ReadBack, Task, Way};
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
/// What a copy that nothing is known of may be: within buffers in use or between fresh ones, read or
/// not, and its source where it happens to begin.
const ANY: [Task; 4] = [
    HOT,
    COLD,
    Task::Copy {
        source: Heat::Hot,
        destination: Heat::Hot,
        offset_bytes: 15,
        read_back: ReadBack::All,
    },
    Task::Copy {
        source: Heat::Cold,
        destination: Heat::Hot,
        offset_bytes: 33,
        read_back: ReadBack::All,
    },
];
/// An interval that lies wholly below this is a loss: such a copy is the C library's.
const LOSS: f64 = 0.95;

/// Asks all of them; what nothing is measured for stays as it was.
pub fn all(
    meter: &mut Meter<'_>,
    resources: &Resources,
    before: Policy,
) -> Result<Policy, Failure> {
    let sizes = sizes(resources, meter.region_bytes());
    let large = |least: u64| sizes.iter().filter(|size| **size >= least).count();
    let comparisons = 2 + TURNS_BYTES.len() + 2 + 2 * sizes.len() + temporal_sizes().count();
    let beside =
        (ANY.len() - 1) * large(least_bytes(l2_bytes() / 2)) + large(least_bytes(l2_bytes()));
    meter.expect((comparisons + beside) as u64);
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
    let chosen = policy.choose_copy(LARGE_BYTES as usize, NEVER, Hints::AUTO);
    if !chosen.is_nontemporal() {
        return Ok(());
    }
    let rows = COPY_BACKENDS.iter().filter(|row| is_for_here(row.method) && row.is_available());
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

/// Whether non-temporal stores are to be tried: not those of 64 bytes where all else on the CPU
/// slows down by them.
fn is_for_here(method: Method) -> bool {
    let is_slow = method == Method::Avx512Nt && !Facts::detect().has_avx512_vbmi2;
    method.is_nontemporal() && !is_slow
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
            is_for_here(row.method) && row.is_available() && row.can_fill_with(value)
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
        let hints = Hints::NONTEMPORAL_DESTINATION;
        Way::Copy(policy.choose_copy(size as usize, size, hints))
    };
    let rep = Way::Copy(Path::of(Method::RepMovsb));
    // What is copied and what becomes of it both want resources.
    let least_bytes = least_bytes(l2_bytes() / 2);
    let found = BySize { sizes, least_bytes, tasks: &ANY, rep, nontemporal: &whole }.find(meter)?;
    policy.copy_nontemporal_from_bytes = safe_from(&found.scores(f64::min), LOSS).unwrap_or(NEVER);
    (policy.rep_movsb_from_bytes, policy.rep_movsb_below_bytes) = found.rep;
    Ok(())
}

/// Powers of two of which source and destination fit level 2 together.
fn temporal_sizes() -> impl Iterator<Item = u64> {
    let last = l2_bytes() / 2;
    std::iter::successors(Some(LEAST_TEMPORAL_BYTES), |size| Some(size * 2))
        .take_while(move |size| *size <= last)
}

/// The sizes between which temporal copies of a cold source are the library's own. With AVX-512 only
/// where CPUID chose it, since earlier CPUs slow down everything else by it.
fn temporal_copies(meter: &mut Meter<'_>, policy: &mut Policy) -> Result<(), Failure> {
    let method = match policy.temporal_method {
        Method::Libc => Method::Avx2,
        chosen => chosen,
    };
    (policy.temporal_from_bytes, policy.temporal_below_bytes) = (NEVER, NEVER);
    if !COPY_BACKENDS.iter().any(|row| row.method == method && row.is_available()) {
        return Ok(());
    }
    let mut always = *policy;
    (always.temporal_method, always.temporal_from_bytes) = (method, 0);
    let from_cold = Hints::AUTO.from_cold();
    let mut scores = Vec::new();
    for size in temporal_sizes() {
        let ours = always.choose_copy(size as usize, size, from_cold);
        let otherwise = policy.choose_copy(size as usize, size, from_cold);
        let rates = meter.compare(FROM_COLD, size, &[Way::Copy(otherwise), Way::Copy(ours)])?;
        scores.push((size, interval(&ratios(&rates[1], &rates[0]), MISSES_PERMILLE).0));
    }
    if let Some((from, below)) = range(&scores, MARGIN) {
        let end = scores.last().map_or(NEVER, |(size, _)| size + 1);
        policy.temporal_method = method;
        (policy.temporal_from_bytes, policy.temporal_below_bytes) = (from, below.unwrap_or(end));
    }
    Ok(())
}

fn fill_sizes(meter: &mut Meter<'_>, sizes: &[u64], policy: &mut Policy) -> Result<(), Failure> {
    let task = |destination| Task::Fill { value: 0, destination };
    let tasks = [task(Heat::Hot), task(Heat::Cold)];
    let rep = Way::Fill(Method::RepStosb);
    let nontemporal = |_| Way::Fill(policy.zero_method);
    let least_bytes = least_bytes(l2_bytes());
    let by_size = BySize { sizes, least_bytes, tasks: &tasks, rep, nontemporal: &nontemporal };
    let found = by_size.find(meter)?;
    // The library can't know whether a buffer was used before.
    let scores = found.scores(|used, fresh| (used * fresh).sqrt());
    policy.fill_nontemporal_from_bytes = from_size(&scores).unwrap_or(NEVER);
    (policy.rep_stosb_from_bytes, policy.rep_stosb_below_bytes) = found.rep;
    Ok(())
}

struct Found {
    /// At each size, of each task: what the non-temporal way is relative to libc, at best.
    gains: Vec<(u64, Vec<f64>)>,
    rep: (u64, u64),
}

impl Found {
    /// One score at each size, of its tasks'.
    fn scores(&self, join: impl Fn(f64, f64) -> f64) -> Vec<(u64, f64)> {
        let score = |gains: &[f64]| gains.iter().copied().reduce(&join).unwrap_or(0.0);
        self.gains.iter().map(|(size, gains)| (*size, score(gains))).collect()
    }
}

/// What is compared at each of several sizes.
struct BySize<'a> {
    sizes: &'a [u64],
    /// Below it nothing is non-temporal: what fits level 2 stays there, whatever would be faster this
    /// once.
    least_bytes: u64,
    tasks: &'a [Task],
    rep: Way,
    nontemporal: &'a dyn Fn(u64) -> Way,
}

impl BySize<'_> {
    /// Compares libc, `rep` and the non-temporal way in the first task, and libc and the last in the
    /// others.
    fn find(&self, meter: &mut Meter<'_>) -> Result<Found, Failure> {
        let (mut gains, mut reps) = (Vec::new(), Vec::new());
        for size in self.sizes.iter().copied() {
            let mut ways = vec![Way::Libc, self.rep];
            if size >= self.least_bytes {
                ways.push((self.nontemporal)(size));
            }
            let used = meter.compare(self.tasks[0], size, &ways)?;
            reps.push((size, interval(&ratios(&used[1], &used[0]), MISSES_PERMILLE).0));
            let Some(ours) = used.get(2) else { continue };
            let mut at_best = vec![most(ours, &used[0])];
            for task in &self.tasks[1..] {
                let ways = [Way::Libc, (self.nontemporal)(size)];
                let rates = meter.compare(*task, size, &ways)?;
                at_best.push(most(&rates[1], &rates[0]));
            }
            gains.push((size, at_best));
        }
        Ok(Found { gains, rep: rep_range(&reps) })
    }
}

/// The upper end of the interval of ours relative to theirs.
fn most(ours: &[f64], theirs: &[f64]) -> f64 {
    interval(&ratios(ours, theirs), MISSES_PERMILLE).1
}

/// The least size that may be non-temporal by itself where `in_cache` bytes stay in level 2.
fn least_bytes(in_cache: u64) -> u64 {
    (in_cache + 1).max(1 << 20)
}

fn l2_bytes() -> u64 {
    Facts::detect().l2_bytes
}

/// `rep` is slow on a CPU without ERMS, whatever it was in these rounds.
fn rep_range(scores: &[(u64, f64)]) -> (u64, u64) {
    match range(scores, MARGIN).filter(|_| Facts::detect().has_erms) {
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
    fn one_task_that_loses_is_enough() {
        let gains = vec![(1, vec![1.6, 0.4]), (2, vec![1.6, 0.96]), (4, vec![1.0, 1.2])];
        let found = Found { gains, rep: (NEVER, NEVER) };
        assert_eq!(safe_from(&found.scores(f64::min), LOSS), Some(2));
        assert_eq!(rep_range(&[(1, 1.0), (2, 1.0)]), (NEVER, NEVER));
        assert_eq!((least_bytes(1 << 19), least_bytes(2 << 20)), (1 << 20, (2 << 20) + 1));
    }
}
