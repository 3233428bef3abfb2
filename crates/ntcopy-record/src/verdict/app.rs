//! What a program's small requests and large ones come to, in words.

use super::bulk::not_measured;
use super::http::behind;
use super::wins;
use crate::params::cell_words;
use crate::record::{Cell, Record};
use crate::stats::app::{
    Capacity, Served, capacities, limit_ns, limit_words, served, without_multigets,
};
use crate::stats::{self, CAPACITY, P50, P99, PER_CPU, THROUGHPUT, Versus, versus};

const SOONER: &str = "answers small requests sooner, at the median,";
const SOONER_TAIL: &str = "answers them sooner, at p99,";
const MORE: &str = "moves more of the large values";
const CHEAPER: &str = "takes less CPU time of the program for a byte of them";

/// The mode without large requests.
const IDLE: &str = "idle";

pub(super) fn sentences(record: &Record) -> Vec<String> {
    let baseline = record.header.baseline.as_str();
    let mut said: Vec<String> =
        record.cells.iter().filter_map(|cell| beside(record, cell, baseline)).collect();
    said.extend(record.cells.iter().flat_map(|cell| within(record, cell)));
    said.extend(record.cells.iter().filter_map(|cell| silent(record, cell)));
    let limit = record.cells.iter().find_map(|cell| limit_ns(&cell.params)).unwrap_or_default();
    let more_within = format!("answers more multigets per second at p99 <= {}", limit_words(limit));
    for mode in stats::modes(record).into_iter().filter(|mode| ![baseline, IDLE].contains(mode)) {
        for (metric, is_better) in [
            (P50, SOONER),
            (P99, SOONER_TAIL),
            (THROUGHPUT, MORE),
            (PER_CPU, CHEAPER),
            (CAPACITY, more_within.as_str()),
        ] {
            let one = |cell: &Cell| versus(record, cell.cell, mode, baseline, metric);
            let cells: Vec<(&Cell, Versus)> =
                record.cells.iter().filter_map(|cell| Some((cell, one(cell)?))).collect();
            said.extend(wins::sentence(&cells, (mode, baseline), is_better));
        }
    }
    said.extend(behind(record));
    said.extend(not_measured(record));
    if said.is_empty() {
        said.push(format!("Nothing was compared with {baseline}."));
    }
    said
}

/// What small requests of the baseline feel of the large ones.
fn beside(record: &Record, cell: &Cell, baseline: &str) -> Option<String> {
    let all = served(record, cell);
    let of = |mode: &str| all.iter().find(|served| served.mode == mode);
    let us = |served: &Served, at: usize| Some(served.quantiles_ns[at]? / 1000.0);
    let (alone, beside) = (of(IDLE)?, of(baseline)?);
    Some(format!(
        "{}: a small request takes {:.0} us (p99 {:.0}) when there are no large ones, and {:.0} us \
         (p99 {:.0}) beside {:.2} GB/s of them.",
        super::capital(&cell_words(&cell.params)),
        us(alone, 0)?,
        us(alone, 2)?,
        us(beside, 0)?,
        us(beside, 2)?,
        beside.bytes_per_s? / 1e9,
    ))
}

/// The modes of which no multiget came, and what helps.
fn silent(record: &Record, cell: &Cell) -> Option<String> {
    let modes = without_multigets(record, cell);
    (!modes.is_empty()).then(|| {
        format!(
            "{}: no multiget was due in the samples of {}, so nothing is known of them; without \
             --quick samples are longer.",
            super::capital(&cell_words(&cell.params)),
            modes.join(", ")
        )
    })
}

/// The most multigets of each mode within the limit, and where there is no such rate.
fn within(record: &Record, cell: &Cell) -> Vec<String> {
    let Some(limit) = limit_ns(&cell.params).map(limit_words) else { return Vec::new() };
    let all = capacities(record, cell);
    let place = super::capital(&cell_words(&cell.params));
    let figure = |mode: &Capacity| Some(format!("{} {:.0}", mode.mode, mode.per_s?));
    let figures: Vec<String> = all.iter().filter_map(figure).collect();
    let mut said = Vec::new();
    if !figures.is_empty() {
        let figures = figures.join(", ");
        said.push(format!("{place}: the most multigets per second at p99 <= {limit}: {figures}."));
    }
    let missed = |mode: &Capacity| {
        let lowest = mode.lowest?;
        let (name, held, searches) = (&mode.mode, mode.held, mode.searches);
        let how_often = if held == 0 {
            format!("{name} keeps p99 <= {limit} at no rate")
        } else {
            format!("{name} keeps p99 <= {limit} at some rate in {held} of {searches} searches")
        };
        let (per_s, us) = (lowest.per_s, lowest.p99_ns / 1000.0);
        Some(format!(
            "{place}: {how_often}; p99 was {us:.0} us at {per_s:.0} multigets per second, the lowest \
             rate that was tried."
        ))
    };
    said.extend(all.iter().filter_map(missed));
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::app::tests::{searches, sketch};

    #[test]
    fn what_was_found_within_a_limit_is_told_and_what_kept_to_it_at_no_rate_too() {
        let said = sentences(&searches([[1000; 5], [4000; 5], [1500; 5]])).join("\n");
        for words in [
            "the most multigets per second at p99 <= 1 ms: copy 1000, idle 4000, adaptive 1500.",
            "adaptive answers more multigets per second at p99 <= 1 ms than copy in 1, the other way",
            "1.50x, interval 1.50-1.50 (data set of 256 MiB, 16 connections, without a pause)",
        ] {
            assert!(said.contains(words), "{words} is missing:\n{said}");
        }
        assert!(!said.contains("at no rate") && !said.contains("sooner"), "{said}");
        let said = sentences(&searches([[0; 5], [4000; 5], [0, 0, 300, 300, 300]])).join("\n");
        for words in [
            "1 ms: idle 4000, adaptive 300.",
            "copy keeps p99 <= 1 ms at no rate; p99 was 5000 us at 100 multigets per second, the \
             lowest rate",
            "adaptive keeps p99 <= 1 ms at some rate in 3 of 5 searches; p99 was 5000 us",
        ] {
            assert!(said.contains(words), "{words} is missing:\n{said}");
        }
    }

    #[test]
    fn a_mode_without_a_multiget_is_named() {
        let mut record = sketch([(1_000_000, 2, 100), (0, 0, 25), (1_250_000, 1, 50)]);
        for sample in record.samples.iter_mut().filter(|sample| sample.mode == "idle") {
            sample.series = [("multigets".to_owned(), vec![0])].into();
        }
        let said = sentences(&record).join("\n");
        assert!(said.contains("no multiget was due in the samples of idle, so"), "{said}");
    }

    #[test]
    fn small_requests_and_large_ones_are_told_apart() {
        let said = sentences(&sketch([(1_000_000, 2, 100), (0, 0, 25), (1_250_000, 1, 50)]));
        let said = said.join("\n");
        for words in [
            "16 connections, without a pause: a small request takes 25 us (p99 125) when there are \
             no large ones, and 100 us (p99 500) beside 0.00 GB/s of them.",
            "adaptive answers small requests sooner, at the median, than copy in 1, the other way \
             round in 0",
            "adaptive answers them sooner, at p99, than copy in 1",
            "2.00x, interval 2.00-2.00 (data set of 256 MiB, 16 connections, without a pause)",
            "adaptive moves more of the large values than copy in 1",
            "adaptive takes less CPU time of the program for a byte of them than copy in 1",
        ] {
            assert!(said.contains(words), "{words} is missing:\n{said}");
        }
        assert!(!said.contains("idle answers"), "{said}");
        let lost = sentences(&sketch([(1_000_000, 1, 50), (0, 0, 25), (900_000, 2, 100)]));
        let words = "adaptive moves more of the large values than copy in 0, the other way round";
        assert!(lost.join("\n").contains(words), "{lost:?}");
    }
}
