//! The counters for programs: one JSON object on a line, whole numbers of bytes.

use ntcopy::socket::Counters;
use ntcopy::uapi;
use ntcopy_record::foreign;
use serde_json::json;

use super::hinted_bytes;

/// What was counted so far; the share of nothing is null.
pub fn totals(counters: &Counters) -> String {
    let hinted = hinted_bytes(counters);
    let share = (hinted > 0).then(|| counters.get(uapi::STAT_NONTEMPORAL) as f64 / hinted as f64);
    let object = json!({
        "total_bytes": counters.as_map(),
        "hinted_total_bytes": hinted,
        "nontemporal_share": share,
    });
    format!("{}\n", foreign::visible_value(object))
}
