//! Sweeps and victims: their tables, their JSON and their part of the page.

mod common;

use std::collections::BTreeMap;

use ntcopy_record::verdict;
use ntcopy_record::{Cell, Record, Sample};
use ntcopy_report::{json, page, table};

fn is_for_terminals(text: &str) {
    assert!(text.chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic()), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
}

fn html(record: Record) -> String {
    page::html(&[record], &["ntcopy".to_owned()])
}

#[test]
fn a_sweep_has_a_row_a_cell_and_says_how_far_behind_the_better_mode_it_is() {
    let record = common::synthetic_sweep();
    let text = table::terminal(&record);
    is_for_terminals(&text);
    let rows = text.lines().filter(|line| line.contains(" copy ") || line.contains(" nt "));
    let figures = rows.filter(|row| row.matches('(').count() == 3).count();
    assert_eq!(figures, 30, "{text}");
    assert!(text.contains("1.25 (1.25-1.25)") && text.contains("100 %"), "{text}");
    let said = verdict::sentences(&record).join(" ");
    assert!(said.contains("Over 30 cells the hint by the rule reaches 0.98"), "{said}");
    assert!(said.contains("or more in flight (6 cells) it is at 1.25x to 1.25x"), "{said}");
}

#[test]
fn a_sweep_fits_a_readme_as_a_grid_an_object() {
    let markdown = table::markdown(&common::synthetic_sweep());
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 * (2 + 5), "{markdown}");
    let columns = |line: &str| line.matches('|').count();
    assert!(rows.iter().all(|row| columns(row) == 12), "{markdown}");
    assert!(markdown.contains("Objects of 1 MiB, unix sockets; by size of the data set:"));
    assert!(markdown.contains("Over 30 cells: geometric mean 0.98"), "{markdown}");
    assert!(markdown.contains("No cell is below 0.97."), "{markdown}");
    assert!(markdown.contains("Record `synthetic-sweep`"), "{markdown}");
}

#[test]
fn a_small_sweep_keeps_the_ordinary_table() {
    let mut record = common::synthetic_sweep();
    record.cells.truncate(10);
    record.samples.retain(|sample| sample.cell < 10);
    let text = table::terminal(&record);
    assert!(text.contains("verdict") && text.contains("adaptive"), "{text}");
    let sweep = &json::object(&record)["sweep"];
    assert_eq!(sweep["cells"].as_array().map(Vec::len), Some(10));
    assert_eq!((&sweep["aim"], &sweep["below_aim"]), (&0.97.into(), &0.into()));
    assert_eq!(sweep["below_aim_by_chance"], serde_json::json!([0, 0]));
}

#[test]
fn the_page_shows_a_sweep_as_heat_maps_with_figures_in_every_field() {
    let html = html(common::synthetic_sweep());
    // Three maps of ratios and one of shares, for each of two objects.
    assert_eq!(html.matches("<table class=\"sweep\">").count(), 8);
    assert_eq!(html.matches("<td class=\"up5\">").count(), 9 * 2, "adaptive and nt by copy");
    assert_eq!(html.matches("<td class=\"down4\">").count(), 21, "nt by copy");
    assert!(html.contains("scope=\"row\"") && html.contains("<caption id="));
    assert!(!html.contains(" style="), "colours are classes");
    for name in ["up1", "up6", "down1", "down6"] {
        assert!(html.contains(&format!(".{name} {{")), "{name}");
    }
}

#[test]
fn a_victims_table_has_its_own_speed_and_that_of_all_together() {
    let record = common::synthetic_retention();
    let text = table::terminal(&record);
    is_for_terminals(&text);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let row = |mode: &str| rows.iter().find(|row| row.first() == Some(&mode)).unwrap();
    assert_eq!(row("idle")[1], "5.0");
    assert_eq!(row("copy")[1], "10.0");
    assert!(row("nt")[1] == "8.0" && row("nt").contains(&"1.25x"), "{text}");
    let results = json::object(&record)["results"].as_array().unwrap().clone();
    let walks = results.iter().filter(|result| result["metric"] == "walks").count();
    assert_eq!(walks, 2, "idle and nt against copy");
}

#[test]
fn the_page_shows_a_victim_of_sends_as_heat_maps_with_figures_in_every_field() {
    let mut record = common::synthetic_retention();
    let mut more = record.cells[0].clone();
    more.cell = 1;
    more.params.insert("hot_set_bytes".into(), 12_800.into());
    record.cells.push(more);
    let twice: Vec<_> = record
        .samples
        .iter()
        .filter(|sample| sample.mode != "nt")
        .map(|sample| ntcopy_record::Sample { cell: 1, ..sample.clone() })
        .collect();
    record.samples.extend(twice);
    let html = html(record);
    // p50, p99, and the two speeds: the cells differ in their hot sets alone.
    assert_eq!(html.matches("<table class=\"sweep\">").count(), 4);
    for row in ["6400 bytes, 64 x 1 MiB", "12800 bytes, 64 x 1 MiB"] {
        assert_eq!(html.matches(&format!("<th scope=\"row\">{row}")).count(), 4, "{row}");
    }
    // Beside copy 2.00x at both quantiles and in both cells, beside nt 1.60x in one.
    assert_eq!(html.matches("<td class=\"down6\">2.00x").count(), 4, "{html}");
    assert_eq!(html.matches("<td class=\"down6\">1.60x").count(), 2, "{html}");
    assert!(html.contains("2.00-2.00") && html.contains("10.0\u{a0}ns"), "{html}");
    // The victim's own speed: idle is twice as fast as beside copy, nt 1.25 times.
    assert_eq!(html.matches("<td class=\"up6\">2.00x").count(), 2, "{html}");
    assert_eq!(html.matches("<td class=\"up5\">1.25x").count(), 1, "{html}");
    assert!(!html.contains("Sweep:"), "a victim's record has its own maps");
    // What was not measured in a cell says so.
    assert_eq!(html.matches("<td class=\"gap\">-").count(), 4, "{html}");
    assert!(!html.contains(" style="), "colours are classes");
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
            record.samples.push(sample((0, pair, position), mode, elapsed_ns, [].into()));
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
        let series = [("displaced_lines", vec![displaced; 7]), ("call_ns", vec![2500; 7])];
        let series = series.map(|(name, list)| (name.to_owned(), list));
        record.samples.push(sample((cell, 0, 0), call, 1, series.into()));
    }
    record
}

fn sample(
    (cell, pair, position): (u32, u32, u32),
    mode: &str,
    elapsed_ns: u64,
    series: BTreeMap<String, Vec<u64>>,
) -> Sample {
    Sample {
        cell,
        pair,
        position,
        mode: mode.to_owned(),
        bytes: 0,
        elapsed_ns,
        phases_ns: BTreeMap::new(),
        counters: BTreeMap::new(),
        series,
    }
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
