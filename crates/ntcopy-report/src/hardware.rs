//! Hardware counters that are not to be had.

use ntcopy_record::Record;

/// Which counters are not to be had and why, those with the same reason together; empty where all
/// are to be had, or the record is older than the counters.
pub(crate) fn missing(record: &Record) -> Vec<String> {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for counter in &record.machine.hardware_counters {
        let Some(why) = counter.missing.as_deref() else { continue };
        match groups.iter_mut().find(|(other, _)| *other == why) {
            Some((_, names)) => names.push(&counter.name),
            None => groups.push((why, vec![&counter.name])),
        }
    }
    groups.iter().map(|(why, names)| format!("{}: n/a ({why})", names.join(", "))).collect()
}
