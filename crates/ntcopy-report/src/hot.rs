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
    /// Mode and nanoseconds at the median.
    pub lines: Vec<(String, f64)>,
    /// Mode and nanoseconds that 99 of 100 walks or passes did not exceed.
    pub tails: Vec<(String, f64)>,
}

pub(crate) fn all(record: &Record) -> Vec<Hot> {
    record.cells.iter().filter_map(|cell| one(record, cell)).collect()
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

fn one(record: &Record, cell: &Cell) -> Option<Hot> {
    let bytes = number(&cell.params, "hot_set_bytes")?;
    let of = |part: f64| -> Vec<(String, f64)> {
        let all = Measured::all(record, cell);
        let lines = all.iter().filter_map(|one| Some((one.mode.to_owned(), one.line_ns(part)?)));
        let mut lines: Vec<(String, f64)> = lines.collect();
        lines.sort_by_key(|(mode, _)| {
            MODES.iter().position(|known| known == mode).unwrap_or(MODES.len())
        });
        lines
    };
    let is_of_sends = word(&cell.params, "form") != Some("copies");
    let (beside, _) = group_words(&cell.params, &["hot_set_bytes", "pass_bytes"]);
    let lines = of(0.5);
    (lines.len() > 1).then(|| Hot { bytes, beside, is_of_sends, lines, tails: of(0.99) })
}

impl Hot {
    /// `512 KiB`.
    pub(crate) fn size(&self) -> String {
        text::size(self.bytes)
    }

    fn line(&self, mode: &str) -> Option<f64> {
        self.lines.iter().find(|(known, _)| known == mode).map(|(_, ns)| *ns)
    }

    fn tail(&self, mode: &str) -> Option<f64> {
        self.tails.iter().find(|(known, _)| known == mode).map(|(_, ns)| *ns)
    }

    /// How much longer a line takes beside plain sends or copies than alone; 0 where that is not
    /// known.
    pub(crate) fn slow_down(&self) -> f64 {
        self.line(COPY).zip(self.line(IDLE)).map_or(0.0, |(plain, idle)| plain / idle)
    }

    /// What a hinted send or copy leaves of it: the wanted mode, or `nt` where that is missing.
    pub(crate) fn sentence(&self, wanted: &str) -> Option<String> {
        let (idle, plain) = (self.line(IDLE)?, self.line(COPY)?);
        let mode = if self.line(wanted).is_some() { wanted } else { "nt" };
        let hinted = self.line(mode)?;
        let (hinted_tail, plain_tail) = (self.tail(mode)?, self.tail(COPY)?);
        let idle_tail = self.tail(IDLE)?;
        let (what, hint) =
            if self.is_of_sends { ("sends", "hinted") } else { ("copies", "non-temporal") };
        Some(format!(
            "A line of a hot set of {} takes {hinted:.1} ns (p99 {hinted_tail:.1}) alongside {hint} \
             {what}, {plain:.1} ns (p99 {plain_tail:.1}) alongside plain ones, and {idle:.1} ns (p99 \
             {idle_tail:.1}) alone.",
            self.size()
        ))
    }
}
