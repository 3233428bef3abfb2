//! The parameters that tell one cell from another: a row each, with its words.

use serde_json::Value;

use crate::record::{Cell, Params, number, word};
use crate::units::Bytes;

struct Param {
    name: &'static str,
    /// The parameter in words, by its value and those beside it; none where it says nothing.
    words: fn(&Value, &Params) -> Option<String>,
}

/// In the order in which they are said. Parameters that say where a cell ran are none of these.
const PARAMS: [Param; 27] = [
    Param { name: "sends", words: |value, _| Some(format!("{} sends", text(value))) },
    Param { name: "clocked", words: one_of_two_senders },
    Param { name: "program", words: |value, _| Some(listed(value)) },
    Param { name: "family", words: family },
    Param { name: "task", words: task },
    Param { name: "level", words: |value, _| Some(text(value)) },
    Param { name: "size_bytes", words: size_unless_task },
    Param { name: "action", words: |value, _| Some(text(value)) },
    Param { name: "read_back", words: read_back },
    Param { name: "user", words: |value, _| Some(format!("the {} writes", text(value))) },
    Param { name: "use", words: bytes_written },
    Param { name: "source", words: heats },
    Param { name: "threads", words: |value, _| counted(value, "thread").filter(|_| more(value)) },
    Param { name: "object_bytes", words: |value, _| sized("objects of", value) },
    Param { name: "request_bytes", words: both_ways },
    Param { name: "message_bytes", words: |value, _| sized("messages of", value) },
    Param { name: "dataset_bytes", words: |value, _| sized("data set of", value) },
    Param { name: "victim", words: |value, _| Some(text(value)) },
    Param { name: "hot_set_bytes", words: |value, _| sized("hot set of", value) },
    Param {
        name: "in_flight_bytes",
        words: |value, _| Some(format!("{} in flight", bytes(value)?)),
    },
    Param { name: "sockets", words: sockets },
    Param { name: "connections", words: |value, _| counted(value, "connection") },
    Param { name: "large_rate", words: large_rate },
    Param { name: "rate_bytes_per_s", words: rate },
    Param { name: "offered_bytes_per_s", words: rate },
    Param {
        name: "offered_requests_per_1000_s",
        words: |value, _| Some(format!("at {} per second", value.as_u64()? / 1000)),
    },
    Param { name: "form", words: |value, _| (value == "open").then(|| "on a schedule".to_owned()) },
];

/// Those that tell cells of a table apart, where they differ: the first of them is what a chart's
/// horizontal axis counts.
const AXES: [&str; 11] = [
    "in_flight_bytes",
    "hot_set_bytes",
    "connections",
    "size_bytes",
    "message_bytes",
    "sockets",
    "side",
    "offered_requests_per_1000_s",
    "offered_bytes_per_s",
    "rate_bytes_per_s",
    "pass_bytes",
];

/// A cell in words; `the only cell` where its parameters say nothing.
#[must_use]
pub fn cell_words(params: &Params) -> String {
    // A label of a published configuration says the rest.
    if let Some(label) = word(params, "published") {
        return format!("as published for {label}");
    }
    let words = words(params);
    if words.is_empty() { "the only cell".to_owned() } else { words.join(", ") }
}

fn words(params: &Params) -> Vec<String> {
    PARAMS.iter().filter_map(|param| (param.words)(params.get(param.name)?, params)).collect()
}

/// The parameters by which the cells of a record differ along an axis, the widest axis first; the
/// first that there is, where they do not differ.
#[must_use]
pub fn axes(cells: &[Cell]) -> Vec<&'static str> {
    let values = |name: &str| {
        let mut values: Vec<&Value> = Vec::new();
        for value in cells.iter().filter_map(|cell| cell.params.get(name)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values.len()
    };
    let of = |least: usize| AXES.into_iter().filter(move |name| values(name) >= least);
    let several: Vec<&str> = of(2).collect();
    if several.is_empty() { of(1).take(1).collect() } else { several }
}

/// What cells have in common that differ in these axes alone: in words, and what else there is to
/// know of them, by the parameters' own names.
#[must_use]
pub fn group_words(params: &Params, axes: &[&str]) -> (String, String) {
    // What is asked for at once follows from the connections.
    let kept = |name: &&String| !axes.contains(&name.as_str()) && *name != "asked_bytes";
    let kept: Params = params
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let published = word(&kept, "published").map(|label| format!("as published for {label}"));
    let said: Vec<String> = published.into_iter().chain(words(&kept)).collect();
    let is_told = |name: &str| name == "published" || PARAMS.iter().any(|param| param.name == name);
    let rest = kept.iter().filter(|(name, _)| !is_told(name));
    let rest: Vec<String> = rest.map(|(name, value)| named(name, value)).collect();
    (said.join(", "), rest.join(", "))
}

/// Where a cell of a group lies on its axes.
#[must_use]
pub fn axis_words(params: &Params, axes: &[&str]) -> String {
    let own = |name: &&str| Some(((*name).to_owned(), params.get(*name)?.clone()));
    let own: Params = axes.iter().filter_map(own).collect();
    let is_told = |name: &str| PARAMS.iter().any(|param| param.name == name);
    let mut said = words(&own);
    said.extend(own.iter().filter(|(name, _)| !is_told(name)).map(|(name, v)| named(name, v)));
    said.join(", ")
}

/// A parameter by its own name: `sender cpu 0`, `pipe 1 MiB`.
fn named(name: &str, value: &Value) -> String {
    let size = name.strip_suffix("_bytes").zip(bytes(value));
    match size {
        Some((name, size)) => format!("{} {size}", name.replace('_', " ")),
        None => format!("{} {}", name.replace('_', " "), text(value)),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn listed(value: &Value) -> String {
    let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<&str>>().join(" ")
}

/// Objects go over unix sockets unless something else is said.
fn family(value: &Value, params: &Params) -> Option<String> {
    Some(text(value)).filter(|name| name != "unix" || !params.contains_key("object_bytes"))
}

fn one_of_two_senders(value: &Value, params: &Params) -> Option<String> {
    let count = number(params, "small_per_object")?;
    let size = Bytes(number(params, "small_bytes")?);
    Some(format!("the {} sender, {count} small sends of {size} per object", text(value)))
}

fn bytes(value: &Value) -> Option<Bytes> {
    value.as_u64().map(Bytes)
}

fn sized(what: &str, value: &Value) -> Option<String> {
    Some(format!("{what} {}", bytes(value)?))
}

fn more(value: &Value) -> bool {
    value.as_u64().is_some_and(|count| count > 1)
}

fn counted(value: &Value, what: &str) -> Option<String> {
    let count = value.as_u64()?;
    Some(if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") })
}

fn task(value: &Value, params: &Params) -> Option<String> {
    let side = number(params, "side")?;
    Some(format!("{} of {side} x {side}", text(value)))
}

/// The size of a matrix is told by its sides.
fn size_unless_task(value: &Value, params: &Params) -> Option<String> {
    bytes(value).filter(|_| !params.contains_key("task")).map(|size| size.to_string())
}

fn read_back(value: &Value, _: &Params) -> Option<String> {
    match value.as_str()? {
        "none" => None,
        "some" => Some("100 bytes a page read back".to_owned()),
        _ => Some("all read back".to_owned()),
    }
}

fn bytes_written(value: &Value, _: &Params) -> Option<String> {
    Some(if value == "byte" { "one byte a page" } else { "every byte" }.to_owned())
}

fn heats(value: &Value, params: &Params) -> Option<String> {
    Some(format!("{} to {}", text(value), word(params, "destination")?))
}

fn both_ways(value: &Value, params: &Params) -> Option<String> {
    let (request, response) = (bytes(value)?, Bytes(number(params, "response_bytes")?));
    Some(match request == response {
        true => format!("{request} both ways"),
        false => format!("{request} for {response}"),
    })
}

/// Where objects fill them, what is in flight tells their number.
fn sockets(value: &Value, params: &Params) -> Option<String> {
    counted(value, "socket").filter(|_| !params.contains_key("in_flight_bytes"))
}

fn large_rate(value: &Value, _: &Params) -> Option<String> {
    let rate = text(value);
    Some(if rate == "max" { "without a pause".to_owned() } else { format!("offered {rate}") })
}

fn rate(value: &Value, _: &Params) -> Option<String> {
    Some(format!("at {:.1} GB/s", value.as_u64()? as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::testing::record;

    fn words(value: Value) -> String {
        cell_words(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_group_says_what_its_cells_have_in_common_and_the_axis_what_they_differ_in() {
        let cells = record(
            &["copy"],
            &[
                &[
                    ("in_flight_bytes", 1 << 20),
                    ("sockets", 1),
                    ("object_bytes", 1 << 20),
                    ("cpu", 1),
                ],
                &[
                    ("in_flight_bytes", 2 << 20),
                    ("sockets", 2),
                    ("object_bytes", 1 << 20),
                    ("cpu", 1),
                ],
            ],
        )
        .cells;
        let axes = axes(&cells);
        assert_eq!(axes, ["in_flight_bytes", "sockets"]);
        let group = group_words(&cells[0].params, &axes);
        assert_eq!(group, ("objects of 1 MiB".to_owned(), "cpu 1".to_owned()));
        assert_eq!(axis_words(&cells[1].params, &axes), "2 MiB in flight");
    }

    #[test]
    fn a_cell_is_told_by_what_was_asked_and_not_by_where_it_ran() {
        let sends = json!({
            "form": "rounds", "family": "unix", "object_bytes": 1 << 20, "dataset_bytes": 64 << 20,
            "sockets": 64, "in_flight_bytes": 64 << 20, "sender_cpu": 0, "reader_cpu": 1,
        });
        assert_eq!(words(sends), "objects of 1 MiB, data set of 64 MiB, 64 MiB in flight");
        let two = json!({"clocked": "bulk", "small_bytes": 65536, "small_per_object": 8});
        assert_eq!(words(two), "the bulk sender, 8 small sends of 64 KiB per object");
        let copies =
            json!({"size_bytes": 4096, "source": "cold", "destination": "hot", "threads": 2});
        assert_eq!(words(copies), "4 KiB, cold to hot, 2 threads");
        let pages = json!({"size_bytes": 8192, "action": "copy", "read_back": "all"});
        assert_eq!(words(pages), "8 KiB, copy, all read back");
        let requests = json!({"family": "tcp", "request_bytes": 1, "response_bytes": 1024,
                              "connections": 1, "form": "open"});
        assert_eq!(words(requests), "tcp, 1 byte for 1 KiB, 1 connection, on a schedule");
        assert_eq!(words(json!({"task": "sum", "side": 512, "size_bytes": 1})), "sum of 512 x 512");
        assert_eq!(words(json!({"note": "x"})), "the only cell");
    }
}
