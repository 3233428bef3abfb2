//! How good the instrument was, in words; what the calls displaced is in the table.

use crate::record::Record;
use crate::stats::footprint::{LevelTold, told};

/// For each level, how far known displacers are off.
pub(super) fn sentences(record: &Record) -> Vec<String> {
    let mut said: Vec<String> = told(record).iter().flat_map(of_level).collect();
    if said.is_empty() {
        said.push("No level of the caches could be measured.".to_owned());
    }
    said
}

fn of_level(level: &LevelTold) -> Vec<String> {
    let mut said = Vec::new();
    said.extend(level.program.as_ref().map(|program| {
        format!(
            "{}: the program displaces {}{:.0} lines ({:.0}-{:.0}) in {:.0} us of CPU time, {:.0} \
             lines in 100 us; {} slices.",
            level.level,
            if program.is_at_least { "at least " } else { "" },
            program.lines,
            program.ci.0,
            program.ci.1,
            program.cpu_ns / 1000.0,
            program.per_100_us,
            program.slices
        )
    }));
    said.push(format!("{}: {}", level.level, level.sentence()));
    said.extend(
        level.least_lines.map(|least| {
            format!("{}: below {least:.0} lines read nothing can be told.", level.level)
        }),
    );
    said
}
