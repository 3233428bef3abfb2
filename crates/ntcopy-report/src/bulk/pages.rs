//! What is special about pages that are cleared or copied.

use ntcopy_record::{Cell, Params, Record};

use crate::text;
use crate::versus::{number, word};

/// What the rows of a table have in common.
pub(super) fn heading(params: &Params) -> Option<String> {
    if let (Some(user), Some(usage)) = (word(params, "user"), word(params, "use")) {
        let amount = if usage == "byte" { "one byte a page" } else { "every byte" };
        return Some(format!("fork() loop, the {user} writes {amount}"));
    }
    let read = match word(params, "read_back")? {
        "none" => "nothing read back",
        "some" => "100 bytes of each read back",
        _ => "all read back",
    };
    Some(format!("{} pages, {read}", word(params, "action")?))
}

/// Bytes of a cache line: what hardware events of copies and fills are counted by.
const LINE_BYTES: u64 = 64;

/// What a table's figures are of.
pub(super) struct Unit {
    /// The column with the medians.
    pub rate: &'static str,
    /// What counters are given for.
    pub each: &'static str,
}

/// The units of a record's tables.
pub(super) fn unit(record: &Record) -> Unit {
    if record.cells.first().is_some_and(|cell| is_fork(&cell.params)) {
        Unit { rate: "us a fork", each: "a fork" }
    } else {
        Unit { rate: "GB/s", each: "a line" }
    }
}

/// Whether a cell is a loop of forks.
pub(crate) fn is_fork(params: &Params) -> bool {
    word(params, "form") == Some("fork")
}

/// A median of bytes by second: as such, or as the time of a fork.
pub(super) fn rate(cell: &Cell, bytes_per_s: f64) -> String {
    match number(&cell.params, "size_bytes").filter(|_| is_fork(&cell.params)) {
        Some(buffer_bytes) => format!("{:.1}", buffer_bytes as f64 / bytes_per_s * 1e6),
        None => text::gigabytes_fine(bytes_per_s),
    }
}

/// Bytes for which a counter's figure is given.
pub(super) fn each_bytes(cell: &Cell) -> u64 {
    number(&cell.params, "size_bytes").filter(|_| is_fork(&cell.params)).unwrap_or(LINE_BYTES)
}
