//! docs/CLAIMS.md: every published figure has its row, and each row says what it rests on.

use std::fs;
use std::path::{Path, PathBuf};

use toml::Value;

/// What the figures were taken with, and what stands in words around the table.
const PARAMETERS: [&str; 4] = ["object_bytes", "iterations", "pipe_bytes", "sndbuf_bytes"];

/// What a row waits for that can't be measured here. The command to run there stands in it.
const HARDWARE: &str = "hardware that has not been seen";

/// Why else something was not measured.
const REASONS: [&str; 4] = [
    "no routine here comes with its loop aligned and not",
    "no experiment here has a victim beside them",
    "no experiment here loads from memory alone",
    "no 64-bit kernel would use it",
];

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
        // A size that names a row stands in the claim; a percentile does not.
        Value::String(name) if name.ends_with("iB") => numbers(name),
        _ => Vec::new(),
    }
}

/// The figures of one result, those together that belong into one row.
fn groups(result: &toml::Table) -> Vec<Vec<f64>> {
    let mut groups = Vec::new();
    let mut pair = Vec::new();
    for (key, value) in result {
        match value {
            Value::Array(rows) if key == "rows" => groups.extend(rows.iter().map(flat)),
            Value::Array(_) => {}
            _ if PARAMETERS.contains(&key.as_str()) => {}
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
        let groups = groups(result);
        assert!(!groups.is_empty(), "{result:?} has no figures");
        for group in groups {
            let found = rows.iter().filter(|(section, _)| section == source).any(|(_, row)| {
                let has = numbers(row);
                group.iter().all(|figure| has.contains(figure))
            });
            assert!(found, "docs/CLAIMS.md has no row in '{source}' with all of {group:?}");
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

/// Whether a row that leaves something open says what it waits for. `known` tells whether a row
/// before it in its section wanted hardware, whose runs "the same runs" are.
fn waits_for_something(row: &str, known: bool) -> bool {
    let has_command = row.contains("`ntcopy ") || row.contains("`sudo ntcopy ");
    (row.contains(HARDWARE) && has_command)
        || (row.contains("the same runs") && known)
        || REASONS.iter().any(|reason| row.contains(reason))
}

fn leaves_open(row: &str) -> bool {
    let row = row.to_lowercase();
    ["has not been seen", "no record", "not measured", "not asked"]
        .iter()
        .any(|words| row.contains(words))
}

#[test]
fn not_measured_comes_with_the_hardware_that_it_needs_or_a_reason() {
    let mut wanted_hardware = Vec::new();
    for (section, row) in rows() {
        let known = wanted_hardware.contains(&section);
        assert!(
            !leaves_open(&row) || waits_for_something(&row, known),
            "{section}: says that it was not measured, and neither '{HARDWARE}' with a command nor \
             one of the reasons that this test knows: {row}"
        );
        assert!(!row.contains("Owed"), "any machine could measure it: {row}");
        if row.contains(HARDWARE) {
            wanted_hardware.push(section);
        }
    }
}

#[test]
fn every_document_is_named_with_its_place() {
    let published: toml::Table = toml::from_str(&read("bench/published.toml")).expect("TOML");
    let documents = published["document"].as_array().expect("documents");
    let text = |value: &Value, key: &str| value[key].as_str().expect(key).to_owned();
    let page = read("docs/CLAIMS.md");
    for document in documents {
        let (number, title) = (text(document, "number"), text(document, "title"));
        let row = page.lines().find(|line| line.starts_with(&format!("| {number} | ")));
        let row = row.unwrap_or_else(|| panic!("docs/CLAIMS.md does not name document {number}"));
        for part in [&title, &text(document, "author"), &text(document, "at")] {
            assert!(row.contains(part.as_str()), "document {number}: no '{part}' in {row}");
        }
        assert!(page.contains(&format!("\n## {number}: ")), "document {number} has no section");
    }
    let numbers: Vec<String> = documents.iter().map(|found| text(found, "number")).collect();
    for result in published["result"].as_array().expect("results") {
        let source = text(result, "source");
        assert!(numbers.contains(&source), "no document {source}");
    }
}
