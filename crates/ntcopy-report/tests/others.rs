//! Turns of a program, and footprints: their tables, their JSON and their part of the page.

mod common;

use ntcopy_record::testing::sample;
use ntcopy_record::{Cell, Record, verdict};
use ntcopy_report::{json, page, table};

fn is_for_terminals(text: &str) {
    assert!(text.chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic()), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
}

fn html(record: Record) -> String {
    page::html(&[record], &["ntcopy".to_owned()])
}

/// Six pairs of turns of a program, hinted ones in half of the time.
fn turns() -> Record {
    let mut record = common::synthetic_empty("try");
    record.header.experiment = "try".into();
    record.header.baseline = "plain".into();
    let params =
        serde_json::json!({"program": ["./sender", "a|b"], "metric": "time", "better": "less"});
    record.cells.push(Cell { cell: 0, params: common::params(params) });
    for pair in 0..6 {
        for (position, (mode, elapsed_ns)) in
            (0..).zip([("plain", 2_000_000_000), ("hinted", 1_000_000_000)])
        {
            record.samples.push(sample((0, pair, position), mode, 0, elapsed_ns));
        }
    }
    record
}

/// A level of 1,000 primed lines, of which a known displacer takes as many as it reads.
fn footprint() -> Record {
    let mut record = common::synthetic_empty("footprint");
    record.header.experiment = "footprint".into();
    record.header.baseline = "nothing".into();
    let rows = [
        ("nothing", 0, None, 10),
        ("known-read", 0, Some(500), 510),
        ("known-read", 0, Some(900), 910),
        ("check-read", 0, Some(300), 310),
        ("send:4KiB", 4096, None, 330),
    ];
    for (cell, (call, bytes, known, displaced)) in (0..).zip(rows) {
        let mut params = serde_json::json!({
            "level": "L2", "call": call, "bytes": bytes, "primed_lines": 1000,
            "threshold_cycles": 90,
        });
        if let Some(known) = known {
            params["known_lines"] = serde_json::json!(known);
        }
        record.cells.push(Cell { cell, params: common::params(params) });
        let mut sample = sample((cell, 0, 0), call, 0, 1);
        sample.series.insert("displaced_lines".to_owned(), vec![displaced; 7]);
        sample.series.insert("call_ns".to_owned(), vec![2500; 7]);
        record.samples.push(sample);
    }
    record
}

#[test]
fn turns_of_a_program_are_a_table_with_a_verdict_and_an_object() {
    let text = table::terminal(&turns());
    is_for_terminals(&text);
    assert!(text.contains("./sender a|b") && text.contains("2.00x (2.00-2.00)"), "{text}");
    let said = verdict::sentences(&turns()).join(" ");
    assert!(said.starts_with("Win: hinted, the program is faster (2.000x"), "{said}");
    assert!(said.contains("no hinted byte"), "{said}");
    let object = json::object(&turns());
    assert_eq!(
        (&object["results"][0]["ratio"], &object["results"][0]["median"]),
        (&2.0.into(), &1.0.into())
    );
    let page = html(turns());
    assert!(page.contains("What does the hint do for a program of one's own?"));
    let mut few = turns();
    few.samples.truncate(4);
    is_for_terminals(&table::terminal(&few));
    assert!(verdict::sentences(&few)[0].starts_with("No verdict"), "{few:?}");
}

#[test]
fn footprints_are_a_table_a_level_and_say_how_good_the_instrument_was() {
    let text = table::terminal(&footprint());
    is_for_terminals(&text);
    // 320 lines for 4 KiB.
    for words in ["L2: 1000 lines primed", "send:4KiB", "320-320", "80.0", "2.5"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert!(!text.contains("known-read") && !text.contains("check-read"), "{text}");
    let said = verdict::sentences(&footprint()).join(" ");
    assert!(said.contains("L2: Known displacers are found within 5 %"), "{said}");
    let object = json::object(&footprint());
    assert_eq!(object["results"][0]["median"], 320.0);
    assert_eq!(object["levels"][0]["checks"][0]["agrees"], true);
    assert!(html(footprint()).contains("send:4KiB"));
}
