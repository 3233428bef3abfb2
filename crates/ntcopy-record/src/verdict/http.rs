//! What clients of a proxy come to: throughput, CPU time, latency.

use super::bulk::not_measured;
use super::wins;
use super::{HINTED, PATCHED};
use crate::record::{Cell, Record};
use crate::stats::http::is_open;
use crate::stats::{self, P99, PER_CPU, THROUGHPUT, Versus, WALKS, versus};

const FASTER: &str = "moves bodies faster";
const CHEAPER: &str = "takes less CPU time of proxy and backend for a byte";
const SOONER: &str = "is answered sooner, at p99,";
const KEPT: &str = "lets a hot set on the backend's CPU be walked faster";

pub(super) fn sentences(record: &Record) -> Vec<String> {
    let baseline = record.header.baseline.as_str();
    let mut sentences = Vec::new();
    for mode in stats::modes(record).into_iter().filter(|mode| *mode != baseline) {
        sentences.extend(
            [
                tally(record, (mode, baseline), THROUGHPUT, FASTER),
                tally(record, (mode, baseline), PER_CPU, CHEAPER),
                tally(record, (mode, baseline), P99, SOONER),
                tally(record, (mode, baseline), WALKS, KEPT),
            ]
            .into_iter()
            .flatten(),
        );
    }
    for pair in HINTED.map(|mode| (mode, PATCHED)) {
        sentences.extend(tally(record, pair, THROUGHPUT, FASTER));
        sentences.extend(tally(record, pair, PER_CPU, CHEAPER));
    }
    sentences.extend(against_own_copy(record));
    sentences.extend(behind(record));
    sentences.extend(not_measured(record));
    if sentences.is_empty() {
        sentences.push(format!("Nothing was compared with {baseline}."));
    }
    sentences
}

/// A mode against another in every cell that has both.
fn everywhere<'a>(
    record: &'a Record,
    mode: &str,
    other: &str,
    metric: &str,
) -> Vec<(&'a Cell, Versus)> {
    // CPU time is judged where as much as possible goes through; at an offered rate it is shown.
    // A hot set is judged where the traffic is the same in every mode, if that was measured.
    let wants_open = match metric {
        P99 => true,
        WALKS => record.cells.iter().any(is_open),
        _ => false,
    };
    let cells = record.cells.iter().filter(|cell| is_open(cell) == wants_open);
    cells.filter_map(|cell| Some((cell, versus(record, cell.cell, mode, other, metric)?))).collect()
}

/// Where a mode wins, where it loses, and by how much.
fn tally(
    record: &Record,
    (mode, other): (&str, &str),
    metric: &str,
    is_better: &str,
) -> Option<String> {
    let cells = everywhere(record, mode, other, metric);
    wins::sentence(&cells, (mode, other), is_better)
}

/// Where several stacks were measured: each one's modes against its own plain sends.
fn against_own_copy(record: &Record) -> Vec<String> {
    let baseline = record.header.baseline.as_str();
    let mut sentences = Vec::new();
    for mode in stats::modes(record) {
        let Some((stack, own)) = mode.split_once(':') else { continue };
        let copy = format!("{stack}:copy");
        if own != "copy" && copy != baseline {
            sentences.extend(tally(record, (mode, &copy), THROUGHPUT, FASTER));
            sentences.extend(tally(record, (mode, &copy), WALKS, KEPT));
        }
    }
    sentences
}

/// Whether requests were left without an answer: then the rate was too much for a mode.
pub(super) fn behind(record: &Record) -> Option<String> {
    let left = record.samples.iter().filter_map(|sample| {
        let unanswered: u64 = sample.series.get("unanswered")?.iter().sum();
        Some((sample.mode.as_str(), unanswered))
    });
    let left: Vec<(&str, u64)> = left.filter(|(_, unanswered)| *unanswered > 0).collect();
    let total: u64 = left.iter().map(|(_, unanswered)| unanswered).sum();
    let mut modes: Vec<&str> = left.into_iter().map(|(mode, _)| mode).collect();
    modes.sort_unstable();
    modes.dedup();
    (total > 0).then(|| {
        format!(
            "{total} requests of {} were not answered before no more was waited for; they count \
             with the time until then.",
            modes.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Sample;
    use crate::stats::http::tests::sketch;

    #[test]
    fn throughput_cost_and_latency_are_told_apart() {
        let said = sentences(&sketch([(1_000_000, 2, 100), (1_250_000, 1, 50)])).join("\n");
        for words in [
            "adaptive moves bodies faster than copy in 1, the other way round in 0",
            "1.25x, interval 1.25-1.25 (objects of 1 MiB, data set of 256 MiB, 64 connections)",
            "adaptive takes less CPU time of proxy and backend for a byte than copy in 1",
            "adaptive is answered sooner, at p99, than copy in 1",
        ] {
            assert!(said.contains(words), "{words} is missing:\n{said}");
        }
        assert!(!said.contains("haproxy"), "{said}");
    }

    #[test]
    fn a_loss_is_said() {
        let said = sentences(&sketch([(1_000_000, 1, 50), (900_000, 2, 100)])).join("\n");
        assert!(said.contains("faster than copy in 0, the other way round in 1"), "{said}");
    }

    #[test]
    fn stacks_are_compared_with_the_first_and_with_themselves() {
        let mut record = sketch([(1_000_000, 1, 50), (900_000, 2, 100)]);
        record.header.baseline = "haproxy+nginx:copy".into();
        let mut own = Vec::new();
        for sample in &mut record.samples {
            let copy = sample.mode == "copy";
            sample.mode =
                if copy { "haproxy+nginx:copy" } else { "storaged+proxyd:copy" }.to_owned();
            if !copy {
                let mode = "storaged+proxyd:adaptive".to_owned();
                own.push(Sample { mode, ..sample.clone() });
            }
        }
        record.samples.extend(own);
        let said = sentences(&record).join("\n");
        assert!(said.contains("storaged+proxyd:copy moves bodies faster than haproxy"), "{said}");
        let words = "storaged+proxyd:adaptive moves bodies faster than storaged+proxyd:copy in 0";
        assert!(said.contains(words), "{said}");
    }

    #[test]
    fn a_hot_set_is_judged_where_the_traffic_is_the_same() {
        let mut record = sketch([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
        assert!(!sentences(&record).join("\n").contains("hot set"));
        for sample in &mut record.samples {
            let is_copy = sample.mode == "copy";
            // Without a pause more traffic goes by, and the hot set is colder.
            let ns = match (sample.cell, is_copy) {
                (0, _) => 9000,
                (_, true) => 3000,
                (_, false) => 2000,
            };
            sample.series.insert("walk_ns".into(), vec![ns]);
        }
        let idle = record.samples.iter().filter(|sample| sample.mode == "copy").map(|sample| {
            let series = [("walk_ns".to_owned(), vec![1000])].into();
            Sample { mode: "idle".into(), bytes: 0, series, ..sample.clone() }
        });
        let idle: Vec<Sample> = idle.collect();
        record.samples.extend(idle);
        let said = sentences(&record).join("\n");
        for words in [
            "adaptive lets a hot set on the backend's CPU be walked faster than copy in 1",
            "1.50x, interval 1.50-1.50",
            "idle lets a hot set on the backend's CPU be walked faster than copy in 1",
            "3.00x, interval 3.00-3.00",
        ] {
            assert!(said.contains(words), "{words} is missing:\n{said}");
        }
        assert!(!said.contains("idle moves") && !said.contains("idle takes"), "{said}");
        // With nothing on a schedule, what there is.
        record.cells.pop();
        record.samples.retain(|sample| sample.cell == 0);
        let said = sentences(&record).join("\n");
        assert!(said.contains("idle lets a hot set on the backend's CPU be walked"), "{said}");
    }

    #[test]
    fn requests_that_were_given_up_are_said() {
        let mut record = sketch([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
        record.samples.last_mut().unwrap().series.insert("unanswered".into(), vec![3]);
        let said = sentences(&record).join("\n");
        assert!(said.contains("3 requests of adaptive were not answered"), "{said}");
    }
}
