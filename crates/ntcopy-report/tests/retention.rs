//! Experiment `retention` with copies: its table, its JSON and its part of the page.

mod common;

use ntcopy_record::verdict;
use ntcopy_record::{Cell, Record, Sample};
use ntcopy_report::{json, page, table};
use serde_json::{Value, json};

const MODES: [&str; 4] = ["idle", "copy", "nt", "nt-both"];
/// Nanoseconds of a pass of ten lines, by victim and mode.
const PASS_NS: [[u64; 4]; 2] = [[50, 100, 60, 55], [700, 1050, 770, 735]];

/// SYNTHETIC: a victim on the same core and one beside a streamer, two hot sets each, five groups;
/// the neighbour's streamer was asked for more than it could do. Neighbours of the larger hot set
/// were not to be had.
fn synthetic() -> Record {
    let mut record = common::synthetic_retention();
    record.header.baseline = "idle".into();
    (record.cells, record.samples) = (Vec::new(), Vec::new());
    for (at, victim) in ["same-core", "neighbour"].into_iter().enumerate() {
        for hot_set in [1u64 << 20, 150 << 20] {
            let cell = record.cells.len() as u32;
            let mut params = json!({
                "form": "copies", "victim": victim, "victim_cpu": 0, "hot_set_bytes": hot_set,
                "pass_bytes": 640, "object_bytes": 262_144, "dataset_bytes": 600u64 << 20,
                "streamer_cpu": at, "path_nt": "avx512-nt",
            });
            if victim == "neighbour" {
                params["rate_bytes_per_s"] = 7_200_000_000u64.into();
                params["asked_rate_bytes_per_s"] = 10_000_000_000u64.into();
            }
            let params = params.as_object().unwrap();
            let params = params.iter().map(|(name, value)| (name.clone(), value.clone()));
            record.cells.push(Cell { cell, params: params.collect() });
            if cell < 3 {
                record.samples.extend(samples(cell, PASS_NS[at]));
            }
        }
    }
    record
}

fn samples(cell: u32, pass_ns: [u64; 4]) -> Vec<Sample> {
    let groups = (0..5).flat_map(|pair| (0..4u32).map(move |position| (pair, position)));
    let sample = |(pair, position): (u32, u32)| {
        let (mode, ns) = (MODES[position as usize], pass_ns[position as usize]);
        let bytes = if mode == "idle" { 0 } else { 7_200_000 };
        let mut series = [
            ("pass_ns".to_owned(), vec![ns, 12 * ns, 20 * ns]),
            ("passes".to_owned(), vec![980, 17, 3]),
        ]
        .into_iter()
        .collect::<std::collections::BTreeMap<_, _>>();
        let mut phases_ns = [("walk".to_owned(), 1000 * ns)]
            .into_iter()
            .collect::<std::collections::BTreeMap<_, _>>();
        if mode != "idle" {
            series.insert("offered_bytes".to_owned(), vec![bytes]);
            phases_ns.insert("copy".to_owned(), 600_000);
        }
        let (counters, elapsed_ns) = (Default::default(), 1_000_000);
        let mode = mode.to_owned();
        Sample { cell, pair, position, mode, bytes, elapsed_ns, phases_ns, counters, series }
    };
    groups.map(sample).collect()
}

#[test]
fn the_table_has_a_row_a_mode_and_fits_a_terminal() {
    let text = table::terminal(&synthetic());
    assert!(text.chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic()), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |mode: &str, from: usize| {
        let mut ours = rows[from..]
            .iter()
            .filter(|row| row.first() == Some(&mode) || row.get(2) == Some(&mode));
        ours.next().unwrap_or_else(|| panic!("{mode}: {text}"))
    };
    assert!(row("idle", 0).contains(&"5.0") && row("copy", 0).contains(&"2.00x"), "{text}");
    let beside = rows.iter().position(|row| row.contains(&"alongside")).unwrap();
    assert!(row("nt-both", beside).contains(&"1.05x"), "{text}");
    assert!(row("copy", beside).contains(&"7.2*"), "less than was asked for is marked: {text}");
    assert!(text.contains("150 MiB  not available"), "{text}");
    let markdown = table::markdown(&synthetic());
    assert!(
        markdown.contains("| hot set |") && markdown.contains("whole relative to copy"),
        "{markdown}"
    );
}

#[test]
fn the_page_has_a_heat_map_a_quantile_with_figures_in_every_field() {
    let html = page::html(&[synthetic()], &["ntcopy".to_owned()]);
    // p50, p99, p99.9 and the traffic, for each place of the victim.
    assert_eq!(html.matches("<table class=\"sweep\">").count(), 2 * 4);
    assert_eq!(html.matches("<td class=\"down6\">").count(), 3 * (2 + 1), "copy, everywhere");
    assert!(html.contains("2.00x") && html.contains("10.0 ns") && html.contains("scope=\"row\""));
    assert!(html.contains("at p99.9") && html.contains("7.2 GB/s*"));
    assert!(!html.contains(" style="), "colours are classes");
}

#[test]
fn programs_get_every_quantile_and_the_part_that_is_left() {
    let object = json::object(&synthetic());
    let felt = object["retention"].as_array().unwrap();
    assert_eq!(felt.len(), 3 * 4);
    let close = |value: &Value, figure: f64| (value.as_f64().unwrap() - figure).abs() < 1e-6;
    let both = &felt[11];
    assert_eq!(
        (&both["mode"], &both["params"]["victim"]),
        (&"nt-both".into(), &"neighbour".into())
    );
    assert!(close(&both["line_ns"]["p50"], 73.5) && close(&both["line_ns"]["p99"], 882.0));
    assert!(close(&both["line_ns"]["p99_9"], 1470.0));
    assert!(close(&both["slow_down"]["p50"]["ratio"], 1.05));
    assert!(close(&both["part_of_copys_slow_down"]["ratio"], 0.1));
    let walks = object["results"].as_array().unwrap();
    assert!(walks.iter().all(|result| result["metric"] == "walks" && result["baseline"] == "idle"));
    assert_eq!(walks.len(), 3 * 3);
}

#[test]
fn the_verdict_answers_both_questions() {
    let said = verdict::sentences(&synthetic()).join(" ");
    assert!(
        said.contains("hot set of 1 MiB takes 1.50x") && said.contains("0.10 of that"),
        "{said}"
    );
    assert!(said.contains("keeps 0.91 of its speed between 256 KiB copies"), "{said}");
    assert!(said.contains("In 2 of 4 cells the slowest mode cannot copy the 10.0 GB/s"), "{said}");
}
