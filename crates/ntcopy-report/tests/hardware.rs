//! Hardware counters as tables, and as words where there are none.

mod common;

use common::{EVENTS, TRAFFIC, with_hardware};
use ntcopy_record::Record;
use ntcopy_report::{json, page, table};

/// SYNTHETIC rounds on a machine with these counters; the others are missing for that reason.
fn rounds(counted: &[&str], why: &str) -> Record {
    with_hardware(common::synthetic_rounds(), counted, why)
}

fn html(record: &Record) -> String {
    page::html(std::slice::from_ref(record), &["ntcopy".to_owned()])
}

#[test]
fn a_guest_without_counters_says_so_once_and_shows_no_table() {
    let record = rounds(&[], "no PMU in this guest");
    let text = table::terminal(&record);
    assert!(text.contains("mbm-total-bytes: n/a (no PMU in this guest)."), "{text}");
    assert!(!text.contains("Hardware events"), "{text}");
    assert!(text.lines().all(|line| line.is_ascii() && line.len() <= 100), "{text}");
    assert!(table::markdown(&record).contains("n/a (no PMU in this guest)"));
    assert!(html(&record).contains("n/a (no PMU in this guest)"));
    let missing = &json::object(&record)["machine"]["hardware_counters"][0]["missing"];
    assert_eq!(missing, "no PMU in this guest");
}

#[test]
fn what_was_counted_has_a_column_and_what_was_not_says_why() {
    let counted = ["cycles", "llc-misses", "dram-read-bytes"];
    let record = rounds(&counted, "not allowed");
    let text = table::terminal(&record);
    assert!(text.lines().all(|line| line.is_ascii() && line.len() <= 100), "{text}");
    let at = text.find("Hardware events per line of 64 bytes").expect("a table");
    let rows: Vec<&str> = text[at..].lines().skip(2).take(3).collect();
    assert!(rows[0].contains("copy") && rows[0].contains("128.00"), "{text}");
    assert!(rows[1].contains("nt") && rows[1].contains("64.00") && rows[1].contains("n/a"));
    let at = text.find("memory traffic, bytes a byte of payload").expect("a table");
    assert!(text[at..].contains("1.00") && text[at..].contains("2.00"), "{text}");
    assert!(text.contains("n/a (not allowed)."), "{text}");
    let html = html(&record);
    assert!(html.contains("Hardware events per line") && html.contains("DRAM read"), "{html}");
    assert!(table::markdown(&record).contains("| LLC misses |"));
}

#[test]
fn all_columns_fit_and_scaled_counts_are_marked() {
    let all = [&EVENTS[..], &TRAFFIC].concat();
    let mut record = rounds(&all, "");
    for sample in record.samples.iter_mut().filter(|sample| sample.mode == "nt") {
        sample.counters.insert("llc-loads:counted_permille".to_owned(), 500);
    }
    let text = table::terminal(&record);
    assert!(text.lines().all(|line| line.is_ascii() && line.len() <= 100), "{text}");
    assert!(text.contains("~64.00") && !text.contains("~128.00"), "{text}");
    assert!(text.contains("(~: scaled"), "{text}");
    assert!(!text.contains("permille") && !text.contains("n/a"), "{text}");
}

#[test]
fn an_older_record_has_nothing_to_say_of_them() {
    let text = table::terminal(&common::synthetic_rounds());
    assert!(!text.to_lowercase().contains("hardware"), "{text}");
}
