//! Hardware counters of a record, whether this machine has any or not.

use ntcopy_record::{Record, Sample};

/// Cycles are counted in every sample or in none, and then the record and its tables say why.
pub fn every_sample_or_why_not(record: &Record, tables: &str) {
    let cycles = record.machine.hardware_counters.iter().find(|one| one.name == "cycles");
    let missing = cycles.expect("cycles are always spoken of").missing.as_deref();
    let counted = |sample: &Sample| sample.counters.contains_key("cycles");
    assert!(record.samples.iter().all(|sample| counted(sample) == missing.is_none()));
    // What is too long for a line goes on in the next.
    let said = tables.replace('\n', " ");
    let said = said.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
    match missing {
        Some(why) => assert!(said.contains(&format!("n/a ({why}")), "{why}: {tables}"),
        None => assert!(said.contains("hardware events per line of 64 bytes"), "{tables}"),
    }
}
