//! README's table, a row per question and a column per machine, and the demo's last lines.

use std::collections::BTreeMap;

use ntcopy_record::Record;
use ntcopy_record::stats::{Measured, Versus, versus};

use super::Error;
use super::index::{self, Answer, Index};
use super::outcomes::Tally;
use crate::{summary, text};

/// What stands where a machine has no record.
const NONE: &str = "not measured";

/// The table.
pub(super) fn table(index: &Index, records: &BTreeMap<String, Record>) -> Result<String, Error> {
    let machines = index.answers.machines.iter().map(|signature| {
        let known = index.machine.iter().find(|machine| machine.signature == *signature);
        known.ok_or_else(|| Error::Index(format!("answers: no [[machine]] is a {signature}")))
    });
    let machines = machines.collect::<Result<Vec<_>, _>>()?;
    let mut out = String::from("| |");
    for machine in &machines {
        out.push_str(&format!(" {}, {} |", machine.name, machine.kind));
    }
    out.push_str(&format!("\n|---|{}", "---|".repeat(machines.len())));
    for answer in &index.answers.row {
        let entries = entries(index, records, answer)?;
        out.push_str(&format!("\n| {} |", answer.what));
        for machine in &machines {
            let entry = entries.get(&machine.signature).map_or(NONE, String::as_str);
            out.push_str(&format!(" {entry} |"));
        }
    }
    Ok(out)
}

/// What the demo prints of records like these.
pub(super) fn output(index: &Index, records: &BTreeMap<String, Record>) -> Result<String, Error> {
    let shown = index.answers.output.iter().map(|name| index.record(records, name).cloned());
    let shown = shown.collect::<Result<Vec<Record>, Error>>()?;
    let summaries = summary::summaries(&shown);
    let [one] = summaries.as_slice() else {
        return Err(Error::Index("answers.output: the records are of several machines".to_owned()));
    };
    Ok(format!("```text\n{}\n```", one.lines().join("\n")))
}

/// What a row says, by the signature of the machine.
fn entries(
    index: &Index,
    records: &BTreeMap<String, Record>,
    answer: &Answer,
) -> Result<BTreeMap<String, String>, Error> {
    let mut entries = BTreeMap::new();
    for name in &answer.records {
        let record = index.record(records, name)?;
        let signature = record.machine.cpu_signature.clone();
        let entry = match answer.is.as_str() {
            "outcomes" => outcomes(record, answer),
            "hot-set" => hot_set(record, answer),
            other => Err(Error::Index(format!("answers: nothing is called is = \"{other}\""))),
        };
        entries.insert(signature, entry?);
    }
    Ok(entries)
}

/// Wins, equals and losses, what is unresolved, and the median ratio of the cells.
fn outcomes(record: &Record, answer: &Answer) -> Result<String, Error> {
    let cells = index::cells(record, &answer.cells)?;
    let one = |cell: &&ntcopy_record::Cell| {
        versus(record, cell.cell, &answer.mode, &answer.by, &answer.metric)
    };
    let all: Vec<Versus> = cells.iter().filter_map(one).collect();
    if all.is_empty() {
        return Err(Error::Index(format!("answers: '{}' has no cell", answer.what)));
    }
    let tally = Tally::count(all.iter().map(|versus| (versus.ratio, versus.verdict())));
    let Tally { wins, equal, losses, .. } = tally;
    let unresolved = match tally.unresolved {
        0 => String::new(),
        some => format!(", {some} unresolved"),
    };
    Ok(format!("{wins}-{equal}-{losses}{unresolved}, {}", text::ratio(tally.median())))
}

/// Nanoseconds of a read alongside the baseline's sends, and alongside the mode's: p50 and p99.
fn hot_set(record: &Record, answer: &Answer) -> Result<String, Error> {
    let cells = index::cells(record, &answer.cells)?;
    let [cell] = cells.as_slice() else {
        let count = cells.len();
        return Err(Error::Index(format!("answers: '{}' means {count} cells", answer.what)));
    };
    let all = Measured::all(record, cell);
    let by = |mode: &str| {
        let missing = || Error::Index(format!("answers: '{}' has no {mode}", answer.what));
        let one = all.iter().find(|one| one.mode == mode);
        one.and_then(|one| one.line_ns(0.5).zip(one.line_ns(0.99))).ok_or_else(missing)
    };
    let (plain, hinted) = (by(&answer.by)?, by(&answer.mode)?);
    Ok(format!("p50 {:.1} to {:.1} ns, p99 {:.1} to {:.1}", plain.0, hinted.0, plain.1, hinted.1))
}
