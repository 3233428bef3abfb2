//! The parameters that tell one cell from another: a row each, with its words.

use serde_json::Value;

use crate::record::{Params, number, word};
use crate::units::Bytes;

struct Param {
    name: &'static str,
    /// The parameter in words, by its value and those beside it; none where it says nothing.
    words: fn(&Value, &Params) -> Option<String>,
}

/// In the order in which they are said. Parameters that say where a cell ran are none of these.
const PARAMS: [Param; 25] = [
    Param { name: "sends", words: |value, _| Some(format!("{} sends", text(value))) },
    Param { name: "clocked", words: one_of_two_senders },
    Param { name: "program", words: |value, _| Some(listed(value)) },
    Param { name: "family", words: |value, _| Some(text(value)).filter(|name| name != "unix") },
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
    Param { name: "form", words: |value, _| (value == "open").then(|| "on a schedule".to_owned()) },
];

/// A cell in words; `the only cell` where its parameters say nothing.
#[must_use]
pub fn cell_words(params: &Params) -> String {
    // A label of a published configuration says the rest.
    if let Some(label) = word(params, "published") {
        return format!("as published for {label}");
    }
    let words: Vec<String> =
        PARAMS.iter().filter_map(|param| (param.words)(params.get(param.name)?, params)).collect();
    if words.is_empty() { "the only cell".to_owned() } else { words.join(", ") }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn listed(value: &Value) -> String {
    let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
    words.collect::<Vec<&str>>().join(" ")
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

    fn words(value: Value) -> String {
        cell_words(&serde_json::from_value(value).unwrap())
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
