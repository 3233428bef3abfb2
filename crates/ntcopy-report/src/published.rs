//! Figures that others published, beside ours and never mixed with them.

use std::slice::from_ref;
use std::sync::LazyLock;

use ntcopy_judge::Judged;
use ntcopy_record::{ExperimentKind, word};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::text;
use crate::view::{Entry, Grid};

const TOML: &str = include_str!("../../../bench/published.toml");
/// Megabits in 10^9 bytes.
const MBIT_PER_GB: f64 = 8e3;

/// A published pair of throughputs, in megabits (10^6) per second: normal copies, and `MSG_NTCOPY`.
#[derive(Deserialize)]
struct Pair {
    cpu: String,
    label: String,
    copy_mbit_per_s: f64,
    nt_mbit_per_s: f64,
}

/// Published figures of another kind, as a table.
#[derive(Deserialize)]
struct Table {
    cpu: String,
    title: String,
    ratio: Option<Better>,
    columns: Vec<String>,
    /// A name, and figures.
    rows: Vec<Vec<toml::Value>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Better {
    More,
    Less,
}

/// What others published of a record's experiment, in the file's order.
pub(crate) fn tables(record: &Judged) -> Vec<Grid> {
    let tables = results::<Table>(&record.header.experiment, "rows");
    pairs(record).into_iter().chain(tables.iter().map(Table::grid)).collect()
}

/// The pairs whose configurations the record repeats, in the unit of its own table.
fn pairs(record: &Judged) -> Option<Grid> {
    let is_repeated = |pair: &Pair| {
        let mut labels = record.cells.iter().map(|cell| word(&cell.params, "published"));
        labels.any(|label| label == Some(pair.label.as_str()))
    };
    let mut pairs: Vec<Pair> = results(&record.header.experiment, "nt_mbit_per_s");
    pairs.retain(is_repeated);
    let row = |pair: &Pair| {
        let [copy, nt] = [pair.copy_mbit_per_s, pair.nt_mbit_per_s];
        let figures = [copy, nt].map(|mbit| text::figure(mbit / MBIT_PER_GB));
        let row = [from_ref(&pair.label), &figures[..], &[text::ratio(nt / copy)]].concat();
        row.into_iter().map(Entry::from).collect()
    };
    Some(Grid {
        heading: format!("Published: sends, {}", pairs.first()?.cpu),
        header: ["configuration", "plain GB/s", "hinted GB/s", "ratio"].map(str::to_owned).into(),
        by_mode: false,
        rows: pairs.iter().map(row).collect(),
    })
}

impl Table {
    /// Beside each column of figures but the first one of what it is relative to that, where it is
    /// said which are better.
    fn grid(&self) -> Grid {
        let mut header = Vec::new();
        for (at, name) in self.columns.iter().enumerate() {
            header.push(name.clone());
            header.extend(self.ratio_at(at).map(|_| "ratio".to_owned()));
        }
        let rows = self.rows.iter().map(|row| self.row(row)).collect();
        let heading = format!("Published: {}, {}", self.title, self.cpu);
        Grid { heading, header, by_mode: false, rows }
    }

    fn row(&self, row: &[toml::Value]) -> Vec<Entry> {
        let figure = |at: usize| row.get(at).and_then(number);
        let mut cells = Vec::new();
        for at in 0..self.columns.len() {
            cells.push(row.get(at).map_or("-".to_owned(), written).into());
            let ratio = self.ratio_at(at).map(|better| match (better, figure(1), figure(at)) {
                (Better::More, Some(first), Some(this)) => text::ratio(this / first),
                (Better::Less, Some(first), Some(this)) => text::ratio(first / this),
                _ => "-".to_owned(),
            });
            cells.extend(ratio.map(Entry::from));
        }
        cells
    }

    fn ratio_at(&self, column: usize) -> Option<Better> {
        self.ratio.filter(|_| column > 1)
    }
}

fn number(value: &toml::Value) -> Option<f64> {
    value.as_float().or(value.as_integer().map(|number| number as f64))
}

fn written(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => text::thousands(*number as f64),
        other => other.to_string(),
    }
}

/// The results of an experiment that have this key, in the file's order.
fn results<T: DeserializeOwned>(experiment: &ExperimentKind, key: &str) -> Vec<T> {
    #[derive(Deserialize)]
    struct File {
        result: Vec<toml::Table>,
    }
    static ALL: LazyLock<Vec<toml::Table>> = LazyLock::new(|| {
        let file: File = toml::from_str(TOML).expect("bench/published.toml parses");
        file.result
    });
    let is_its = |row: &&toml::Table| {
        row.get("experiment").and_then(toml::Value::as_str) == Some(experiment.as_str())
            && row.contains_key(key)
    };
    let rows = ALL.iter().filter(is_its).cloned();
    rows.map(|row| row.try_into().expect("a published row is whole")).collect()
}

#[cfg(test)]
mod tests {
    use ntcopy_judge::judge;
    use ntcopy_record::testing;

    use super::*;

    fn of(experiment: ExperimentKind) -> Judged {
        let mut record = testing::record(&["plain"], &[&[]]);
        record.header.experiment = experiment;
        judge(&record)
    }

    #[test]
    fn published_pairs_stand_beside_a_record_that_repeats_them() {
        let mut record = of(ExperimentKind::Unix);
        assert!(tables(&record).is_empty());
        let label = "CPUs 1,2: no shared L2, shared L3";
        record.cells[0].params.insert("published".to_owned(), label.into());
        let [pairs] = &tables(&record)[..] else { panic!("one table") };
        assert_eq!(pairs.heading, "Published: sends, AMD EPYC 7662");
        let row = [label, "9.866", "14.12", "1.43x"].map(|text| Entry::from(text.to_owned()));
        assert_eq!(pairs.rows, [row]);
    }

    #[test]
    fn published_tables_have_ratios_where_it_is_said_which_figures_are_better() {
        let rows = |experiment: ExperimentKind, table: usize, row: usize| {
            let row = &tables(&of(experiment))[table].rows[row];
            row.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>().join(" ")
        };
        let memset = &tables(&of(ExperimentKind::Memset))[0];
        assert_eq!(memset.header, ["size", "x86-64-stosb", "MOVNTI", "ratio"]);
        assert_eq!(memset.heading, "Published: fills, GB/s, Intel Xeon E5-2630 v4 (Broadwell)");
        assert_eq!(rows(ExperimentKind::Memset, 0, 0), "16 MiB 17.35 11.83 0.68x");
        assert_eq!(rows(ExperimentKind::Order, 0, 0), "sum 46,078 94,860 0.49x");
        let copied = rows(ExperimentKind::Pages, 1, 3);
        assert_eq!(copied, "32 KiB 8.241 7.706 1.07x 6.681 1.23x - -", "not published");
        assert_eq!(rows(ExperimentKind::Net, 0, 1), "nocache 83,856 34.81 2508.42 2622.62 2735.88");
        assert_eq!(rows(ExperimentKind::Pingpong, 0, 12), "messages 1,793,530 1,849,114");
    }
}
