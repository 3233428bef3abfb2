//! What requests and responses come to, and messages there and back.

use super::bulk::not_measured;
use super::http::behind;
use super::wins;
use crate::record::{Cell, Record};
use crate::stats::http::is_open;
use crate::stats::{self, P50, P99, PER_CPU, THROUGHPUT, Versus, versus};

const MORE: &str = "makes more transactions";
const CHEAPER: &str = "takes less CPU time of client and server for one";
const SOONER: &str = "is answered sooner at an offered rate, at p99,";
const SHORTER: &str = "takes less time for half a round trip, at the median,";
const SHORTER_TAIL: &str = "takes less time at p99";

/// Sentences about requests and responses.
pub(super) fn sentences(record: &Record) -> Vec<String> {
    let mut said = each_mode(
        record,
        &[(THROUGHPUT, MORE, false), (PER_CPU, CHEAPER, false), (P99, SOONER, true)],
    );
    said.extend(behind(record));
    said.extend(not_measured(record));
    or_nothing(said, record)
}

/// Sentences about messages there and back.
pub(super) fn pingpong(record: &Record) -> Vec<String> {
    let mut said = each_mode(record, &[(P50, SHORTER, false), (P99, SHORTER_TAIL, false)]);
    said.extend(not_measured(record));
    or_nothing(said, record)
}

fn or_nothing(mut said: Vec<String>, record: &Record) -> Vec<String> {
    if said.is_empty() {
        said.push(format!("Nothing was compared with {}.", record.header.baseline));
    }
    said
}

/// A sentence for each mode and metric, over the cells of that form.
fn each_mode(record: &Record, metrics: &[(&str, &str, bool)]) -> Vec<String> {
    let baseline = record.header.baseline.as_str();
    let mut said = Vec::new();
    for mode in stats::modes(record).into_iter().filter(|mode| *mode != baseline) {
        for (metric, is_better, wants_open) in metrics {
            let cells = record.cells.iter().filter(|cell| is_open(cell) == *wants_open);
            let cells: Vec<(&Cell, Versus)> = cells
                .filter_map(|cell| Some((cell, versus(record, cell.cell, mode, baseline, metric)?)))
                .collect();
            said.extend(wins::sentence(&cells, (mode, baseline), is_better));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{net, pingpong as stats_pingpong};

    #[test]
    fn transactions_cost_and_latency_are_told_apart() {
        let said = sentences(&net::tests::sketch([(10_000, 20, 100), (20_000, 10, 50)])).join("\n");
        for words in [
            "adaptive makes more transactions than copy in 1, the other way round in 0",
            "2.00x, interval 2.00-2.00 (tcp, 14000 bytes both ways, 16 connections)",
            "adaptive takes less CPU time of client and server for one than copy in 1",
            "adaptive is answered sooner at an offered rate, at p99, than copy in 1",
        ] {
            assert!(said.contains(words), "{words} is missing:\n{said}");
        }
        let lost = sentences(&net::tests::sketch([(20_000, 10, 50), (10_000, 20, 100)])).join("\n");
        assert!(lost.contains("more transactions than copy in 0, the other way round in 1"));
    }

    #[test]
    fn a_message_is_told_by_its_median_and_its_tail() {
        let record = stats_pingpong::tests::sketch(&[
            ("copy", &[(1000, 98), (2000, 2)]),
            ("nt", &[(2000, 98), (1000, 2)]),
        ]);
        let said = pingpong(&record).join("\n");
        assert!(
            said.contains(
                "nt takes less time for half a round trip, at the median, than copy \
                               in 0, the other way round in 1"
            ),
            "{said}"
        );
        assert!(said.contains("(udp, messages of 256 bytes)"), "{said}");
    }
}
