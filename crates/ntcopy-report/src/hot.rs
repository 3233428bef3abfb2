//! What a line of a hot set takes beside each mode, whichever form measured it: for a sentence and
//! for bars.

use ntcopy_record::params::group_words;
use ntcopy_record::stats::{IDLE, Measured};
use ntcopy_record::{Cell, ExperimentKind, Record, number, word};

use crate::text;

const COPY: &str = "copy";
/// The modes as a reader meets them; others follow.
const MODES: [&str; 5] = [IDLE, COPY, "adaptive", "nt", "nt-both"];

/// A hot set, and the nanoseconds that a line of it takes in each mode.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hot {
    pub bytes: u64,
    /// What ran beside it.
    pub beside: String,
    /// Whether that were sends, rather than copies in user space.
    is_of_sends: bool,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    pub mode: String,
    /// Nanoseconds that half of the walks or passes did not exceed.
    pub p50: f64,
    /// Those that 99 of 100 did not.
    pub p99: f64,
}

pub(crate) fn all(record: &Record) -> Vec<Hot> {
    record.cells.iter().filter_map(|cell| of_cell(record, cell)).collect()
}

/// The hot set that plain copies or sends slow down most; of sends, if there are any.
pub(crate) fn worst(records: &[&Record]) -> Option<Hot> {
    let ours =
        records.iter().filter(|record| record.header.experiment == ExperimentKind::Retention);
    let found: Vec<Hot> = ours.flat_map(|record| all(record)).collect();
    let of = |is_of_sends: bool| {
        let these = found.iter().filter(|hot| hot.is_of_sends == is_of_sends);
        these.max_by(|a, b| a.slow_down().total_cmp(&b.slow_down())).cloned()
    };
    of(true).or_else(|| of(false))
}

pub(crate) fn of_cell(record: &Record, cell: &Cell) -> Option<Hot> {
    let bytes = number(&cell.params, "hot_set_bytes")?;
    let line = |one: &Measured<'_>| {
        let (p50, p99) = (one.line_ns(0.5)?, one.line_ns(0.99)?);
        Some(Line { mode: one.mode.to_owned(), p50, p99 })
    };
    let mut lines: Vec<Line> = Measured::all(record, cell).iter().filter_map(line).collect();
    lines.sort_by_key(|line| {
        MODES.iter().position(|mode| line.mode == *mode).unwrap_or(MODES.len())
    });
    let is_of_sends = word(&cell.params, "form") != Some("copies");
    let (beside, _) = group_words(&cell.params, &["hot_set_bytes", "pass_bytes"]);
    (lines.len() > 1).then_some(Hot { bytes, beside, is_of_sends, lines })
}

impl Hot {
    /// `512 KiB`.
    pub(crate) fn size(&self) -> String {
        text::size(self.bytes)
    }

    pub(crate) fn line(&self, mode: &str) -> Option<&Line> {
        self.lines.iter().find(|line| line.mode == mode)
    }

    /// How much longer a line takes beside plain sends or copies than alone; 0 where that is not
    /// known.
    pub(crate) fn slow_down(&self) -> f64 {
        self.line(COPY).zip(self.line(IDLE)).map_or(0.0, |(plain, idle)| plain.p50 / idle.p50)
    }

    /// What a hinted send or copy leaves of it: the wanted mode, or `nt` where that is missing.
    pub(crate) fn sentence(&self, wanted: &str) -> Option<String> {
        let (idle, plain) = (self.line(IDLE)?, self.line(COPY)?);
        let hinted = self.line(wanted).or_else(|| self.line("nt"))?;
        let told = |line: &Line| format!("{:.1} ns (p99 {:.1})", line.p50, line.p99);
        let (what, hint) =
            if self.is_of_sends { ("sends", "hinted") } else { ("copies", "non-temporal") };
        Some(format!(
            "A line of a hot set of {} takes {} alongside {hint} {what}, {} alongside plain ones, and \
             {} alone.",
            self.size(),
            told(hinted),
            told(plain),
            told(idle)
        ))
    }
}
