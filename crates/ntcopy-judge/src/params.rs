//! The parameters that tell one cell from another: a row each, with its words.

use serde_json::Value;

use ntcopy_record::lists::unique;
use ntcopy_record::units::{Bytes, count};
use ntcopy_record::{Cell, Params, number, word};

/// A parameter's name, and the parameter in words, by its value and those beside it; none where it
/// says nothing.
type Param = (&'static str, fn(&Value, &Params) -> Option<String>);

/// In the order in which they are said. Parameters that say where a cell ran are none of these.
const PARAMS: [Param; 24] = [
    ("clocked", one_of_two_senders),
    ("program", |value, _| Some(listed(value))),
    ("family", family),
    ("task", task),
    ("level", |value, _| Some(text(value))),
    ("size_bytes", size_unless_task),
    ("action", |value, _| Some(text(value))),
    ("read_back", read_back),
    ("user", |value, _| Some(format!("the {} writes", text(value)))),
    ("use", bytes_written),
    ("source", heats),
    ("threads", |value, _| counted(value, "thread").filter(|_| *value != 1)),
    ("object_bytes", |value, _| sized("objects of", value)),
    ("request_bytes", both_ways),
    ("message_bytes", |value, _| sized("messages of", value)),
    ("dataset_bytes", |value, _| sized("data set of", value)),
    ("hot_set_bytes", |value, _| sized("hot set of", value)),
    ("in_flight_bytes", |value, _| Some(format!("{} in flight", bytes(value)?))),
    ("sockets", sockets),
    ("connections", |value, _| counted(value, "connection")),
    ("large_rate", large_rate),
    ("offered_bytes_per_s", rate_unless_asked),
    ("offered_requests_per_1000_s", requests),
    ("form", schedule),
];

/// What else is said of cells that have it in common. What no reader needs has no words.
const DETAILS: [Param; 34] = [
    ("app", |value, params| Some(text(params.get("app_version").unwrap_or(value)))),
    ("multiget_keys", |value, _| Some(format!("multigets of {} keys", text(value)))),
    ("small_bytes", values),
    ("server_cpu", |value, params| placed(value, params, "client_cpu", "program and client")),
    ("sender_cpu", |value, params| placed(value, params, "reader_cpu", "sender and reader")),
    ("reader_cpus", |value, _| Some(format!("reader on CPUs {}", text(value)))),
    ("iterations", |value, _| Some(format!("{} sends per sample", text(value)))),
    ("workers", |value, _| counted(value, "worker")),
    ("stack", |value, _| Some(text(value))),
    ("transport", |value, _| Some(format!("backend on {}", text(value)))),
    ("scheme", |value, _| Some(text(value)).filter(|scheme| scheme != "plain")),
    ("nginx_buffer_bytes", |value, _| sized("nginx buffers of", value)),
    ("congestion", |value, _| Some(format!("TCP {}", text(value)))),
    ("between", |value, _| Some(format!("over {}", text(value)))),
    ("mtu_bytes", |value, _| sized("MTU of", value)),
    ("pipe_bytes", |value, _| sized("pipe of", value)),
    ("sndbuf_bytes", |value, _| sized("SO_SNDBUF of", value)),
    ("region_bytes", |value, _| sized("region of", value)),
    ("libc_tuned_threshold_bytes", |value, _| sized("libc-tuned from", value)),
    ("value", |value, _| Some(format!("filled with {}", text(value)))),
    ("pages", |value, _| Some(format!("{} pages", text(value)))),
    ("cpus", |value, _| Some(format!("CPU {}", text(value)))),
    ("note", |value, _| Some(text(value))),
    ("app_version", nothing),
    ("client_cpu", nothing),
    ("destination", nothing),
    ("hardware_counters", nothing),
    ("large_bytes", nothing),
    ("reader_cpu", nothing),
    ("response_bytes", nothing),
    ("small_connections", nothing),
    ("small_keys", nothing),
    ("small_per_object", nothing),
    ("starts", nothing),
];

/// Those that tell cells of a table apart, where they differ: the first of them is what a chart's
/// horizontal axis counts.
const AXES: [&str; 9] = [
    "in_flight_bytes",
    "hot_set_bytes",
    "connections",
    "size_bytes",
    "message_bytes",
    "sockets",
    "side",
    "offered_requests_per_1000_s",
    "offered_bytes_per_s",
];

/// Parameters that say where and by what a cell was measured, and not what was.
const NOT_ASKED: [&str; 14] = [
    "primed_lines",
    "threshold_cycles",
    "app_version",
    "offered_bytes_per_s",
    "cpus",
    "hardware_counters",
    "note",
    "region_bytes",
    "libc_tuned_threshold_bytes",
    "iterations",
    "pipe_bytes",
    "sndbuf_bytes",
    "starts",
    "offered_requests_per_1000_s",
];

/// What was asked in a cell. Left out is what the machine had a say in: CPUs, paths, sizes that follow
/// from its caches.
pub fn asked(params: &Params) -> impl Iterator<Item = (&str, &Value)> {
    params
        .iter()
        .map(|(name, value)| (name.as_str(), value))
        .filter(|(name, _)| !NOT_ASKED.contains(name) && !name.starts_with("path_"))
        .filter(|(name, _)| !name.ends_with("_path") && !name.ends_with("_cpu"))
}

/// The same in one line: cells of two records with the same one are the same.
#[must_use]
pub fn identity(params: &Params) -> String {
    let words = asked(params).map(|(name, value)| format!("{name}={value}"));
    words.collect::<Vec<String>>().join(" ")
}

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
    said_by(&PARAMS, params).collect()
}

fn said_by<'p>(rows: &'p [Param], params: &'p Params) -> impl Iterator<Item = String> + 'p {
    rows.iter().filter_map(|(name, words)| words(params.get(*name)?, params))
}

/// The parameters by which the cells of a record differ along an axis, the widest axis first; the
/// first that there is, where they do not differ.
#[must_use]
pub fn axes(cells: &[Cell]) -> Vec<&'static str> {
    let values = |name: &str| unique(cells.iter().filter_map(|cell| cell.params.get(name))).len();
    let of = |least: usize| AXES.into_iter().filter(move |name| values(name) >= least);
    let several: Vec<&str> = of(2).collect();
    if several.is_empty() { of(1).take(1).collect() } else { several }
}

/// What cells have in common that differ in these axes alone, and what else there is to know of
/// them, in words; a parameter without a row by its own name.
#[must_use]
pub fn group_words(params: &Params, axes: &[&str]) -> (String, String) {
    let (said, details) = group_parts(params, axes);
    (said.join(", "), details.join(", "))
}

/// The same, part by part.
#[must_use]
pub fn group_parts(params: &Params, axes: &[&str]) -> (Vec<String>, Vec<String>) {
    // What is asked for at once follows from the connections.
    let kept = |name: &&String| !axes.contains(&name.as_str()) && *name != "asked_bytes";
    let kept: Params = params
        .iter()
        .filter(|(name, _)| kept(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let published = word(&kept, "published").map(|label| format!("as published for {label}"));
    let said = published.into_iter().chain(words(&kept)).collect();
    let is_told = |name: &str| {
        name == "published" || PARAMS.iter().chain(&DETAILS).any(|(known, _)| *known == name)
    };
    let unknown = kept.iter().filter(|(name, _)| !is_told(name));
    let unknown = unknown.map(|(name, value)| named(name, value));
    (said, said_by(&DETAILS, &kept).chain(unknown).collect())
}

/// Where a cell of a group lies on its axes.
#[must_use]
pub fn axis_words(params: &Params, axes: &[&str]) -> String {
    let own = |name: &&str| Some(((*name).to_owned(), params.get(*name)?.clone()));
    let own: Params = axes.iter().filter_map(own).collect();
    let is_told = |name: &str| PARAMS.iter().any(|(known, _)| *known == name);
    let mut said = words(&own);
    said.extend(own.iter().filter(|(name, _)| !is_told(name)).map(|(name, v)| named(name, v)));
    said.join(", ")
}

/// A parameter by its own name: `sender cpu 0`, `pipe 1 MiB`; the way to copy of a mode as that.
fn named(name: &str, value: &Value) -> String {
    if let Some(mode) = name.strip_prefix("path_").or(name.strip_suffix("_path")) {
        return format!("{mode} by {}", text(value));
    }
    let size = name.strip_suffix("_bytes").zip(bytes(value));
    match size {
        Some((name, size)) => format!("{} {size}", name.replace('_', " ")),
        None => format!("{} {}", name.replace('_', " "), text(value)),
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The words of a list, such as a program and its arguments.
#[must_use]
pub fn listed(value: &Value) -> String {
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

fn counted(value: &Value, what: &str) -> Option<String> {
    Some(count(usize::try_from(value.as_u64()?).ok()?, what))
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
    Some(match rate.strip_suffix("MB/s").and_then(|rate| rate.parse::<f64>().ok()) {
        Some(rate) if rate >= 1000.0 => format!("large values at {} GB/s", rate / 1000.0),
        Some(rate) => format!("large values at {rate} MB/s"),
        None if rate == "max" => "large values without a pause".to_owned(),
        None => format!("large values at {rate} of the baseline's rate"),
    })
}

/// What came of the rate that was asked for is that, rounded.
fn rate_unless_asked(value: &Value, params: &Params) -> Option<String> {
    let rate = format!("at {:.1} GB/s", value.as_u64()? as f64 / 1e9);
    (!params.contains_key("large_rate")).then_some(rate)
}

fn requests(value: &Value, params: &Params) -> Option<String> {
    let what = if params.contains_key("multiget_keys") { "multigets" } else { "requests" };
    Some(format!("{} {what} per second", value.as_u64()? / 1000))
}

/// Where large values have a rate, that has told it.
fn schedule(value: &Value, params: &Params) -> Option<String> {
    let is_told = value != "open" || params.contains_key("large_rate");
    (!is_told).then(|| "on a schedule".to_owned())
}

fn values(small: &Value, params: &Params) -> Option<String> {
    let small = bytes(small)?;
    Some(match number(params, "large_bytes") {
        Some(large) => format!("values of {small} and {}", Bytes(large)),
        None => format!("values of {small}"),
    })
}

/// Whether two processes shared a CPU; which it was, nobody needs to know.
fn placed(value: &Value, params: &Params, other: &str, both: &str) -> Option<String> {
    let count = if params.get(other)? == value { "one CPU" } else { "two CPUs" };
    Some(format!("{both} on {count}"))
}

fn nothing(_: &Value, _: &Params) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use ntcopy_record::testing::record;

    fn words(value: Value) -> String {
        cell_words(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_group_says_what_its_cells_have_in_common_and_the_axis_what_they_differ_in() {
        let cells = record(
            &["plain"],
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
        assert_eq!(
            group,
            ("objects of 1 MiB".to_owned(), "cpu 1".to_owned()),
            "no row has words for it"
        );
        assert_eq!(axis_words(&cells[1].params, &axes), "2 MiB in flight");
    }

    #[test]
    fn a_group_is_told_in_words_with_units_and_without_what_no_reader_needs() {
        let multigets = json!({
            "app": "memcached", "app_version": "memcached 1.6.18", "form": "open",
            "connections": 16, "dataset_bytes": 4 << 20, "large_rate": "1000MB/s",
            "offered_bytes_per_s": 999_999_668, "offered_requests_per_1000_s": 1_960_698,
            "multiget_keys": 100, "small_bytes": 1024,
            "large_bytes": 1 << 20, "small_keys": 512, "small_connections": 8, "server_cpu": 0,
            "client_cpu": 1, "odd_bytes": 4096,
        });
        let (group, details) =
            group_words(&serde_json::from_value(multigets).unwrap(), &["connections"]);
        assert_eq!(group, "data set of 4 MiB, large values at 1 GB/s, 1960 multigets per second");
        let expected = "memcached 1.6.18, multigets of 100 keys, values of 1 KiB and 1 MiB, program and \
                        client on two CPUs, odd 4 KiB";
        assert_eq!(details, expected);
        let offered = json!({"form": "open", "offered_requests_per_1000_s": 1_695_698});
        assert_eq!(words(offered), "1695 requests per second, on a schedule");
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
        let told = json!({"request_bytes": 1024, "response_bytes": 1024, "iterations": 400,
                          "path_nt-both": "avx2-nt", "ours_path": "libc"});
        let told = group_words(&serde_json::from_value(told).unwrap(), &[]);
        assert_eq!(told.0, "1 KiB both ways");
        assert_eq!(told.1, "400 sends per sample, ours by libc, nt-both by avx2-nt");
        assert_eq!(words(json!({"task": "sum", "side": 512, "size_bytes": 1})), "sum of 512 x 512");
        assert_eq!(words(json!({"note": "x"})), "the only cell");
    }
}
