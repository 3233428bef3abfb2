//! Clients of a proxy: their tables, their JSON and their part of the page.

mod common;

use ntcopy_record::verdict;
use ntcopy_record::{Cell, Params, Record, Sample};
use ntcopy_report::{json, page, table};
use serde_json::json;

const MIB: u64 = 1 << 20;

fn params(form: &str, connections: u64) -> Params {
    let mut value = json!({
        "form": form, "object_bytes": MIB, "dataset_bytes": 256 * MIB,
        "connections": connections, "asked_bytes": connections * MIB, "transport": "unix",
        "scheme": "plain", "workers": 1, "stack": "storaged+proxyd",
    });
    if form == "open" {
        value["offered_requests_per_1000_s"] = 1_234_500.into();
    }
    let object = value.as_object().expect("an object");
    object.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// SYNTHETIC: two numbers of connections, without a pause and on a schedule; five pairs.
fn synthetic() -> Record {
    let mut record = common::synthetic_empty("http");
    record.header.experiment = "http".into();
    for (cell, (connections, form)) in
        (0..).zip([(1, "closed"), (1, "open"), (64, "closed"), (64, "open")])
    {
        record.cells.push(Cell { cell, params: params(form, connections) });
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
    let mut series = std::collections::BTreeMap::from([("answered".to_owned(), vec![954])]);
    if form == "open" {
        series.insert("latency_ns".to_owned(), vec![cpu(5e5), cpu(9e6)]);
        series.insert("answers".to_owned(), vec![980, 20]);
    }
    let hinted = mode == "adaptive";
    let counters = [("nontemporal_bytes", 80), ("fits_cache_bytes", 20)];
    Sample {
        cell,
        pair,
        position,
        mode: mode.to_owned(),
        bytes,
        elapsed_ns: (1e9 / 2.0 / factor) as u64,
        phases_ns: phases.map(|(name, ns)| (name.to_owned(), cpu(ns))).into(),
        counters: if hinted { counters.map(|(n, c)| (n.to_owned(), c)).into() } else { [].into() },
        series,
    }
}

/// SYNTHETIC: the same beside a hot set of 100 lines.
fn with_hot_set() -> Record {
    let mut record = synthetic();
    for cell in &mut record.cells {
        cell.params.insert("hot_set_bytes".into(), 6400.into());
        cell.params.insert("backend_cpu".into(), 1.into());
    }
    let mut idle = Vec::new();
    for sample in &mut record.samples {
        let is_copy = sample.mode == "copy";
        sample.series.insert("walk_ns".into(), vec![if is_copy { 1000 } else { 800 }; 20]);
        if is_copy {
            let series = [("walk_ns".to_owned(), vec![500; 20])].into();
            idle.push(Sample { mode: "idle".into(), bytes: 0, series, ..sample.clone() });
        }
    }
    record.samples.extend(idle);
    record
}

#[test]
fn a_hot_set_has_tables_of_its_own_with_the_walks_that_nobody_disturbed() {
    let record = with_hot_set();
    let text = table::terminal(&record);
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    assert_eq!(text.matches("hot set, ns per line").count(), 2, "{text}");
    let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        one_line.contains("a hot set of 6400 bytes on the backend's CPU, the backend on CPU 1")
    );
    let rows = |mode: &str| text.lines().filter(|line| line.contains(mode)).collect::<Vec<_>>();
    let idle = rows("idle");
    assert_eq!(idle.len(), 4, "a row in each cell's table of the hot set alone: {text}");
    assert!(idle.iter().all(|row| row.contains("5.0") && row.contains("2.00x (2.00-2.00)")));
    let adaptive = rows("adaptive");
    assert!(adaptive[4].contains("8.0") && adaptive[4].contains("1.25x (1.25-1.25)"), "{text}");

    let object = json::object(&record);
    let kept = object["http"][0]["hot_set"].as_array().expect("modes");
    assert_eq!(kept.len(), 3);
    assert_eq!((&kept[0]["mode"], &kept[0]["line_ns"]["p50"]), (&"idle".into(), &5.0.into()));
    let walks = object["results"].as_array().expect("results").iter();
    assert_eq!(walks.filter(|result| result["metric"] == "walks").count(), 4 * 2);
    let html = page::html(std::slice::from_ref(&record), &["ntcopy".to_owned()]);
    assert!(html.contains("hot set, ns per line"), "{html}");
    assert!(!table::terminal(&synthetic()).contains("hot set"));
}

#[test]
fn the_terminal_has_a_table_without_a_pause_and_one_on_a_schedule() {
    let text = table::terminal(&synthetic());
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let headings = ["Without a pause, storaged+proxyd, HTTP", "On a schedule, storaged+proxyd"];
    assert!(headings.iter().all(|heading| text.matches(heading).count() == 1), "{text}");
    let adaptive: Vec<&str> = text.lines().filter(|line| line.contains("adaptive")).collect();
    assert_eq!(adaptive.len(), 4, "{text}");
    // 2 GB/s x 1.25; 0.3 s and 0.4 s a GB by 1.25.
    for words in ["2.5", "1.25x (1.25-1.25)", "win", "80 %", "0.240", "0.320", "0.080"] {
        assert!(adaptive[0].contains(words), "{words}: {text}");
    }
    for words in ["400", "7,200", "1.25x (1.25-1.25)", "5,000"] {
        assert!(adaptive[2].contains(words), "{words}: {text}");
    }
    assert!(text.contains("64, 1,234/s") || text.contains("64, 1,235/s"), "{text}");
}

#[test]
fn json_has_cpu_time_and_latencies_and_the_results_of_others_too() {
    let object = json::object(&synthetic());
    let cells = object["http"].as_array().expect("cells");
    assert_eq!(cells.len(), 4);
    let adaptive = &cells[0]["modes"][1];
    assert_eq!(adaptive["mode"], "adaptive");
    assert!((adaptive["cpu_s_per_gb"]["backend"].as_f64().expect("a number") - 0.32).abs() < 1e-6);
    assert_eq!(adaptive["nontemporal_part"], 0.8);
    let waited = &cells[1]["modes"][0];
    assert_eq!((&waited["latency_ns"]["p50"], &waited["answers"]), (&500_000.into(), &5000.into()));
    let results = object["results"].as_array().expect("results");
    let metrics = |metric: &str| results.iter().filter(|r| r["metric"] == metric).count();
    assert_eq!(
        ["throughput", "bytes_per_cpu_s", "p50_rate", "p99_rate"].map(metrics),
        [2, 4, 2, 2]
    );
    assert!(object.get("sweep").is_none());
}

#[test]
fn the_page_and_the_markdown_have_the_tables_and_the_caveat() {
    let record = synthetic();
    let markdown = table::markdown(&record);
    let rows = markdown.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(rows, 2 * (2 + 4), "{markdown}");
    let html = page::html(std::slice::from_ref(&record), &["ntcopy".to_owned()]);
    assert!(html.contains("On a schedule") && html.contains("throws bodies away"), "{html}");
    assert!(!html.contains("The reader never looks"));
    let said = verdict::sentences(&record).join(" ");
    assert!(said.contains("adaptive moves bodies faster than copy in 2"), "{said}");
}

/// The charts of a page with one record, each with its caption, legend and data.
fn figures(record: &Record) -> Vec<String> {
    let html = page::html(std::slice::from_ref(record), &["ntcopy".to_owned()]);
    let all = html.split("<figure>").skip(1).filter_map(|rest| rest.split("</figure>").next());
    all.map(str::to_owned).collect()
}

#[test]
fn the_published_chain_is_told_below_the_charts_of_plain_http_and_no_others() {
    let mut record = synthetic();
    let charts = figures(&record);
    let (rates, cpu) = (&charts[0], &charts[1]);
    for words in ["Published: 170,000 to 245,000 Mbit/s", "1.44x", "AMD EPYC (Zen 2)"] {
        assert!(rates.contains(words), "{words}: {rates}");
    }
    assert!(!rates.contains("class=\"published"), "no line on another machine's scale: {rates}");
    assert!(cpu.contains("CPU time of proxy and backend") && cpu.contains("CPU use falls too"));
    assert!(!cpu.contains("published:"), "no figure was published: {cpu}");
    for cell in &mut record.cells {
        cell.params.insert("scheme".into(), "tls".into());
    }
    let charts = figures(&record).concat();
    assert!(!charts.contains("ublished"), "{charts}");
}

#[test]
fn an_experiment_that_is_not_known_is_shown_as_far_as_it_can_be() {
    let mut record = synthetic();
    record.header.experiment = "of-a-later-version".into();
    assert!(table::terminal(&record).contains("adaptive"));
    assert!(json::object(&record).get("http").is_none());
    let _ = page::html(std::slice::from_ref(&record), &["ntcopy".to_owned()]);
    assert!(!verdict::sentences(&record).is_empty());
}

#[test]
fn what_the_hardware_counted_of_client_proxy_and_backend_has_columns() {
    let record = common::with_hardware(synthetic(), &["cycles", "dram-write-bytes"], "not allowed");
    let text = table::terminal(&record);
    assert!(text.lines().all(|line| line.is_ascii() && line.len() <= 100), "{text}");
    for words in ["Hardware events per line", "memory traffic", "n/a (not allowed)", "1 MiB, 64"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // What was hinted is still what the kernel counted of it.
    assert_eq!(json::object(&record)["http"][0]["modes"][1]["nontemporal_part"], 0.8);
    let html = page::html(&[record], &["ntcopy".to_owned()]);
    assert!(html.contains("DRAM written") && html.contains("128.00"), "{html}");
}
