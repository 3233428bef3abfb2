//! Sweeps and victims: their tables, their JSON and their part of the page.

mod common;

use ntcopy_record::Record;
use ntcopy_record::verdict;
use ntcopy_report::{json, page, table};

fn is_for_terminals(text: &str) {
    assert!(text.chars().all(|c| c == '\n' || c == ' ' || c.is_ascii_graphic()), "{text}");
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{text:?}");
}

fn html(record: Record) -> String {
    page::html(&[record], &["ntcopy".to_owned()]).expect("a page")
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
