//! Copies and fills in user space: their tables, their JSON and their part of the page.

mod common;

use ntcopy_bench::record::{Cell, Params, Record, Sample, Unavailable};
use ntcopy_bench::verdict;
use ntcopy_report::{json, page, table};
use serde_json::json;

const MIB: u64 = 1 << 20;

fn params(value: &serde_json::Value) -> Params {
    let object = value.as_object().expect("an object");
    object.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// SYNTHETIC: one cell for each of the parameters, five pairs at these GB/s.
fn record(experiment: &str, cells: &[serde_json::Value], rates: &[(&str, f64)]) -> Record {
    let mut record = common::synthetic_empty(experiment);
    record.header.experiment = experiment.into();
    record.header.baseline = rates[0].0.into();
    for (cell, value) in (0..).zip(cells) {
        record.cells.push(Cell { cell, params: params(value) });
        for pair in 0..5 {
            for (position, (mode, rate)) in (0..).zip(rates) {
                record.samples.push(Sample {
                    cell,
                    pair,
                    position,
                    mode: (*mode).to_owned(),
                    bytes: 1 << 30,
                    elapsed_ns: ((1_u64 << 30) as f64 / rate) as u64,
                    phases_ns: [].into(),
                    counters: [].into(),
                    series: [].into(),
                });
            }
        }
    }
    record
}

fn copies() -> Record {
    let cell = |size: u64, destination: &str| {
        json!({
            "size_bytes": size, "source": "cold", "destination": destination, "threads": 1,
            "cpus": "0", "pages": "huge", "region_bytes": 1200 * MIB,
        })
    };
    let cells = [cell(MIB, "hot"), cell(256 * MIB, "hot"), cell(256 * MIB, "cold")];
    let rates = [
        ("libc", 123.4),
        ("libc-tuned", 110.0),
        ("rep-movsb", 124.0),
        ("libpmem2", 121.0),
        ("movnti", 110.0),
        ("ours", 130.2),
        ("stream", 129.0),
    ];
    record("memcpy", &cells, &rates)
}

fn is_for_terminals(text: &str) {
    assert!(text.chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic()), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
}

#[test]
fn copies_have_a_table_a_heat_and_the_best_peer_is_marked() {
    let text = table::terminal(&copies());
    is_for_terminals(&text);
    assert_eq!(text.matches("ours / best peer").count(), 2, "{text}");
    assert_eq!(text.matches("124.0*").count(), 3, "{text}");
    assert!(text.contains("1.05 (1.05-1.05)"), "against rep-movsb: {text}");
    let markdown = table::markdown(&copies());
    let rows = markdown.lines().filter(|line| line.starts_with('|')).count();
    assert_eq!(rows, 2 * 2 + 3, "{markdown}");
}

#[test]
fn what_programs_read_has_the_peers() {
    let object = json::object(&copies());
    let peers = &object["peers"];
    assert_eq!(peers["cells"].as_array().map(Vec::len), Some(3));
    assert_eq!(peers["cells"][0]["peer"], "rep-movsb");
    assert!(peers["geomean"].as_f64().is_some_and(|mean| (mean - 1.05).abs() < 0.001));
}

#[test]
fn the_page_has_the_tables_and_speaks_of_no_reader() {
    let html = page::html(&[copies()], &["ntcopy".to_owned()]).expect("a page");
    assert!(html.contains("source cold, destination hot") && html.contains("124.0*"));
    assert!(!html.contains("The reader never looks"), "there is no reader");
}

#[test]
fn fills_have_a_row_a_way_and_events_only_where_they_were_counted() {
    let cell = json!({"size_bytes": 512 * MIB, "value": 0, "threads": 1, "cpus": "0"});
    let rates = [("libc", 20.0), ("x86-64-movnt", 10.0), ("ours", 25.0)];
    let mut record = record("memset", &[cell], &rates);
    let text = table::terminal(&record);
    is_for_terminals(&text);
    assert!(!text.contains("cycles") && text.contains("0.50x"), "{text}");
    assert!(text.contains("loss") && text.contains("win") && text.contains("baseline"), "{text}");
    let said = verdict::sentences(&record).join("\n");
    assert!(said.contains("Goal met: zero fills of 512 MiB"), "{said}");
    let html = page::html(&[record.clone()], &["ntcopy".to_owned()]).expect("a page");
    assert!(html.contains("Published: AMD EPYC 7742 (Rome), GB/s"), "others' figures beside ours");
    for sample in &mut record.samples {
        sample.counters.insert("cycles".into(), sample.bytes / 64 * 3);
    }
    let text = table::terminal(&record);
    assert!(text.contains("cycles a line") && text.contains("3.00"), "{text}");
}

#[test]
fn a_cell_that_was_left_out_is_in_the_table_and_says_why() {
    let mut record = copies();
    record.samples.retain(|sample| sample.cell != 1);
    for mode in ["libc", "ours"] {
        let why = "needs 9000 MiB of memory".to_owned();
        record.unavailable.push(Unavailable { mode: mode.into(), why, cell: Some(1) });
    }
    let text = table::terminal(&record);
    assert!(text.contains("1 of 3 cells: needs 9000 MiB"), "{text}");
}

#[test]
fn pages_say_what_was_done_and_answer_the_question_of_2004() {
    let cell = |action: &str, read_back: &str| {
        json!({
            "form": "pages", "action": action, "read_back": read_back, "size_bytes": 8192,
            "threads": 1, "cpus": "0", "pages": "huge",
        })
    };
    let cells = [cell("clear", "none"), cell("copy", "some"), cell("copy", "all")];
    let record = record("pages", &cells, &[("rep-b", 80.0), ("rep-q", 82.0), ("movnti", 8.0)]);
    let text = table::terminal(&record);
    for words in ["clear pages, nothing read back", "copy pages, 100 bytes of each", "0.100x"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let said = verdict::sentences(&record).join("\n");
    assert!(said.contains("(2004) Yes. In 2 of 2 cells"), "{said}");
    let html = page::html(&[record], &["ntcopy".to_owned()]).expect("a page");
    assert!(
        html.contains("Published: the kernel's copy_page()") && html.contains("6.186"),
        "{html}"
    );
}

#[test]
fn forks_are_given_in_microseconds_and_pages_counted_a_fork() {
    let cell = json!({
        "form": "fork", "size_bytes": 8192, "user": "parent", "use": "byte", "cpus": "0",
        "pages": "small",
    });
    let mut record = record("pages", &[cell], &[("temporal", 0.008192), ("nt", 0.004096)]);
    for sample in record.samples.iter_mut().filter(|sample| sample.mode == "nt") {
        sample.counters.insert("pgcopy_nontemporal".into(), 6 * (sample.bytes / 8192));
    }
    let text = table::terminal(&record);
    for words in ["us a fork", "the parent writes one byte a page", "1000.0", "2000.0", "6.00"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("GB/s"), "{text}");
}
