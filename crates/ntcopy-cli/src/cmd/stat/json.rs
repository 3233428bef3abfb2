//! The counters for programs: one JSON object on a line, whole numbers of bytes.

use ntcopy::socket::Counters;
use serde::Serialize;

/// What was counted so far.
#[derive(Serialize)]
struct Totals {
    bytes: u64,
    hinted_bytes: u64,
    bypassed_bytes: u64,
}

pub fn totals(counters: &Counters) -> serde_json::Result<String> {
    let Counters { bytes, hinted_bytes, bypassed_bytes, .. } = *counters;
    let text = serde_json::to_string(&Totals { bytes, hinted_bytes, bypassed_bytes })?;
    Ok(text + "\n")
}
