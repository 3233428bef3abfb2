//! docs/CLAIMS.md: every published figure has its row, and each row says what it rests on.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Value;

/// What the figures were taken with, and what stands in words around the table.
const PARAMETERS: [&str; 6] =
    ["object_bytes", "iterations", "pipe_bytes", "sndbuf_bytes", "request_bytes", "response_bytes"];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The rows of the page's tables that hold claims, by the source of their section.
fn rows() -> Vec<(String, String)> {
    let page = read("docs/CLAIMS.md");
    let mut rows = Vec::new();
    let (mut source, mut in_table) = (String::new(), false);
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            source = title.split(':').next().expect("the first part").to_string();
        }
        if line.starts_with("| claim |") || line.starts_with("| question | ours | rests on |") {
            in_table = true;
        } else if !line.starts_with('|') {
            in_table = false;
        } else if in_table && !line.starts_with("|---") {
            rows.push((source.clone(), line.to_string()));
        }
    }
    rows
}

/// The numbers of a row's text, thousands without their commas.
fn numbers(row: &str) -> Vec<f64> {
    let text: Vec<char> = row.chars().collect();
    let mut plain = String::new();
    for (at, &letter) in text.iter().enumerate() {
        let digit = |at: usize| text.get(at).is_some_and(char::is_ascii_digit);
        let thousands = letter == ','
            && at > 0
            && digit(at - 1)
            && (1..=3).all(|ahead| digit(at + ahead))
            && !digit(at + 4);
        if !thousands {
            plain.push(letter);
        }
    }
    plain
        .split(|letter: char| !(letter.is_ascii_digit() || letter == '.'))
        .filter_map(|word| word.trim_matches('.').parse().ok())
        .collect()
}

fn flat(value: &Value) -> Vec<f64> {
    match value {
        Value::Integer(number) => vec![*number as f64],
        Value::Float(number) => vec![*number],
        Value::Array(values) => values.iter().flat_map(flat).collect(),
        _ => Vec::new(),
    }
}

/// The figures of one result, those together that belong into one row.
fn groups(result: &toml::Table) -> Vec<Vec<f64>> {
    let mut groups = Vec::new();
    let mut pair = Vec::new();
    for (key, value) in result {
        match value {
            // Row by row. A first number is the size, and stands in the claim.
            Value::Array(rows) if rows.iter().all(Value::is_array) => {
                groups.extend(rows.iter().map(flat));
            }
            Value::Table(off) if key == "ddio_off" => {
                let on = result["ddio_on"].as_table().expect("ddio_on");
                assert_eq!(off.len(), on.len(), "both runs have the same figures");
                groups.extend(off.iter().map(|(name, off)| [flat(off), flat(&on[name])].concat()));
            }
            _ if key == "message_bytes" || PARAMETERS.contains(&key.as_str()) => {}
            _ => pair.extend(flat(value)),
        }
    }
    if !pair.is_empty() {
        groups.push(pair);
    }
    groups
}

#[test]
fn every_published_figure_has_a_row() {
    let published: toml::Table = toml::from_str(&read("bench/published.toml")).expect("TOML");
    let rows = rows();
    for result in published["result"].as_array().expect("results") {
        let result = result.as_table().expect("a table");
        let source = result["source"].as_str().expect("a source");
        let document = &source[..3];
        let groups = groups(result);
        assert!(!groups.is_empty(), "{result:?} has no figures");
        for group in groups {
            let found = rows.iter().filter(|(section, _)| section == document).any(|(_, row)| {
                let has = numbers(row);
                group.iter().all(|figure| has.contains(figure))
            });
            assert!(found, "docs/CLAIMS.md has no row in '{document}' with all of {group:?}");
        }
    }
}

/// What stands between `(` and `)` of Markdown's links.
fn links(text: &str) -> Vec<&str> {
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect()
}

#[test]
fn every_row_rests_on_something() {
    let rows = rows();
    assert!(rows.len() > 60, "{} rows", rows.len());
    let docs = repository().join("docs");
    for (section, row) in &rows {
        for link in links(row) {
            assert!(docs.join(link).exists(), "{section}: {link} is not there: {row}");
            if link.contains("bench/record/") {
                let record = docs.join(link).join("record.jsonl");
                assert!(record.exists(), "{section}: no record in {link}");
            }
        }
        let rests = !links(row).is_empty()
            || row.contains("`ntcopy bench ")
            || row.contains("| the same |")
            || row.contains("Arithmetic");
        assert!(rests, "{section}: neither a link nor a command: {row}");
        let columns = row.matches(" | ").count() + 1;
        let expected = if section.starts_with("What none") { 3 } else { 4 };
        assert_eq!(columns, expected, "{section}: {row}");
    }
}

#[test]
fn not_measured_comes_with_a_way_to_measure() {
    for (section, row) in rows() {
        let owes = ["has not been seen", "No record", "Not measured"]
            .iter()
            .any(|word| row.contains(word));
        let pays = row.contains("`ntcopy ")
            || row.contains("`sudo ntcopy ")
            || row.contains("the same")
            || row.contains("`perf stat`");
        assert!(!owes || pays, "{section}: says that it was not measured, and no command: {row}");
    }
}
