//! README's table, a row per question and a column per machine, and the demo's last lines.

use std::collections::BTreeMap;

use ntcopy_judge::Judged;

use super::index::{Answer, Index};
use super::{Error, figures};
use ntcopy_report::summary;
use ntcopy_report::text::Line;

/// What stands where a machine has no record.
const NONE: &str = "not measured";

pub(super) fn table(index: &Index, records: &BTreeMap<String, Judged>) -> Result<String, Error> {
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
pub(super) fn output(index: &Index, records: &BTreeMap<String, Judged>) -> Result<String, Error> {
    let shown = index.answers.output.iter().map(|name| index.record(records, name).cloned());
    let shown = shown.collect::<Result<Vec<Judged>, Error>>()?;
    let summaries = summary::summaries(&shown);
    let [one] = summaries.as_slice() else {
        return Err(Error::Index("answers.output: the records are of several machines".to_owned()));
    };
    let lines: Vec<String> = one.lines().iter().map(Line::to_string).collect();
    Ok(format!("```text\n{}\n```", lines.join("\n")))
}

/// What a row says, by the signature of the machine.
fn entries(
    index: &Index,
    records: &BTreeMap<String, Judged>,
    answer: &Answer,
) -> Result<BTreeMap<String, String>, Error> {
    let entry = |name: &String| {
        let record = index.record(records, name)?;
        let in_row = |what: Error| Error::Index(format!("answers: '{}': {what}", answer.what));
        let entry = figures::one(record, &answer.figure).map_err(in_row)?;
        Ok((record.machine.cpu_signature.clone(), entry))
    };
    answer.records.iter().map(entry).collect()
}
