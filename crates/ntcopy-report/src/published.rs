//! Figures that others published, beside ours and never mixed with them.

use std::sync::LazyLock;

use ntcopy_record::ExperimentKind;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::text;
use crate::view::Grid;

const TOML: &str = include_str!("../../../bench/published.toml");

/// A published pair of throughputs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Published {
    pub experiment: ExperimentKind,
    pub cpu: String,
    pub label: String,
    /// Normal copies, megabits (10^6) per second.
    pub copy_mbit_per_s: f64,
    /// `MSG_NTCOPY`, megabits (10^6) per second.
    pub nt_mbit_per_s: f64,
}

impl Published {
    /// How much faster `MSG_NTCOPY` was.
    pub fn ratio(&self) -> f64 {
        self.nt_mbit_per_s / self.copy_mbit_per_s
    }
}

/// The published pairs of an experiment, in the file's order.
pub(crate) fn sends(experiment: &ExperimentKind) -> Vec<Published> {
    results(experiment, "nt_mbit_per_s")
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

/// The published tables of an experiment, in the file's order.
pub(crate) fn tables(experiment: &ExperimentKind) -> Vec<Grid> {
    results::<Table>(experiment, "rows").iter().map(Table::grid).collect()
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
        Grid { heading: format!("Published: {}, {}", self.title, self.cpu), header, rows }
    }

    fn row(&self, row: &[toml::Value]) -> Vec<String> {
        let figure = |at: usize| row.get(at).and_then(number);
        let mut cells = Vec::new();
        for at in 0..self.columns.len() {
            cells.push(row.get(at).map_or("-".to_owned(), written));
            cells.extend(self.ratio_at(at).map(|better| match (better, figure(1), figure(at)) {
                (Better::More, Some(first), Some(this)) => text::ratio(this / first),
                (Better::Less, Some(first), Some(this)) => text::ratio(first / this),
                _ => "-".to_owned(),
            }));
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
    use super::*;

    #[test]
    fn the_published_pairs_are_there_with_their_ratios_and_others_have_none() {
        let found = sends(&ExperimentKind::Unix);
        let ratios: Vec<String> = found.iter().map(|p| format!("{:.2}", p.ratio())).collect();
        assert_eq!(ratios, ["1.43", "1.33", "1.32"]);
        assert!(found.iter().all(|published| published.cpu == "AMD EPYC 7662"));
        assert!(sends(&"no such experiment".into()).is_empty());
        assert!(sends(&ExperimentKind::Memset).is_empty(), "its figures are of another kind");
    }

    #[test]
    fn published_tables_have_ratios_where_it_is_said_which_figures_are_better() {
        let rows = |experiment: ExperimentKind, table: usize, row: usize| {
            tables(&experiment)[table].rows[row].join(" ")
        };
        let memset = &tables(&ExperimentKind::Memset)[0];
        assert_eq!(memset.header, ["size", "x86-64-stosb", "MOVNTI", "ratio"]);
        assert_eq!(memset.heading, "Published: fills, GB/s, Intel Xeon E5-2630 v4 (Broadwell)");
        assert_eq!(rows(ExperimentKind::Memset, 0, 0), "16 MiB 17.35 11.83 0.68x");
        assert_eq!(rows(ExperimentKind::Order, 0, 0), "sum 46,078 94,860 0.49x");
        let copied = rows(ExperimentKind::Pages, 1, 3);
        assert_eq!(copied, "32 KiB 8.241 7.706 1.07x 6.681 1.23x - -", "not published");
        assert_eq!(rows(ExperimentKind::Net, 0, 1), "nocache 83,856 34.81 2508.42 2622.62 2735.88");
        assert_eq!(rows(ExperimentKind::Pingpong, 0, 12), "messages 1,793,530 1,849,114");
        assert!(tables(&ExperimentKind::Unix).is_empty());
    }
}
