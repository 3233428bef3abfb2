//! Results as comma-separated values, as `--csv` prints them.

use std::collections::BTreeSet;

use ntcopy_record::Record;
use serde_json::Value;

use crate::json;

/// What stands before the parameters of a result.
const BEFORE: [&str; 2] = ["record", "experiment"];
/// And after them, by the names that the results have as JSON.
const AFTER: [&str; 10] = [
    "mode",
    "baseline",
    "metric",
    "median",
    "baseline_median",
    "ratio",
    "ci_low",
    "ci_high",
    "verdict",
    "missing",
];

/// A line of names, and a line a result: its record, the parameters of its cell in columns of their
/// own, and its figures. `missing` says why a mode has none. Quoted as RFC 4180 has it.
#[must_use]
pub fn of(records: &[&Record]) -> String {
    let objects: Vec<Value> = records.iter().map(|record| json::object(record)).collect();
    let params: BTreeSet<&str> = objects
        .iter()
        .flat_map(results)
        .filter_map(|result| result["params"].as_object())
        .flat_map(|params| params.keys().map(String::as_str))
        .collect();
    let mut out = String::new();
    let names: Vec<&str> = BEFORE.into_iter().chain(params.iter().copied()).chain(AFTER).collect();
    line(&mut out, names.iter().map(|name| (*name).to_owned()));
    for object in &objects {
        for result in results(object) {
            let before = BEFORE.iter().map(|name| text(&object[*name]));
            let inside = params.iter().map(|name| text(&result["params"][*name]));
            let after = AFTER.iter().map(|name| figure(result, name));
            line(&mut out, before.chain(inside).chain(after));
        }
    }
    out
}

fn results(object: &Value) -> impl Iterator<Item = &Value> {
    object["results"].as_array().into_iter().flatten()
}

fn figure(result: &Value, name: &str) -> String {
    match name {
        "ci_low" => text(&result["ci"][0]),
        "ci_high" => text(&result["ci"][1]),
        "missing" if result["unavailable"].is_string() => text(&result["unavailable"]),
        "missing" => text(&result["error"]),
        name => text(&result[name]),
    }
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn line(out: &mut String, fields: impl Iterator<Item = String>) {
    let fields: Vec<String> = fields.map(|field| quoted(&field)).collect();
    out.push_str(&fields.join(","));
    out.push('\n');
}

fn quoted(field: &str) -> String {
    if field.contains([',', '"', '\n', '\r']) {
        return format!("\"{}\"", field.replace('"', "\"\""));
    }
    field.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_comma_or_a_quotation_mark_is_quoted() {
        let mut out = String::new();
        line(&mut out, ["a", "b, c", "d \"e\"", ""].map(str::to_owned).into_iter());
        assert_eq!(out, "a,\"b, c\",\"d \"\"e\"\"\",\n");
    }
}
