//! What clearing and copying pages come to, and the question of 2004: is there any workload that
//! is faster with normal stores?

use super::bulk::{against_baseline, not_measured};
use super::wins::{count, figure};
use crate::params::cell_words;
use crate::record::{Params, Record, word};
use crate::stats::{self, THROUGHPUT, Verdict, Versus, versus};

/// The question, as it was asked.
const QUESTION: &str =
    "\"Is there ANY workload which will be faster on non-NT copy_page() than on NT one?\"";
/// The modes that clear and copy, or only copy, past the caches.
const NONTEMPORAL: [&str; 7] =
    ["sse-nt-t0", "sse-nt-nta", "movnti", "movdir64b", "clzero", "nt", "nt-copy"];

pub(super) fn sentences(record: &Record) -> Vec<String> {
    let baseline = record.header.baseline.as_str();
    let modes = stats::modes(record).into_iter().filter(|mode| *mode != baseline);
    let mut sentences: Vec<String> =
        modes.filter_map(|mode| against_baseline(record, mode)).collect();
    sentences.extend(answer(record));
    sentences.extend(not_measured(record));
    if sentences.is_empty() {
        sentences.push("Nothing was compared: the record holds too few pairs.".to_owned());
    }
    sentences
}

/// A cell, and the best of what is non-temporal in it.
struct Judged<'a> {
    params: &'a Params,
    mode: &'a str,
    versus: Versus,
}

/// Where even the best non-temporal way is surely slower than the baseline; for copies, which were
/// asked about, and for clears.
fn answer(record: &Record) -> Vec<String> {
    let cells: Vec<Judged> = record.cells.iter().filter_map(|cell| best(record, cell)).collect();
    let (clears, copies): (Vec<Judged>, Vec<Judged>) =
        cells.into_iter().partition(|cell| word(cell.params, "action") == Some("clear"));
    let mut sentences = Vec::new();
    let baseline = record.header.baseline.as_str();
    if !copies.is_empty() {
        sentences.push(match slower(&copies) {
            Some(list) => format!(
                "{QUESTION} (2004) Yes. In {} of {} even the best non-temporal way is slower than \
                 {baseline}, the whole interval below 1: {list}.",
                losses(&copies),
                count(copies.len()),
            ),
            None => format!(
                "{QUESTION} (2004) None here: in none of {} is the best non-temporal way's whole \
                 interval against {baseline} below 1.",
                count(copies.len()),
            ),
        });
    }
    if !clears.is_empty() {
        sentences.push(match slower(&clears) {
            Some(list) => format!(
                "Clearing: in {} of {} even the best non-temporal way is slower than \
                 {baseline}: {list}.",
                losses(&clears),
                count(clears.len()),
            ),
            None => format!(
                "Clearing: in none of {} is the best non-temporal way slower than {baseline}.",
                count(clears.len()),
            ),
        });
    }
    sentences
}

/// The best non-temporal way of a cell, by the median of its ratios: whoever says that one is
/// slower must not have picked a bad one.
fn best<'a>(record: &'a Record, cell: &'a crate::record::Cell) -> Option<Judged<'a>> {
    let baseline = record.header.baseline.as_str();
    let measured = stats::modes(record).into_iter().filter(|mode| NONTEMPORAL.contains(mode));
    let rated = measured.filter_map(|mode| {
        let versus = versus(record, cell.cell, mode, baseline, THROUGHPUT)?;
        Some(Judged { params: &cell.params, mode, versus })
    });
    rated.max_by(|a, b| a.versus.ratio.total_cmp(&b.versus.ratio))
}

fn is_slower(cell: &&Judged<'_>) -> bool {
    cell.versus.verdict() == Verdict::Loss
}

fn losses(cells: &[Judged<'_>]) -> usize {
    cells.iter().filter(is_slower).count()
}

/// The cells that are slower, each by its name; none if none is.
fn slower(cells: &[Judged<'_>]) -> Option<String> {
    let named = |cell: &Judged<'_>| {
        format!("{} ({} {})", cell_words(cell.params), cell.mode, figure(&cell.versus))
    };
    let list: Vec<String> = cells.iter().filter(is_slower).map(named).collect();
    (!list.is_empty()).then(|| list.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::{Sketch, record, unavailable};

    /// Copies of three sizes; five pairs at these rates of (rep-b, movnti, sse-nt-t0) each.
    fn copies(rates: [[u64; 3]; 3]) -> Record {
        let names = ["rep-b", "movnti", "sse-nt-t0"];
        let sizes = [[("size_bytes", 8192)], [("size_bytes", 1 << 17)], [("size_bytes", 1 << 23)]];
        let cells: Vec<&[(&str, u64)]> = sizes.iter().map(|cell| &cell[..]).collect();
        let mut empty = record(&names, &cells);
        empty.header.experiment = "pages".into();
        for cell in &mut empty.cells {
            cell.params.insert("action".into(), "copy".into());
            cell.params.insert("read_back".into(), "all".into());
        }
        let mut sketch = Sketch::of(&names, empty);
        for (cell, rates) in (0..).zip(rates) {
            (0..5).for_each(|pair| sketch.pair(cell, pair, &rates.map(|rate| rate * 1000)));
        }
        sketch.record()
    }

    #[test]
    fn the_question_of_2004_is_answered_with_the_cells_that_lose() {
        let record = copies([[200, 50, 100], [100, 50, 150], [100, 200, 200]]);
        let said = sentences(&record).join("\n");
        assert!(said.contains("Yes. In 1 of 3 cells"), "{said}");
        let cell = "8 KiB, copy, all read back (sse-nt-t0 0.50x, interval 0.50-0.50)";
        assert!(said.contains(cell), "{said}");
        assert!(!said.contains("128 KiB, copy, all read back (sse"), "the best one wins: {said}");
        assert!(
            said.contains("movnti is faster than rep-b in 1, the other way round in 2"),
            "{said}"
        );
    }

    #[test]
    fn where_nothing_loses_there_is_none_here() {
        let mut record = copies([[100, 150, 100], [100, 150, 100], [100, 50, 150]]);
        record.unavailable.push(unavailable("clzero", "this CPU does not have it"));
        let said = sentences(&record).join("\n");
        assert!(said.contains("None here: in none of 3 cells"), "{said}");
        assert!(said.contains("clzero was not measured: this CPU does not have it."), "{said}");
        record.samples.clear();
        assert!(!sentences(&record).join("\n").contains("2004"), "nothing was measured");
    }

    #[test]
    fn a_clear_is_no_answer_to_a_question_about_copies() {
        let mut record = copies([[200, 50, 100], [200, 50, 150], [200, 50, 50]]);
        for cell in &mut record.cells {
            cell.params.insert("action".into(), "clear".into());
        }
        let said = sentences(&record).join("\n");
        assert!(!said.contains("2004") && said.contains("Clearing: in 3 of 3 cells"), "{said}");
    }
}
