//! What small requests to a program felt of large ones, and what became of the large ones.

use super::http::{QUANTILES, against, names, nontemporal_part, pooled, samples, told};
use super::{CAPACITY, P50, P99, PER_CPU, THROUGHPUT, Versus, median, mode_median};
use crate::record::{Cell, Params, Record, Sample};

/// Whether it is a sample of a program with small requests and large ones.
#[must_use]
pub fn is_one(sample: &Sample) -> bool {
    sample.series.contains_key("multigets")
}

/// What one mode did in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Served {
    pub mode: String,
    /// How long small requests took, from when they were due: [`QUANTILES`] over all samples,
    /// nanoseconds; none where too few took longer.
    pub quantiles_ns: [Option<f64>; 4],
    pub answers: u64,
    /// Those of them that had not come when no more was waited for.
    pub unanswered: u64,
    /// The time that half of the answers did not exceed, against the baseline's: above 1 is
    /// shorter.
    pub p50: Option<Versus>,
    /// The same of 99 in 100.
    pub p99: Option<Versus>,
    /// Bytes of large values a second: the median of the samples; none where there were none.
    pub bytes_per_s: Option<f64>,
    /// Against the baseline's.
    pub throughput: Option<Versus>,
    /// CPU seconds of the program for 10^9 bytes of large values: the median of the samples.
    pub cpu_s_per_gb: Option<f64>,
    /// Bytes of large values per CPU second, against the baseline's.
    pub per_cpu: Option<Versus>,
    /// Part of the hinted and copied bytes that was copied non-temporally, from 0 to 1.
    pub nontemporal_part: Option<f64>,
}

/// What each mode did in a cell, the baseline first.
#[must_use]
pub fn served(record: &Record, cell: &Cell) -> Vec<Served> {
    let one = |mode: &str| {
        let pooled = pooled(record, cell, mode);
        let against = |metric| against(record, cell, mode, metric);
        let cpu: Vec<f64> = samples(record, cell, mode).filter_map(cpu_s_per_gb).collect();
        (pooled.answers > 0).then(|| Served {
            mode: mode.to_owned(),
            quantiles_ns: QUANTILES.map(|part| told(&pooled.latencies, part)),
            answers: pooled.answers,
            unanswered: pooled.unanswered,
            p50: against(P50),
            p99: against(P99),
            bytes_per_s: mode_median(record, cell.cell, mode, THROUGHPUT),
            throughput: against(THROUGHPUT),
            cpu_s_per_gb: (!cpu.is_empty()).then(|| median(&cpu)),
            per_cpu: against(PER_CPU),
            nontemporal_part: nontemporal_part(record, cell, mode),
        })
    };
    names(record).into_iter().filter_map(one).collect()
}

/// The modes of a cell with samples, none of which had a multiget.
#[must_use]
pub fn without_multigets(record: &Record, cell: &Cell) -> Vec<String> {
    let has_none = |mode: &str| {
        let mut all = samples(record, cell, mode).filter(|sample| !is_search(sample)).peekable();
        all.peek().is_some() && pooled(record, cell, mode).answers == 0
    };
    names(record).into_iter().filter(|mode| has_none(mode)).map(str::to_owned).collect()
}

/// Whether a sample is a search for the most multigets.
#[must_use]
pub fn is_search(sample: &Sample) -> bool {
    sample.series.contains_key("tried_p99_ns")
}

/// What a search found, or at the median those of a boot: multigets per second; none where no rate
/// kept to the limit.
#[must_use]
pub fn capacity_per_s(sample: &Sample) -> Option<f64> {
    let found = sample.series.get("capacity_per_1000_s")?;
    let per_s: Vec<f64> = found.iter().map(|per_1000_s| *per_1000_s as f64 / 1000.0).collect();
    (!per_s.is_empty()).then(|| median(&per_s))
}

/// What p99 may be at most in a cell of searches, nanoseconds.
#[must_use]
pub fn limit_ns(params: &Params) -> Option<u64> {
    params.get("p99_limit_ns")?.as_u64()
}

/// A limit in words: `1 ms`, `500 us`.
#[must_use]
pub fn limit_words(limit_ns: u64) -> String {
    match limit_ns % 1_000_000 {
        0 => format!("{} ms", limit_ns / 1_000_000),
        _ => format!("{} us", limit_ns / 1000),
    }
}

/// What the searches of one mode found in a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Capacity {
    pub mode: String,
    pub searches: usize,
    /// Those that found a rate at which p99 keeps to the limit.
    pub held: usize,
    /// Multigets a second: the median of all searches, in which one that found nothing counts as 0;
    /// none where that comes to nothing.
    pub per_s: Option<f64>,
    /// Against the baseline's, in the pairs in which both were found.
    pub versus: Option<Versus>,
    /// The lowest rate, and what p99 was there: the median of the searches that found nothing.
    pub lowest: Option<Lowest>,
    /// Bytes of large values a second beside what was found: the median; none where there were none.
    pub bytes_per_s: Option<f64>,
}

/// The lowest rate of a search, which does not keep to the limit either.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Lowest {
    pub per_s: f64,
    /// What p99 was, nanoseconds.
    pub p99_ns: f64,
}

/// What the searches of each mode found in a cell, the baseline first.
#[must_use]
pub fn capacities(record: &Record, cell: &Cell) -> Vec<Capacity> {
    let one = |mode: &str| {
        let all: Vec<&Sample> =
            samples(record, cell, mode).filter(|sample| is_search(sample)).collect();
        let found: Vec<&&Sample> =
            all.iter().filter(|sample| capacity_per_s(sample).is_some()).collect();
        let figures: Vec<f64> =
            all.iter().map(|sample| capacity_per_s(sample).unwrap_or(0.0)).collect();
        let large: Vec<f64> = found
            .iter()
            .filter(|sample| sample.bytes > 0)
            .map(|sample| sample.bytes as f64 * 1e9 / sample.elapsed_ns as f64)
            .collect();
        (!all.is_empty()).then(|| Capacity {
            mode: mode.to_owned(),
            searches: all.len(),
            held: found.len(),
            per_s: Some(median(&figures)).filter(|per_s| *per_s > 0.0),
            versus: against(record, cell, mode, CAPACITY),
            lowest: lowest(&all),
            bytes_per_s: (!large.is_empty()).then(|| median(&large)),
        })
    };
    names(record).into_iter().filter_map(one).collect()
}

/// The last steps of searches that found nothing.
fn lowest(all: &[&Sample]) -> Option<Lowest> {
    let last = |sample: &Sample, name: &str| Some(*sample.series.get(name)?.last()? as f64);
    let none = all.iter().filter(|sample| capacity_per_s(sample).is_none());
    let (rates, p99s): (Vec<f64>, Vec<f64>) = none
        .filter_map(|sample| {
            Some((last(sample, "tried_per_1000_s")? / 1000.0, last(sample, "tried_p99_ns")?))
        })
        .unzip();
    let is_some = !rates.is_empty();
    is_some.then(|| Lowest { per_s: median(&rates), p99_ns: median(&p99s) })
}

/// Nanoseconds a byte are seconds for 10^9 of them.
fn cpu_s_per_gb(sample: &Sample) -> Option<f64> {
    let ns = *sample.phases_ns.get("server_cpu")?;
    (sample.bytes > 0).then(|| ns as f64 / sample.bytes as f64)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::testing::{Sketch, record};

    /// One cell of `copy`, `idle` and `adaptive`: (bytes of large values a second, CPU nanoseconds
    /// of the program for one, microseconds that a small request takes). No bytes: none were asked
    /// for.
    pub(crate) fn sketch(figures: [(u64, u64, u64); 3]) -> Record {
        let names = ["copy", "idle", "adaptive"];
        let params = [("connections", 16), ("large_bytes", 1 << 20), ("dataset_bytes", 256 << 20)];
        let mut empty = record(&names, &[&params]);
        empty.header.experiment = "app".into();
        for (name, value) in [("app", "memcached"), ("form", "closed"), ("large_rate", "max")] {
            empty.cells[0].params.insert(name.into(), value.into());
        }
        let mut sketch = Sketch::of(&names, empty);
        for pair in 0..5 {
            sketch.pair(0, pair, &figures.map(|(rate, ..)| rate.max(1)));
        }
        let mut record = sketch.record();
        for sample in &mut record.samples {
            let at = names.iter().position(|name| *name == sample.mode).unwrap();
            let (rate, cpu_ns, us) = figures[at];
            if rate == 0 {
                sample.bytes = 0;
                sample.elapsed_ns = 1_000_000_000;
            }
            sample.phases_ns = [("server_cpu".to_owned(), cpu_ns * sample.bytes)].into();
            let ns = [us * 1000, us * 5000];
            sample.series.insert("multigets".into(), vec![100]);
            sample.series.insert("latency_ns".into(), ns.into());
            sample.series.insert("answers".into(), vec![98, 2]);
            if sample.mode == "adaptive" {
                let counts = [("nontemporal_bytes", 75), ("fits_cache_bytes", 25)];
                sample.counters = counts.map(|(name, n)| (name.to_owned(), n)).into();
            }
        }
        record
    }

    /// One cell of searches by `copy`, `idle` and `adaptive`: what each found, multigets per second in
    /// each pair; 0: not even 100 a second kept to 1 ms, and p99 was 5 ms.
    pub(crate) fn searches(found: [[u64; 5]; 3]) -> Record {
        let mut record = sketch([(1_000_000, 2, 100), (0, 0, 25), (1_250_000, 1, 50)]);
        record.cells[0].params.insert("p99_limit_ns".into(), 1_000_000.into());
        for sample in &mut record.samples {
            let mode = ["copy", "idle", "adaptive"].iter().position(|name| *name == sample.mode);
            let per_s = found[mode.unwrap()][sample.pair as usize];
            let (tried, p99_ns) = if per_s == 0 { (100, 5_000_000) } else { (per_s, 900_000) };
            sample.series = [
                ("tried_per_1000_s".to_owned(), vec![tried * 2000, tried * 1000]),
                ("tried_p99_ns".to_owned(), vec![9_000_000, p99_ns]),
            ]
            .into();
            if per_s > 0 {
                sample.series.insert("capacity_per_1000_s".into(), vec![per_s * 1000]);
            }
        }
        record
    }

    #[test]
    fn a_search_is_told_by_what_it_found_and_by_nothing_else() {
        let record = searches([[1000; 5], [4000; 5], [1500, 1500, 1400, 1600, 1500]]);
        let told = capacities(&record, &record.cells[0]);
        let [copy, idle, adaptive] = &told[..] else { panic!("three modes: {told:?}") };
        assert_eq!((copy.per_s, copy.versus.as_ref(), copy.held), (Some(1000.0), None, 5));
        let versus = adaptive.versus.as_ref().unwrap();
        assert_eq!((versus.ratio, versus.ci), (1.5, (1.4, 1.6)));
        assert_eq!((adaptive.per_s, adaptive.lowest), (Some(1500.0), None));
        assert!(adaptive.bytes_per_s.is_some() && idle.bytes_per_s.is_none());
        let results = crate::stats::results(&record);
        assert!(results.iter().all(|result| result.metric == CAPACITY), "{results:?}");
        assert_eq!(results.len(), 2);
        assert!(served(&record, &record.cells[0]).is_empty());
    }

    #[test]
    fn the_searches_of_a_boot_count_by_their_median() {
        let mut sample = searches([[1000; 5], [4000; 5], [1500; 5]]).samples[0].clone();
        let mut of = |found: &[u64]| {
            sample.series.insert("capacity_per_1000_s".to_owned(), found.to_vec());
            capacity_per_s(&sample)
        };
        assert_eq!((of(&[1_000_000, 3_000_000]), of(&[])), (Some(2000.0), None));
    }

    #[test]
    fn a_search_that_finds_nothing_counts_as_none_and_tells_its_lowest_rate() {
        let record = searches([[0, 0, 0, 200, 0], [4000; 5], [300, 300, 0, 300, 300]]);
        let told = capacities(&record, &record.cells[0]);
        let [copy, _, adaptive] = &told[..] else { panic!("three modes: {told:?}") };
        assert_eq!((copy.per_s, copy.held, copy.searches), (None, 1, 5));
        assert_eq!(copy.lowest, Some(Lowest { per_s: 100.0, p99_ns: 5e6 }));
        assert_eq!((adaptive.per_s, adaptive.held), (Some(300.0), 4));
        assert!(adaptive.versus.is_none(), "one pair has both");
    }

    #[test]
    fn modes_whose_samples_had_no_multiget_are_named() {
        let mut record = sketch([(1_000_000, 2, 100), (0, 0, 25), (1_250_000, 1, 50)]);
        assert!(without_multigets(&record, &record.cells[0]).is_empty());
        for sample in record.samples.iter_mut().filter(|sample| sample.mode == "copy") {
            sample.series = [("multigets".to_owned(), vec![0])].into();
        }
        assert_eq!(without_multigets(&record, &record.cells[0]), ["copy"]);
        let searched = searches([[1000; 5]; 3]);
        assert!(without_multigets(&searched, &searched.cells[0]).is_empty());
    }

    #[test]
    fn small_requests_and_large_ones_are_told_of_every_mode_that_has_them() {
        let record = sketch([(1_000_000, 2, 100), (0, 0, 25), (1_250_000, 1, 50)]);
        let served = served(&record, &record.cells[0]);
        let modes: Vec<&str> = served.iter().map(|served| served.mode.as_str()).collect();
        assert_eq!(modes, ["copy", "idle", "adaptive"]);
        let [copy, idle, adaptive] = &served[..] else { panic!("three modes") };
        let ratio = |versus: &Option<Versus>| versus.as_ref().map(|versus| versus.ratio);
        let close = |versus: &Option<Versus>, wanted: f64| {
            ratio(versus).is_some_and(|ratio| (ratio - wanted).abs() < 1e-3)
        };
        assert_eq!(copy.quantiles_ns[..3], [Some(1e5), Some(1e5), Some(5e5)]);
        assert_eq!((copy.p99.as_ref(), copy.cpu_s_per_gb), (None, Some(2.0)));
        assert!(close(&idle.p50, 4.0) && close(&adaptive.p99, 2.0));
        assert_eq!((idle.bytes_per_s, ratio(&idle.throughput)), (None, None));
        assert_eq!((idle.cpu_s_per_gb, ratio(&idle.per_cpu)), (None, None));
        // An offered rate or not: how much came of large values is a result of its own.
        assert!(close(&adaptive.throughput, 1.25) && close(&adaptive.per_cpu, 2.0));
        assert_eq!(adaptive.nontemporal_part, Some(0.75));
    }
}
