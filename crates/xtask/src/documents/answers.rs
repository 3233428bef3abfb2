//! README's table: a row per question, a column per part of the answer; and the demo's last lines.

use std::collections::BTreeMap;

use ntcopy_judge::Judged;
use ntcopy_judge::claims::{Claim, Point, Question, three};

use super::index::{self, Answer, Cells, Index};
use super::{Error, figures};
use ntcopy_report::summary;
use ntcopy_report::text::{self, Line};

/// What stands where nothing was measured.
const NONE: &str = "-";

pub(super) fn table(index: &Index, records: &BTreeMap<String, Judged>) -> Result<String, Error> {
    let mut out = String::from(
        "| | patches alone | the hint on top | copying nothing | the hint by the module |\n\
         |---|---|---|---|---|",
    );
    for answer in &index.answers.row {
        let in_row = |what: Error| Error::Index(format!("answers: '{}': {what}", answer.what));
        let entries = entries(index, records, answer).map_err(in_row)?;
        out.push_str(&format!("\n| {} | {} |", answer.what, entries.join(" | ")));
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

/// What a row says, column by column.
fn entries(
    index: &Index,
    records: &BTreeMap<String, Judged>,
    answer: &Answer,
) -> Result<Vec<String>, Error> {
    let metric = figures::metric(&answer.figure.metric)?;
    let record = index.record(records, &answer.figure.record)?;
    let mut entries = Vec::new();
    for question in three(record, metric) {
        entries.push(entry(record, question, &answer.figure)?);
    }
    entries.push(match &answer.module {
        Some(name) => {
            let record = index.record(records, name)?;
            let [_, hint, _] = three(record, metric);
            entry(record, hint, &answer.figure)?
        }
        None => NONE.to_owned(),
    });
    Ok(entries)
}

/// The mean over the cells, and the lowest and the highest of them; of one cell its interval.
fn entry(record: &Judged, question: Option<Question<'_>>, about: &Cells) -> Result<String, Error> {
    let cells = index::cells(record, &about.cells)?;
    let points = cells.into_iter().filter_map(|cell| question?.of(record, cell));
    let claim = Claim::of(&points.collect::<Vec<Point<'_>>>());
    Ok(claim.map_or(NONE.to_owned(), |claim| {
        let (mean, range) = (text::ratio(claim.all.ratio), text::range(&claim));
        match claim.cells {
            1 => claim.to_string(),
            _ if mean == range => mean,
            _ => format!("{mean} ({range})"),
        }
    }))
}
