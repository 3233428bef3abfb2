//! Hardware counters that are not to be had.

use ntcopy_record::Record;
use ntcopy_record::lists::grouped;

/// Which counters are not to be had and why, those with the same reason together; empty where all
/// are to be had, or the record is older than the counters.
pub(crate) fn missing(record: &Record) -> Vec<String> {
    let counters = record.machine.hardware_counters.iter();
    let missing = counters.filter_map(|one| Some((one.missing.as_deref()?, one.name.as_str())));
    let said = |(why, names): (&str, Vec<&str>)| format!("{}: n/a ({why})", names.join(", "));
    grouped(missing).into_iter().map(said).collect()
}
