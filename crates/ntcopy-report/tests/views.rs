//! What each experiment shows, as tables, JSON and page: of a record made by hand in every figure, and
//! of one record of each experiment that lies in `bench/record`.

mod common;

use std::path::Path;

use ntcopy_record::{Cell, Params, Record, Sample, testing};
use ntcopy_report::{json, page, table};
use serde_json::json;

const MIB: u64 = 1 << 20;

fn parameters(form: &str, connections: u64) -> Params {
    let mut value = json!({
        "form": form, "object_bytes": MIB, "dataset_bytes": 256 * MIB,
        "connections": connections, "asked_bytes": connections * MIB, "transport": "unix",
        "scheme": "plain", "workers": 1, "stack": "storaged+proxyd",
    });
    if form == "open" {
        value["offered_requests_per_1000_s"] = 1_234_500.into();
    }
    common::params(value)
}

/// SYNTHETIC: two numbers of connections, without a pause and on a schedule; five pairs.
fn synthetic() -> Record {
    let mut record = common::synthetic_empty("http");
    record.header.experiment = "http".into();
    for (cell, (connections, form)) in
        (0..).zip([(1, "closed"), (1, "open"), (64, "closed"), (64, "open")])
    {
        record.cells.push(Cell { cell, params: parameters(form, connections) });
        for pair in 0..5 {
            for (position, (mode, factor)) in (0..).zip([("copy", 1.0), ("adaptive", 1.25)]) {
                record.samples.push(sample(cell, (pair, position), mode, factor, form));
            }
        }
    }
    record
}

fn sample(cell: u32, (pair, position): (u32, u32), mode: &str, factor: f64, form: &str) -> Sample {
    let bytes = 1_000_000_000_u64;
    let cpu = |ns: f64| (ns / factor) as u64;
    let phases = [("client_cpu", 1e8), ("proxy_cpu", 3e8), ("backend_cpu", 4e8)];
    let elapsed_ns = (1e9 / 2.0 / factor) as u64;
    let mut sample = testing::sample((cell, pair, position), mode, bytes, elapsed_ns);
    sample.phases_ns = phases.map(|(name, ns)| (name.to_owned(), cpu(ns))).into();
    sample.series.insert("answered".to_owned(), vec![954]);
    if form == "open" {
        sample.series.insert("latency_ns".to_owned(), vec![cpu(5e5), cpu(9e6)]);
        sample.series.insert("answers".to_owned(), vec![980, 20]);
    }
    if mode == "adaptive" {
        let counters = [("nontemporal_bytes", 80), ("fits_cache_bytes", 20)];
        sample.counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
    }
    sample
}

fn html(record: &Record) -> String {
    page::html(std::slice::from_ref(record), &["ntcopy".to_owned()])
}

#[test]
fn the_tables_of_a_proxy_have_its_figures_without_a_pause_and_on_a_schedule() {
    let text = table::terminal(&synthetic());
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("adaptive")).collect();
    assert_eq!(rows.len(), 4, "{text}");
    // 2 GB/s x 1.25; 0.3 s and 0.4 s per GB, divided by 1.25.
    for words in ["2.500", "1.25x (1.25-1.25)", "win", "80 %", "0.240", "0.320", "0.080"] {
        assert!(rows[0].contains(words), "{words}: {text}");
    }
    for words in ["400.0", "7,200", "1.25x (1.25-1.25)", "5,000"] {
        assert!(rows[2].contains(words), "{words}: {text}");
    }
    assert!(text.contains("1234 requests per second, on a schedule"), "{text}");
    let object = json::object(&synthetic());
    let figures = object["figures"].as_array().expect("a list");
    assert_eq!((figures.len(), &figures[1]["mode"]), (8, &"adaptive".into()));
    assert!((figures[1]["backend_cpu_s_per_gb"].as_f64().unwrap() - 0.32).abs() < 1e-6);
    assert_eq!(figures[1]["nontemporal_part"], 0.8);
    assert_eq!((&figures[2]["p50_us"], &figures[2]["answers"]), (&500.0.into(), &5000.0.into()));
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
    assert!(table::terminal(&record).contains("1.25x"));
    assert!(json::object(&record)["figures"].as_array().is_some_and(|all| !all.is_empty()));
    assert!(html(&record).contains("Experiment later"));
}

#[test]
fn every_experiment_shows_what_it_measured_in_all_forms() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/record");
    for (place, columns) in [
        ("2026-11-25-GenuineIntel-6-167-1/families", "in sends"),
        ("2026-11-28-GenuineIntel-6-207-2/retention", "p99 ratio"),
        ("2026-11-28-GenuineIntel-6-207-2/app-by-unpatched", "p99 us"),
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
        let text = table::terminal(&record);
        assert!(text.is_ascii() && text.contains(columns), "{place}: {text}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{place}: {text}");
        let markdown = table::markdown(&record);
        let rows: Vec<usize> = markdown
            .lines()
            .filter(|l| l.starts_with('|'))
            .map(|l| l.matches('|').count())
            .collect();
        assert!(rows.len() > 2, "{place}: {markdown}");
        let object = json::object(&record);
        assert!(!object["results"].as_array().expect(place).is_empty(), "{place}");
        let page = html(&record);
        assert!(page.contains(columns) && page.contains("<table"), "{place}");
    }
}

#[test]
fn a_guest_without_counters_says_so_once_and_shows_no_table() {
    let record = common::with_hardware(common::synthetic_rounds(), &[], "no PMU in this guest");
    let text = table::terminal(&record);
    assert!(text.contains("mbm-total-bytes: n/a (no PMU in this guest)."), "{text}");
    assert!(!text.contains("hardware events"), "{text}");
    assert!(table::markdown(&record).contains("n/a (no PMU in this guest)"));
    assert!(html(&record).contains("n/a (no PMU in this guest)"));
}

#[test]
fn hardware_events_that_were_counted_have_a_table_and_scaled_ones_are_marked() {
    let counted = ["cycles", "llc-misses", "dram-read-bytes"];
    let mut record = common::with_hardware(common::synthetic_rounds(), &counted, "not allowed");
    for sample in record.samples.iter_mut().filter(|sample| sample.mode == "nt") {
        sample.counters.insert("llc-misses:counted_permille".to_owned(), 500);
    }
    let text = table::terminal(&record).replace('\n', " ");
    let at = text.find("hardware events per line of 64 bytes").expect("a table");
    assert!(text[at..].contains("dram-read-bytes") && text[at..].contains("~64.00"), "{text}");
    assert!(text.contains("n/a (not allowed).") && !text.contains("permille"), "{text}");
}
