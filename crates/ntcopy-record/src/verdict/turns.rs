//! What a program's turns come to, in words.

use crate::record::Record;
use crate::stats::turns::told;

/// The verdict, what the kernel counted, and what to do.
pub(super) fn sentences(record: &Record) -> Vec<String> {
    match told(record) {
        Some(told) => vec![told.sentence(), told.counted_sentence(), told.advice()],
        None => vec![format!(
            "No verdict: the record holds {} good turns, and five pairs make one.",
            record.samples.len()
        )],
    }
}

/// What is said although the turns are no timings.
pub(super) fn without_verdict(record: &Record) -> Vec<String> {
    sentences(record).into_iter().skip(1).collect()
}
