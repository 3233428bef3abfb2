//! What each experiment shows, as tables, JSON and page: of a record made by hand in every figure, and
//! of one record of each experiment that lies in `bench/record`.

mod common;

use std::path::Path;

use ntcopy_judge::judge;
use ntcopy_record::{Record, testing};
use ntcopy_report::{json, table};

/// SYNTHETIC: a proxy without a pause and on a schedule; `hinted` moves a quarter more, in half of
/// the CPU time, and answers in half of the time; alike with 64 connections and with one.
fn synthetic() -> Record {
    let mut record = testing::proxied([(1_000_000_000, 2, 100), (1_250_000_000, 1, 50)]);
    record.cells[1].params.insert("offered_requests_per_1000_s".into(), 1_234_500.into());
    let (mut cells, mut samples) = (record.cells.clone(), record.samples.clone());
    for cell in &mut cells {
        cell.cell += 2;
        cell.params.insert("connections".into(), 1.into());
    }
    samples.iter_mut().for_each(|sample| sample.cell += 2);
    record.cells.extend(cells);
    record.samples.extend(samples);
    record
}

fn html(record: &Record) -> String {
    common::page(&[judge(record)], &["ntcopy".to_owned()])
}

#[test]
fn the_tables_of_a_proxy_have_its_figures_without_a_pause_and_on_a_schedule() {
    let text = table::terminal(&judge(&synthetic()));
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("hinted")).collect();
    assert_eq!(rows.len(), 4, "{text}");
    for words in ["1.250", "1.25x (1.25-1.25)", "win", "75 %", "1.000"] {
        assert!(rows[0].contains(words), "{words}: {text}");
    }
    for words in ["50.00", "250.0", "2.00x (2.00-2.00)", "500"] {
        assert!(rows[2].contains(words), "{words}: {text}");
    }
    assert!(text.contains("1234 requests per second, on a schedule"), "{text}");
    let object = json::object(&judge(&synthetic()));
    let figures = object["figures"].as_array().expect("a list");
    assert_eq!((figures.len(), &figures[1]["mode"]), (8, &"hinted".into()));
    assert!((figures[1]["backend_cpu_s_per_gb"].as_f64().unwrap() - 1.0).abs() < 1e-6);
    assert_eq!(figures[1]["nontemporal_part"], 0.75);
    assert_eq!((&figures[2]["p50_us"], &figures[2]["answers"]), (&100.0.into(), &500.0.into()));
    let of = |metric: &str| {
        object["results"].as_array().unwrap().iter().filter(|r| r["metric"] == metric).count()
    };
    assert_eq!(["throughput", "bytes_per_cpu_s", "p50_rate", "p99_rate"].map(of), [2, 2, 2, 2]);
    let page = html(&synthetic());
    assert!(page.contains("throws bodies away") && page.contains("Latency by percentile"));
    assert!(page.contains("CPU time of proxy and backend") && !page.contains("reader never looks"));
}

#[test]
fn an_experiment_that_is_not_known_is_shown_as_far_as_it_can_be() {
    let mut record = synthetic();
    record.header.experiment = "later".into();
    assert!(table::terminal(&judge(&record)).contains("1.25x"));
    assert!(json::object(&judge(&record))["figures"].as_array().is_some_and(|all| !all.is_empty()));
    assert!(html(&record).contains("Experiment later"));
}

#[test]
fn every_experiment_shows_what_it_measured_in_all_forms() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/record");
    for (place, columns) in [
        ("2026-11-29-GenuineIntel-6-167-1/families", "in sends"),
        ("2026-11-28-GenuineIntel-6-207-2/retention", "p99 ratio"),
        ("2026-11-29-GenuineIntel-6-167-1/app", "p99 us"),
        ("2026-11-25-AuthenticAMD-25-17-1/http-nginx", "of ceiling"),
        ("2026-11-22-GenuineIntel-6-207-2/net-host", "per second"),
        ("2026-11-22-GenuineIntel-6-207-2/pingpong", "mean us"),
        ("2026-11-26-GenuineIntel-6-167-1/memcpy", "ratio"),
        ("2026-11-21-GenuineIntel-6-207-2/memset", "ratio"),
        ("2026-11-21-GenuineIntel-6-207-2/pages", "ratio"),
        ("2026-11-21-GenuineIntel-6-207-2/fork", "us per fork"),
        ("2026-11-21-GenuineIntel-6-207-2/order", "ratio"),
        ("2026-11-26-GenuineIntel-6-167-1/footprint", "per KiB"),
    ] {
        let record = Record::read(root.join(place)).expect(place);
        let text = table::terminal(&judge(&record));
        assert!(text.is_ascii() && text.contains(columns), "{place}: {text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{place}: {text}");
        let markdown = table::markdown(&judge(&record));
        let rows: Vec<usize> = markdown
            .lines()
            .filter(|l| l.starts_with('|'))
            .map(|l| l.matches('|').count())
            .collect();
        assert!(rows.len() > 2, "{place}: {markdown}");
        let object = json::object(&judge(&record));
        assert!(!object["results"].as_array().expect(place).is_empty(), "{place}");
        let page = html(&record);
        assert!(page.contains(columns) && page.contains("<table"), "{place}");
    }
}

#[test]
fn a_guest_without_counters_says_so_once_and_shows_no_table() {
    let record = common::with_hardware(common::synthetic_rounds(), &[], "no PMU in this guest");
    let text = table::terminal(&judge(&record));
    assert!(text.contains("mbm-total-bytes: n/a (no PMU in this guest)."), "{text}");
    assert!(!text.contains("hardware events"), "{text}");
    assert!(table::markdown(&judge(&record)).contains("n/a (no PMU in this guest)"));
    assert!(html(&record).contains("n/a (no PMU in this guest)"));
}

#[test]
fn hardware_events_that_were_counted_have_a_table_and_scaled_ones_are_marked() {
    let counted = ["cycles", "llc-misses", "dram-read-bytes"];
    let mut record = common::with_hardware(common::synthetic_rounds(), &counted, "not allowed");
    for sample in record.samples.iter_mut().filter(|sample| sample.mode == "hinted") {
        sample.counters.insert("llc-misses:counted_permille".to_owned(), 500);
    }
    let text = table::terminal(&judge(&record)).replace('\n', " ");
    let at = text.find("hardware events per line of 64 bytes").expect("a table");
    assert!(text[at..].contains("dram-read-bytes") && text[at..].contains("~64.00"), "{text}");
    assert!(text.contains("n/a (not allowed).") && !text.contains("permille"), "{text}");
}
