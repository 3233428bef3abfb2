//! Copies and fills in user space: their tables, their JSON and their part of the page.

mod common;

use ntcopy_record::verdict;
use ntcopy_record::{Cell, Params, Record, Sample, Unavailable};
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
    let html = page::html(&[copies()], &["ntcopy".to_owned()]);
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
    let html = page::html(&[record.clone()], &["ntcopy".to_owned()]);
    assert!(html.contains("Published: AMD EPYC 7742 (Rome), GB/s"), "others' figures beside ours");
    for sample in &mut record.samples {
        sample.counters.insert("cycles".into(), sample.bytes / 64 * 3);
    }
    let text = table::terminal(&record);
    assert!(text.contains("cycles a line") && text.contains("3.00"), "{text}");
}

/// A page of one record.
fn html(record: Record) -> String {
    page::html(&[record], &["ntcopy".to_owned()])
}

/// Fills of two sizes, so that there are charts.
fn fills(threads: u64) -> Record {
    let cell = |size: u64| json!({"size_bytes": size, "value": 0, "threads": threads, "cpus": "0"});
    let rates = [("libc", 20.0), ("x86-64-stosb", 12.0), ("x86-64-movnt", 10.0), ("ours", 25.0)];
    record("memset", &[cell(16 * MIB), cell(512 * MIB)], &rates)
}

#[test]
fn fills_of_others_have_a_panel_of_their_own_beside_those_of_one_thread() {
    let html = html(fills(1));
    for words in [
        "published: x86-64-stosq, AMD EPYC 7742 (Rome)",
        "published: x86-64-movnt, Intel Xeon Platinum 8270CL (Skylake-X)",
    ] {
        assert!(html.contains(words), "{words}: {html}");
    }
    // Broadwell's GB/s at 1 GiB with rep stosb; the tables have one digit.
    assert!(html.contains("5.420") && html.contains("11.78"), "{html}");
    assert!(!self::html(fills(2)).contains("published: x86-64-movnt,"), "by one thread");
}

#[test]
fn walks_of_others_are_level_in_the_chart_of_sums() {
    let cell = |task: &str, side: u64| json!({"size_bytes": 8 * side * side, "side": side, "task": task, "threads": 1, "cpus": "0"});
    let cells = [cell("sum", 1000), cell("sum", 6000), cell("copy", 1000), cell("copy", 6000)];
    let html = html(record("order", &cells, &[("row", 10.0), ("column", 5.0)]));
    assert_eq!(html.matches(">published: column by row, CPU not stated<").count(), 2, "{html}");
    assert!(html.contains("0.486") && html.contains("not stated where on the axis"), "{html}");
}

#[test]
fn forks_have_the_loops_of_2004_beside_them_mixed_ones_too() {
    let cell = |size: u64| {
        json!({
            "form": "fork", "size_bytes": size, "user": "parent", "use": "byte", "cpus": "0",
            "pages": "small",
        })
    };
    let cells = [cell(4096), cell(262_144)];
    let html = html(record("pages", &cells, &[("temporal", 0.008), ("nt", 0.004)]));
    let mixed = "published: NT copies and normal clears by rep, copy_page(), AMD Duron 1750 MHz";
    assert_eq!(html.matches(mixed).count(), 2, "the legend and the data: {html}");
    assert!(!html.contains("normal clears by rep, zero_page()"), "that was not published");
    // 5.894 s by 4.926 s with 64 KiB; nothing with 32.
    assert!(html.contains("4.926") && html.contains("1.20x") && html.contains("<td>-"), "{html}");
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
    let html = page::html(&[record], &["ntcopy".to_owned()]);
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
