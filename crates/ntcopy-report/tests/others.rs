//! Turns of a program: their table, their JSON and their part of the page.

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

#[test]
fn turns_of_a_program_are_a_table_with_a_verdict_and_an_object() {
    let text = table::terminal(&turns());
    is_for_terminals(&text);
    assert!(text.contains("./sender a|b") && text.contains("2.00x (2.00-2.00)"), "{text}");
    let said = verdict::sentences(&turns()).join(" ");
    assert!(said.starts_with("Win: hinted, the program is faster: 2.00x"), "{said}");
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
