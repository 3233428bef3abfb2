//! What one sample tells, by the series in it.

use ntcopy_record::Sample;

/// The part of what was offered that a sample has to have moved in time.
const LEAST_OF_OFFERED: f64 = 0.98;

/// Whether the traffic fell behind what was offered, so that it was not that of the other modes.
#[must_use]
pub fn is_short(sample: &Sample) -> bool {
    let offered = sample.series.get("offered_bytes").and_then(|series| series.first());
    offered.is_some_and(|offered| (sample.bytes as f64) < LEAST_OF_OFFERED * *offered as f64)
}

/// Nanoseconds, and how many took them: ascending, each time once.
pub type Times = Vec<(u64, u64)>;

/// Nanoseconds that answers took, and how many took them; none if that was not kept. Without a
/// schedule they are round trips.
#[must_use]
pub fn latencies(sample: &Sample) -> Option<Times> {
    let series = &sample.series;
    counted(
        series.get("latency_ns").or_else(|| series.get("round_trip_ns"))?,
        series.get("answers")?,
    )
}

/// Nanoseconds of the walks through a hot set, and how many took them; none if there were none.
#[must_use]
pub fn walks(sample: &Sample) -> Option<Times> {
    let walks = sample.series.get("walk_ns")?;
    counted(walks, &vec![1; walks.len()])
}

/// Ascending, each time once; none if there are none, or the lists do not belong together.
fn counted(ns: &[u64], counts: &[u64]) -> Option<Times> {
    let is_whole = ns.len() == counts.len() && counts.iter().any(|count| *count > 0);
    is_whole.then(|| pooled(ns.iter().copied().zip(counts.iter().copied())))
}

/// Times with their counts, ascending, each time once.
pub(super) fn pooled(times: impl Iterator<Item = (u64, u64)>) -> Times {
    let mut all: Times = times.collect();
    // Each sample's times ascend, and runs are merged.
    all.sort_by_key(|(ns, _)| *ns);
    all.dedup_by(|next, kept| {
        let is_same = next.0 == kept.0;
        kept.1 += if is_same { next.1 } else { 0 };
        is_same
    });
    all
}

/// The time that this part of them (0 to 1) did not exceed: the nearest rank.
#[must_use]
pub fn quantile_ns(times: &[(u64, u64)], part: f64) -> Option<f64> {
    let total: u64 = times.iter().map(|(_, count)| count).sum();
    let rank = ((part * total as f64).ceil() as u64).clamp(1, total.max(1));
    let mut seen = 0;
    let found = times.iter().find(|(_, count)| {
        seen += count;
        seen >= rank
    });
    found.map(|(ns, _)| *ns as f64)
}

/// Responses while the clock ran.
#[must_use]
pub fn answered(sample: &Sample) -> Option<f64> {
    let answered: u64 = sample.series.get("answered")?.iter().sum();
    (answered > 0).then_some(answered as f64)
}

/// The CPU time of several processes, nanoseconds; none if one's was not taken.
#[must_use]
pub fn cpu_ns(sample: &Sample, processes: &[&str]) -> Option<u64> {
    processes.iter().map(|process| sample.phases_ns.get(*process).copied()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks_of_the_counts() {
        let times = [(10, 98), (20, 1), (70, 1)];
        let at = |part| quantile_ns(&times, part).unwrap();
        assert_eq!([at(0.5), at(0.98), at(0.99), at(0.999)], [10.0, 10.0, 20.0, 70.0]);
        assert_eq!(quantile_ns(&[], 0.5), None);
    }
}
