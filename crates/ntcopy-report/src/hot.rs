//! What a line of a hot set takes beside each mode: for a sentence and for bars.

use ntcopy_judge::advice::Source;
use ntcopy_judge::params::group_parts;
use ntcopy_judge::stats::BAR;
use ntcopy_judge::{Judged, Measured};
use ntcopy_record::{Cell, ExperimentKind, Sends, number};

use crate::text;

/// A hot set, and the nanoseconds that a line of it takes in each mode.
#[derive(Debug, Clone, PartialEq)]
pub struct Hot {
    pub bytes: u64,
    /// What ran beside it, part by part.
    pub beside: Vec<String>,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub mode: String,
    pub sends: Sends,
    /// Nanoseconds that half of the walks did not exceed.
    pub p50: f64,
    /// Those that 99 of 100 did not.
    pub p99: f64,
}

pub fn all(record: &Judged) -> Vec<Hot> {
    record.cells.iter().filter_map(|cell| of_cell(record, cell)).collect()
}

/// The hot set that plain sends slow down most: out of more data than the caches hold, where that was
/// measured, since programs that answer from it are whom hints are for.
pub fn worst(records: &[&Judged]) -> Option<Hot> {
    let ours =
        records.iter().filter(|record| record.header.experiment == ExperimentKind::Retention);
    let cells = ours.flat_map(|record| {
        let is_cold = |cell| Source::of(&record.machine, cell) == Some(Source::Cold);
        record.cells.iter().filter_map(move |cell| Some((is_cold(cell), of_cell(record, cell)?)))
    });
    let by_slow_down = |a: &(bool, Hot), b: &(bool, Hot)| {
        a.0.cmp(&b.0).then(a.1.slow_down().total_cmp(&b.1.slow_down()))
    };
    cells.max_by(by_slow_down).map(|(_, hot)| hot)
}

pub fn of_cell(record: &Judged, cell: &Cell) -> Option<Hot> {
    let bytes = number(&cell.params, "hot_set_bytes")?;
    let line = |one: &Measured<'_>| {
        let (p50, p99) = (one.line_ns(0.5)?, one.line_ns(0.99)?);
        Some(Line { mode: one.mode.to_owned(), sends: one.sends(), p50, p99 })
    };
    let mut lines: Vec<Line> = record.measured(cell).iter().filter_map(line).collect();
    // As a reader meets them; others follow.
    let order = [Sends::Idle, Sends::Plain, Sends::ByRule, Sends::Hinted];
    lines.sort_by_key(|line| {
        order.iter().position(|sends| line.sends == *sends).unwrap_or(order.len())
    });
    let (beside, _) = group_parts(&cell.params, &["hot_set_bytes"]);
    (lines.len() > 1).then_some(Hot { bytes, beside, lines })
}

impl Hot {
    /// `512 KiB`.
    pub fn size(&self) -> String {
        text::size(self.bytes)
    }

    pub fn line(&self, mode: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.mode == mode)
    }

    fn of(&self, sends: Sends) -> Option<&Line> {
        self.lines.iter().find(|line| line.sends == sends)
    }

    /// How much longer a line takes beside plain sends than alone; 0 where that is not
    /// known.
    pub fn slow_down(&self) -> f64 {
        let both = self.of(Sends::Plain).zip(self.of(Sends::Idle));
        both.map_or(0.0, |(plain, idle)| plain.p50 / idle.p50)
    }

    /// What another program on the CPU has of it, where that differs: `others on the CPU keep their
    /// cache (5.2 ns a line instead of 28.1)`, if it is more than half of what plain sends take.
    pub fn kept(&self) -> Option<String> {
        let idle = self.of(Sends::Idle)?;
        let (plain, hinted) = (self.of(Sends::Plain)?, self.of(Sends::Hinted)?);
        let figures = format!("{:.1} ns a line instead of {:.1}", hinted.p50, plain.p50);
        let is_other = (hinted.p50 / plain.p50 - 1.0).abs() > BAR;
        let is_kept = plain.p50 - hinted.p50 > (plain.p50 - idle.p50) / 2.0;
        is_other.then(|| match is_kept {
            true => format!("others on the CPU keep their cache ({figures})"),
            false => format!("others on the CPU have {figures}"),
        })
    }

    /// What hinted sends leave of it.
    pub fn sentence(&self) -> Option<String> {
        let (idle, plain) = (self.of(Sends::Idle)?, self.of(Sends::Plain)?);
        let hinted = self.of(Sends::Hinted)?;
        let told = |line: &Line| format!("{:.1} ns (p99 {:.1})", line.p50, line.p99);
        Some(format!(
            "A line of a hot set of {} takes {} alongside hinted sends, {} alongside plain ones, and \
             {} alone.",
            self.size(),
            told(hinted),
            told(plain),
            told(idle)
        ))
    }
}
