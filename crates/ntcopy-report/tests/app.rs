//! Records of `app` as tables, JSON and a page. The records are SYNTHETIC.

mod common;

use std::collections::BTreeMap;

use common::{params, synthetic_empty};
use ntcopy_record::{Cell, Record, Sample, compare};
use ntcopy_report::{json, page, table};
use serde_json::json;

/// Mode, bytes of large values a second, and how much sooner small requests are answered.
const MODES: [(&str, u64, f64); 3] =
    [("copy", 1_000_000_000, 1.0), ("idle", 0, 4.0), ("adaptive", 1_250_000_000, 2.0)];

fn synthetic() -> Record {
    let mut record = synthetic_empty("app");
    record.header.experiment = "app".into();
    for (cell, (form, rate)) in (0..).zip([("open", "0.5"), ("closed", "max")]) {
        let mut told = json!({
            "app": "memcached", "app_version": "memcached 1.6.18", "form": form,
            "connections": 16, "large_rate": rate, "large_bytes": 1 << 20,
            "dataset_bytes": 256 << 20, "small_bytes": 1024, "small_keys": 512,
            "multiget_keys": 100, "offered_requests_per_1000_s": 2_000_000,
            "server_cpu": 0, "client_cpu": 0,
        });
        if form == "open" {
            told["offered_bytes_per_s"] = 1_250_000_000_u64.into();
        }
        record.cells.push(Cell { cell, params: params(told) });
        for pair in 0..5 {
            record.samples.extend(
                (0..).zip(MODES).map(|(position, mode)| sample((cell, pair, position), mode)),
            );
        }
    }
    record
}

fn sample(
    (cell, pair, position): (u32, u32, u32),
    (mode, bytes, factor): (&str, u64, f64),
) -> Sample {
    let ns = |us: f64| (us * 1000.0 / factor) as u64;
    let counters = [("nontemporal_bytes", 90), ("too_small_bytes", 10)];
    Sample {
        cell,
        pair,
        position,
        mode: mode.to_owned(),
        bytes,
        elapsed_ns: 1_000_000_000,
        phases_ns: [("client_cpu".to_owned(), bytes / 5), ("server_cpu".to_owned(), bytes / 2)]
            .into(),
        counters: if mode == "adaptive" {
            counters.map(|(name, count)| (name.to_owned(), count)).into()
        } else {
            BTreeMap::new()
        },
        series: [
            ("multigets", vec![2_000]),
            ("latency_ns", vec![ns(200.0), ns(1600.0)]),
            ("answers", vec![1_900, 100]),
        ]
        .map(|(name, list)| (name.to_owned(), list))
        .into(),
    }
}

#[test]
fn the_terminal_has_small_requests_and_large_ones_in_tables_of_their_own() {
    let text = table::terminal(&synthetic());
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let words = text.replace('\n', " ");
    assert_eq!(words.matches("multigets of 100 values of 1 KiB").count(), 2, "{text}");
    assert_eq!(words.matches("CPU s/GB of the program").count(), 2, "{text}");
    let rows = |mode: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains(mode)).map(str::to_owned).collect()
    };
    let (idle, adaptive) = (rows("idle "), rows("adaptive "));
    assert_eq!((idle.len(), adaptive.len()), (2, 4), "idle has no large values: {text}");
    for words in ["100", "800", "2.00x (2.00-2.00)", "win", "10,000"] {
        assert!(adaptive[0].contains(words), "{words}: {text}");
    }
    for words in ["1.2 ", "1.25x (1.25-1.25)", "win", "90 %", "0.500", "1.00x"] {
        assert!(adaptive[2].contains(words), "{words}: {text}");
    }
    assert!(words.contains("16, 1.2 GB/s") && words.contains("on one CPU"), "{text}");
}

#[test]
fn json_has_all_that_the_tables_have() {
    let record = synthetic();
    let object = json::object(&record);
    let adaptive = &object["app"][0]["modes"][2];
    assert_eq!(
        (&adaptive["mode"], &adaptive["latency_ns"]["p99"]),
        (&json!("adaptive"), &json!(800_000))
    );
    assert_eq!(adaptive["large_bytes_per_s"], 1_250_000_000);
    assert_eq!(object["app"][0]["modes"][1]["throughput"], json!(null));
    let results = object["results"].as_array().expect("results");
    let metrics = |metric: &str| results.iter().filter(|r| r["metric"] == metric).count();
    // Idle has no throughput, and no cost of it.
    assert_eq!(
        ["throughput", "bytes_per_cpu_s", "p50_rate", "p99_rate"].map(metrics),
        [2, 2, 4, 4]
    );
    assert!(object.get("sweep").is_none());
}

#[test]
fn a_page_has_the_tables_and_a_chart_of_each_cell() {
    let html = page::html(&[synthetic()], &["ntcopy".to_owned()]);
    assert!(html.contains("Does a real program keep its cache?"));
    assert_eq!(html.matches("Latency by percentile").count(), 2);
    assert!(html.contains("drops large values in its socket"));
}

#[test]
fn records_are_compared_by_what_was_asked_and_not_by_what_that_came_to() {
    let a = synthetic();
    let mut b = synthetic();
    for cell in &mut b.cells {
        cell.params.insert("app_version".into(), "memcached 1.6.40".into());
        cell.params.insert("offered_requests_per_1000_s".into(), 1.into());
        cell.params.insert("server_cpu".into(), 3.into());
        if let Some(rate) = cell.params.get_mut("offered_bytes_per_s") {
            *rate = 1.into();
        }
    }
    let both = compare::compare(std::slice::from_ref(&a), std::slice::from_ref(&b));
    // By throughput, cost and p99 for adaptive, by p99 for idle: in two cells.
    assert_eq!((both.cells.len(), both.only_a, both.only_b), (8, 0, 0));
    b.cells[0].params.insert("large_bytes".into(), 4096.into());
    assert_eq!(compare::compare(&[a], &[b]).only_a, 4);
}

/// The same cells, in which the most multigets at p99 <= 1 ms were searched for; copy found none in
/// the second.
fn searched() -> Record {
    let mut record = synthetic();
    for cell in &mut record.cells {
        cell.params.insert("p99_limit_ns".into(), 1_000_000.into());
        cell.params.remove("offered_requests_per_1000_s");
    }
    for sample in &mut record.samples {
        let per_s = match sample.mode.as_str() {
            "copy" => 1_000,
            "idle" => 4_000,
            _ => 1_500,
        };
        let found = (sample.mode != "copy" || sample.cell == 0).then_some(per_s * 1000);
        let p99_ns = if found.is_some() { 900_000 } else { 7_000_000 };
        sample.series = [
            ("tried_per_1000_s".to_owned(), vec![per_s * 2000, per_s * 1000]),
            ("tried_p99_ns".to_owned(), vec![9_000_000, p99_ns]),
        ]
        .into();
        sample.series.extend(found.map(|rate| ("capacity_per_1000_s".to_owned(), vec![rate])));
    }
    record
}

#[test]
fn what_was_found_within_a_limit_has_a_table_json_and_a_page() {
    let record = searched();
    let text = table::terminal(&record);
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let words = text.replace('\n', " ");
    assert_eq!(words.matches("the most multigets per second at p99 <= 1 ms").count(), 2, "{text}");
    assert!(!words.contains("p50 us") && !words.contains("CPU s/GB"), "{text}");
    let adaptive = text.lines().find(|line| line.contains("adaptive")).expect("a row");
    for words in ["1,500", "1.50x (1.50-1.50)", "win", "5 of 5", "1.2"] {
        assert!(adaptive.contains(words), "{words}: {text}");
    }
    let none = text.lines().find(|line| line.contains("0 of 5")).expect("a row");
    assert!(none.contains("copy") && none.contains("none"), "{text}");
    assert_eq!(words.matches("copy has none").count(), 2, "{text}");
    let object = json::object(&record);
    let copy = &object["app"][1]["modes"][0];
    assert_eq!((&copy["multigets_per_s"], &copy["found"]), (&json!(null), &json!(0)));
    assert_eq!(copy["lowest"], json!({"multigets_per_s": 1000.0, "p99_ns": 7_000_000}));
    let results = object["results"].as_array().expect("results");
    let is_of = |metric: &str| results.iter().filter(|r| r["metric"] == metric).count();
    assert_eq!((results.len(), is_of("multigets_per_s_within_p99")), (2, 2));
    let adaptive = results.iter().find(|result| result["mode"] == "adaptive").expect("a result");
    assert_eq!((&adaptive["median"], &adaptive["ratio"]), (&json!(1500), &json!(1.5)));
    let html = page::html(&[record], &["ntcopy".to_owned()]);
    assert!(html.contains("at p99 &lt;= 1 ms") && !html.contains("Latency by percentile"));
}
