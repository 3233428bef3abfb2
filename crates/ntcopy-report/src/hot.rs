//! What a line of a hot set takes beside each mode: for a sentence and for bars.

use ntcopy_judge::advice::{Source, Taker};
use ntcopy_judge::claims::{Question, hint, hint_of};
use ntcopy_judge::params::group_parts;
use ntcopy_judge::stats::{Verdict, WALKS};
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
    /// The modes of hinted sends and of the plain ones that they are held against, and how that comes
    /// out.
    hint: Option<Hint>,
}

#[derive(Debug, Clone, PartialEq)]
struct Hint {
    hinted: String,
    plain: String,
    verdict: Verdict,
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
    let hint = hint(record, WALKS);
    record.cells.iter().filter_map(|cell| of_cell(record, cell, hint)).collect()
}

/// The hot set that plain sends slow down most: out of more data than the caches hold, where that was
/// measured, since programs that answer from it are whom hints are for.
pub fn worst(records: &[&Judged], taker: Taker) -> Option<Hot> {
    let ours =
        records.iter().filter(|record| record.header.experiment == ExperimentKind::Retention);
    let cells = ours.flat_map(|record| {
        let hint = hint_of(record, taker.into(), WALKS);
        let is_cold = |cell| Source::of(&record.machine, cell) == Some(Source::Cold);
        let hinted = record.cells.iter().filter(move |_| hint.is_some());
        hinted.filter_map(move |cell| Some((is_cold(cell), of_cell(record, cell, hint)?)))
    });
    let by_slow_down = |a: &(bool, Hot), b: &(bool, Hot)| {
        a.0.cmp(&b.0).then(a.1.slow_down().total_cmp(&b.1.slow_down()))
    };
    cells.max_by(by_slow_down).map(|(_, hot)| hot)
}

pub fn of_cell(record: &Judged, cell: &Cell, hint: Option<Question<'_>>) -> Option<Hot> {
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
    let hint = hint.and_then(|question| {
        let verdict = question.of(record, cell)?.verdict();
        let [hinted, plain] = [question.mode, question.other].map(str::to_owned);
        Some(Hint { hinted, plain, verdict })
    });
    (lines.len() > 1).then_some(Hot { bytes, beside, lines, hint })
}

impl Hot {
    /// `512 KiB`.
    pub fn size(&self) -> String {
        text::size(self.bytes)
    }

    pub fn line(&self, mode: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.mode == mode)
    }

    /// Those of the question, and idle; without one the first plain one.
    fn of(&self, sends: Sends) -> Option<&Line> {
        match (&self.hint, sends) {
            (Some(hint), Sends::Plain) => self.line(&hint.plain),
            (Some(hint), Sends::Hinted) => self.line(&hint.hinted),
            _ => self.lines.iter().find(|line| line.sends == sends),
        }
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
        let verdict = self.hint.as_ref()?.verdict;
        let is_other = matches!(verdict, Verdict::Win | Verdict::Loss);
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
