//! Lines for programs: one JSON object each, whole numbers of bytes.

use ntcopy::socket::Counters;
use ntcopy_record::foreign;
use serde_json::{Value, json};

use super::reading::{Interval, Reading, hinted_bytes, nontemporal_share};

/// What was counted so far.
pub fn totals(reading: &Reading) -> String {
    line(&json!({
        "total_bytes": reading.counters.as_map(),
        "hinted_total_bytes": hinted_bytes(&reading.counters),
        "nontemporal_share": share(&reading.counters),
    }))
}

/// What was added in an interval, and the totals at its end. The share is the interval's.
pub fn interval(now: &Reading, interval: &Interval) -> String {
    let added = interval.added.as_map();
    let rates = added
        .iter()
        .map(|(name, bytes)| (name.clone(), interval.per_second(*bytes).into()))
        .collect::<serde_json::Map<String, Value>>();
    let hinted = hinted_bytes(&interval.added);
    line(&json!({
        "interval_ns": u64::try_from(interval.length.as_nanos()).unwrap_or(u64::MAX),
        "added_bytes": added,
        "bytes_per_second": rates,
        "hinted_bytes_per_second": interval.per_second(hinted),
        "nontemporal_share": share(&interval.added),
        "total_bytes": now.counters.as_map(),
    }))
}

fn share(counters: &Counters) -> Value {
    nontemporal_share(counters).map_or(Value::Null, Value::from)
}

fn line(object: &Value) -> String {
    format!("{}\n", foreign::visible_value(object.clone()))
}
