//! `bench/record/INDEX.toml`, typed.

use std::collections::BTreeMap;

use ntcopy_judge::Judged;
use ntcopy_record::Cell;
use serde::Deserialize;

use super::Error;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Index {
    pub machine: Vec<Named>,
    /// Records by a short name, for `figure` and `page`.
    pub record: BTreeMap<String, String>,
    pub picture: Picture,
    pub answers: Answers,
    /// Figures for documents, by their name.
    pub figure: BTreeMap<String, Figure>,
    pub page: Vec<Page>,
    /// Records that hand-written pages rest on, and that have no page.
    pub kept: Vec<Kept>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Named {
    pub signature: String,
    pub name: String,
    pub about: String,
}

/// README's table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answers {
    /// Short names of the records whose verdict README shows as the demo prints it.
    pub output: Vec<String>,
    pub row: Vec<Answer>,
}

/// A row of README's table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Answer {
    /// What was measured, in words.
    pub what: String,
    /// The short name of the module's record, whose hinted sends are held against plain ones of its
    /// kernel.
    pub module: Option<String>,
    /// Whose cells are meant, and by which metric.
    pub figure: Cells,
}

/// Several charts side by side in one file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Picture {
    /// The file's name in `docs/results`.
    pub file: String,
    /// What it shows, for those who don't see it.
    pub alt: String,
    pub chart: Vec<ChartOf>,
}

/// A chart and its record's short name.
#[derive(Debug, Deserialize)]
pub(super) struct ChartOf {
    pub record: String,
    #[serde(flatten)]
    pub chart: ChartSpec,
}

/// What a chart shows of its record.
#[derive(Debug, Deserialize)]
pub(super) struct ChartSpec {
    pub title: String,
    /// The parameter along the axis. Without it: bars, a group a cell, of nanoseconds a line.
    pub along: Option<String>,
    /// What that parameter is, in words.
    pub name: Option<String>,
    #[serde(default, rename = "where")]
    pub cells: Select,
    /// Which metric; throughput unless it is said.
    #[serde(default = "throughput")]
    pub metric: String,
    /// Ratios to this mode, in place of rates.
    pub by: Option<String>,
    pub lines: Vec<(String, String)>,
}

fn throughput() -> String {
    ntcopy_judge::stats::THROUGHPUT.to_owned()
}

/// What a row of README's table is about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cells {
    pub record: String,
    #[serde(default, rename = "where")]
    pub cells: Select,
    #[serde(default = "throughput")]
    pub metric: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    /// The record's short name.
    pub record: String,
    /// What is printed; see `figures`.
    pub is: String,
    #[serde(default, rename = "where")]
    pub cells: Select,
    /// A question that every record of sends is asked; none where modes are meant by their names.
    pub asks: Option<Asks>,
    #[serde(default)]
    pub mode: String,
    #[serde(default)]
    pub by: String,
    /// By which metric.
    #[serde(default = "throughput")]
    pub metric: String,
}

/// One of the three questions.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Asks {
    /// What the patches bring.
    Patches,
    /// What the hint adds.
    Hint,
    /// What sends that copy nothing bring.
    AtMost,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    /// The file's name without `.md`.
    pub name: String,
    pub title: String,
    pub question: String,
    /// How to read it, and what it can't tell.
    pub read: String,
    pub part: Vec<Part>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Part {
    pub record: String,
    pub title: String,
    /// What has changed since, if it was taken with an earlier version of what it measures.
    pub note: Option<String>,
    /// The modes in the table, where there are more than a reader wants.
    #[serde(default)]
    pub modes: Vec<String>,
    #[serde(default)]
    pub chart: Vec<ChartSpec>,
}

/// A record without a page.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    /// Its place below `bench/record`.
    pub record: String,
    pub why: String,
}

/// Parameters that a cell must have: equal, or, where the name ends in `_from`, at least the value.
pub(super) type Select = BTreeMap<String, serde_json::Value>;

impl Index {
    pub fn parse(text: &str) -> Result<Index, Error> {
        let index: Index = toml::from_str(text).map_err(|error| Error::Index(error.to_string()))?;
        let short = |name: &String| !index.record.contains_key(name);
        let figures = index.figure.values().map(|figure| &figure.record);
        let parts = index.page.iter().flat_map(|page| &page.part).map(|part| &part.record);
        let pictured = index.picture.chart.iter().map(|chart| &chart.record);
        let answers = index.answers.row.iter();
        let answers = answers.flat_map(|row| row.module.iter().chain([&row.figure.record]));
        let answers = answers.chain(&index.answers.output);
        let named = figures.chain(parts).chain(pictured).chain(answers);
        let unknown = named.into_iter().find(|name| short(name));
        if let Some(name) = unknown {
            return Err(Error::Index(format!("[record] has no '{name}'")));
        }
        let silent = index.kept.iter().find(|kept| kept.why.trim().is_empty());
        match silent {
            Some(kept) => Err(Error::Index(format!("{} is kept without a reason", kept.record))),
            None => Ok(index),
        }
    }

    /// The places of all records, each once.
    pub fn records(&self) -> Vec<String> {
        let kept = self.kept.iter().map(|kept| &kept.record);
        let mut all: Vec<String> = self.record.values().chain(kept).cloned().collect();
        all.sort();
        all.dedup();
        all
    }

    /// A record by its short name.
    pub fn record<'a>(
        &self,
        records: &'a BTreeMap<String, Judged>,
        name: &str,
    ) -> Result<&'a Judged, Error> {
        let place = self.record.get(name);
        let record = place.and_then(|place| records.get(place));
        record.ok_or_else(|| Error::Index(format!("[record] has no '{name}'")))
    }

    /// How documents call the machine of a record.
    pub fn machine<'a>(&'a self, record: &'a Judged) -> &'a str {
        let signature = record.machine.cpu_signature.as_str();
        let known = self.machine.iter().find(|machine| machine.signature == signature);
        known.map_or(signature, |machine| &machine.name)
    }
}

/// The cells of a record that a selection means; at least one.
pub(super) fn cells<'a>(record: &'a Judged, select: &Select) -> Result<Vec<&'a Cell>, Error> {
    let cells: Vec<&Cell> = record.cells.iter().filter(|cell| is_meant(cell, select)).collect();
    if cells.is_empty() {
        let asked = serde_json::to_string(select).unwrap_or_default();
        return Err(Error::Index(format!("record {} has no cell with {asked}", record.header.id)));
    }
    Ok(cells)
}

fn is_meant(cell: &Cell, select: &Select) -> bool {
    select.iter().all(|(name, wanted)| match name.strip_suffix("_from") {
        Some(name) => {
            let has = ntcopy_record::number(&cell.params, name);
            has.zip(wanted.as_u64()).is_some_and(|(has, least)| has >= least)
        }
        None => cell.params.get(name) == Some(wanted),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cell(in_flight: u64) -> Cell {
        let params = [("in_flight_bytes".to_owned(), json!(in_flight))];
        Cell { cell: 0, params: params.into() }
    }

    #[test]
    fn a_selection_is_equal_or_at_least() {
        let select = |name: &str, value: u64| Select::from([(name.to_owned(), json!(value))]);
        assert!(is_meant(&cell(8), &select("in_flight_bytes", 8)));
        assert!(!is_meant(&cell(9), &select("in_flight_bytes", 8)));
        assert!(is_meant(&cell(9), &select("in_flight_bytes_from", 8)));
        assert!(!is_meant(&cell(9), &select("sockets", 8)));
        assert!(is_meant(&cell(9), &Select::new()));
    }
}
