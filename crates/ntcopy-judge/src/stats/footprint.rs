//! What a record of footprints says: how many lines of a cache each call displaced.

use serde::Serialize;

use super::{LINE_BYTES, Versus, interval, median};
use ntcopy_record::{Cell, MISSES_PERMILLE, Record, Sample, number, word};

/// The trigger that does nothing: the baseline.
pub const NOTHING: &str = "nothing";

/// Names of a cell's parameters.
pub mod param {
    /// `L2` or `LLC`.
    pub const LEVEL: &str = "level";
    /// The call, as one would ask for it.
    pub const CALL: &str = "call";
    pub const BYTES: &str = "bytes";
    pub const PRIMED: &str = "primed_lines";
    /// A load that takes more cycles of the time-stamp counter comes from beyond the level.
    pub const THRESHOLD: &str = "threshold_cycles";
    /// Lines that a known displacer displaces, and how.
    pub const KNOWN: &str = "known_lines";
}

/// The series of a sample: lines displaced, a repetition each.
pub const DISPLACED: &str = "displaced_lines";

/// Above this part of the primed lines, all of them are displaced as far as can be measured.
const FULL: f64 = 0.97;
/// A known displacer that is found within this part of what it is agrees.
const AGREES: f64 = 0.05;

/// As JSON, it is what programs are told of the level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelFigures {
    /// `L2` or `LLC`.
    pub level: String,
    pub primed_lines: u64,
    /// A load that took more cycles came from beyond the level.
    pub threshold_cycles: u64,
    /// Lines that were missing when nothing had happened: the median, taken off all others.
    pub missing_lines: f64,
    /// Below this number of lines that are read, nothing stands out of the noise.
    pub least_lines: f64,
    /// Lines read, and lines that they displaced of those primed.
    pub curve: Vec<(f64, f64)>,
    /// Known displacers, and as what they are found.
    pub checks: Vec<Check>,
    #[serde(skip)]
    pub calls: Vec<CallFigures>,
}

/// What a known displacer does with its lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    Read,
    Flushed,
    /// Past the caches.
    WrittenNt,
}

impl How {
    /// Of a call that is a known displacer.
    fn of(call: &str) -> Option<How> {
        match call {
            "check-read" => Some(How::Read),
            "check-flushed" => Some(How::Flushed),
            "check-written-nt" => Some(How::WrittenNt),
            _ => None,
        }
    }
}

/// A known displacer, held against what was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    pub how: How,
    /// Lines that were read, flushed or written.
    pub known_lines: f64,
    /// Lines found: of those read, in equivalent lines read by the curve; of the others, lines
    /// displaced.
    pub found_lines: f64,
    /// How far off that is, as a part of the lines that are known: of those written past the
    /// caches none should be found.
    pub off: f64,
    /// Whether it is found as what it is.
    pub agrees: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CallFigures {
    /// The call as one would ask for it.
    pub call: String,
    pub bytes: u64,
    /// Median of its time.
    pub call_ns: f64,
    /// Primed lines displaced: median.
    pub displaced_lines: f64,
    /// Equivalent lines read: median, and its 95 % interval.
    pub lines: f64,
    /// Low and high.
    pub ci: (f64, f64),
    pub each_lines: Vec<f64>,
    /// Equivalent lines read for each KiB of the call; none of a call without bytes.
    pub per_kib: Option<f64>,
    /// Whether all that was primed is displaced, so that `lines` is the least that it can be.
    pub is_at_least: bool,
}

impl LevelFigures {
    /// Equivalent lines read, of lines displaced; the last of the curve where that is full.
    fn equivalent(&self, displaced: f64) -> f64 {
        let mut before = (0.0, 0.0);
        for point in &self.curve {
            if displaced <= point.1 {
                let rise = point.1 - before.1;
                let part = if rise > 0.0 { (displaced - before.1) / rise } else { 0.0 };
                return before.0 + part.max(0.0) * (point.0 - before.0);
            }
            before = *point;
        }
        before.0
    }

    fn is_full(&self, displaced: f64) -> bool {
        let most = self.curve.last().map_or(0.0, |point| point.1);
        displaced >= most.min((self.primed_lines as f64 - self.missing_lines) * FULL)
    }
}

/// What the record says of each level that could be measured.
pub(crate) fn levels(record: &Record) -> Vec<LevelFigures> {
    let mut levels: Vec<LevelFigures> = Vec::new();
    for cell in record.cells.iter().filter(|cell| word(&cell.params, param::CALL) == Some(NOTHING))
    {
        let Some(level) = word(&cell.params, param::LEVEL) else { continue };
        levels.extend(level_figures(record, cell, level));
    }
    levels
}

/// The call of a cell, and the bytes that it moves for a byte of the cache that it displaces, more
/// being better: the lines of its bytes by the equivalent lines read. None of what is no call with
/// bytes.
pub(crate) fn versus<'c>(levels: &[LevelFigures], cell: &'c Cell) -> Option<(&'c str, Versus)> {
    let of = |name| word(&cell.params, name);
    let (level, call) = (of(param::LEVEL)?, of(param::CALL)?);
    let level = levels.iter().find(|one| one.level == level)?;
    let figures = level.calls.iter().find(|one| one.call == call && one.bytes > 0)?;
    let own = figures.bytes as f64 / LINE_BYTES;
    // A difference of one line cannot be measured.
    let ratios: Vec<f64> = figures.each_lines.iter().map(|lines| own / lines.max(1.0)).collect();
    Some((call, Versus::new(ratios, [&figures.each_lines, &[own]], MISSES_PERMILLE)))
}

fn level_figures(record: &Record, nothing: &Cell, level: &str) -> Option<LevelFigures> {
    let of_level: Vec<(&Cell, &Sample)> = record
        .cells
        .iter()
        .filter(|cell| word(&cell.params, param::LEVEL) == Some(level))
        .filter_map(|cell| {
            let sample = record.samples.iter().find(|sample| sample.cell == cell.cell)?;
            displaced(sample).map(|_| (cell, sample))
        })
        .collect();
    let (_, idle) = of_level.iter().find(|(cell, _)| cell.cell == nothing.cell)?;
    let idle = displaced(idle)?;
    let mut level = LevelFigures {
        level: level.to_owned(),
        primed_lines: number(&nothing.params, param::PRIMED)?,
        threshold_cycles: number(&nothing.params, param::THRESHOLD)?,
        missing_lines: median(&idle),
        least_lines: 0.0,
        curve: Vec::new(),
        checks: Vec::new(),
        calls: Vec::new(),
    };
    let net = |sample: &Sample| -> Vec<f64> {
        displaced(sample).unwrap_or_default().iter().map(|n| n - level.missing_lines).collect()
    };
    let rows: Vec<(&Cell, &Sample, Vec<f64>)> =
        of_level.iter().map(|(cell, sample)| (*cell, *sample, net(sample))).collect();
    let noise = interval(&idle, MISSES_PERMILLE).1 - level.missing_lines;
    for (cell, _, net) in &rows {
        if word(&cell.params, param::CALL) == Some("known-read") {
            let most = level.curve.last().map_or(0.0, |point| point.1);
            let known = number(&cell.params, param::KNOWN)? as f64;
            level.curve.push((known, median(net).max(most)));
        }
    }
    level.least_lines = level.equivalent(noise.max(1.0));
    for (cell, sample, net) in &rows {
        let call = word(&cell.params, param::CALL).unwrap_or_default();
        match How::of(call) {
            Some(how) => level.checks.extend(check(&level, how, cell, net)),
            None if call == NOTHING || call == "known-read" => {}
            None => level.calls.extend(one(&level, call, cell, sample, net)),
        }
    }
    Some(level)
}

fn check(level: &LevelFigures, how: How, cell: &Cell, net: &[f64]) -> Option<Check> {
    let known_lines = number(&cell.params, param::KNOWN)? as f64;
    let found_lines = match how {
        How::Read => median(&net.iter().map(|n| level.equivalent(*n)).collect::<Vec<f64>>()),
        How::Flushed | How::WrittenNt => median(net),
    };
    let wanted = if how == How::WrittenNt { 0.0 } else { known_lines };
    let off = (found_lines - wanted) / known_lines.max(1.0);
    let agrees = off.abs() <= AGREES;
    Some(Check { how, known_lines, found_lines, off, agrees })
}

fn one(
    level: &LevelFigures,
    call: &str,
    cell: &Cell,
    sample: &Sample,
    net: &[f64],
) -> Option<CallFigures> {
    let lines: Vec<f64> = net.iter().map(|n| level.equivalent(*n)).collect();
    let bytes = number(&cell.params, param::BYTES)?;
    let displaced_lines = median(net);
    let took: Vec<f64> = sample.series.get("call_ns")?.iter().map(|ns| *ns as f64).collect();
    Some(CallFigures {
        call: call.to_owned(),
        bytes,
        call_ns: median(&took),
        displaced_lines,
        lines: median(&lines),
        ci: interval(&lines, MISSES_PERMILLE),
        per_kib: (bytes > 0).then(|| median(&lines) / (bytes as f64 / 1024.0)),
        each_lines: lines,
        is_at_least: level.is_full(displaced_lines),
    })
}

fn displaced(sample: &Sample) -> Option<Vec<f64>> {
    let lines = sample.series.get(DISPLACED)?;
    (!lines.is_empty()).then(|| lines.iter().map(|count| *count as f64).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ntcopy_record::{ExperimentKind, Params, testing};

    /// A cache of 1,000 primed lines of which 10 always miss, where each line read displaces one,
    /// until 900.
    pub(crate) fn record(rows: &[(&str, Option<u64>, u64)]) -> Record {
        let mut record = testing::record(&[NOTHING], &[]);
        record.header.experiment = ExperimentKind::Footprint;
        let curve = [100, 250, 500, 900, 2000].map(|k| ("known-read", Some(k), 10 + k.min(900)));
        let all = [(NOTHING, None, 10)].into_iter().chain(curve).chain(rows.iter().copied());
        for (cell, (call, known, displaced)) in (0..).zip(all) {
            let mut params = Params::from([
                (param::LEVEL.to_owned(), "L2".into()),
                (param::CALL.to_owned(), call.into()),
                (param::BYTES.to_owned(), 4096.into()),
                (param::PRIMED.to_owned(), 1000.into()),
                (param::THRESHOLD.to_owned(), 90.into()),
            ]);
            if let Some(known) = known {
                params.insert(param::KNOWN.to_owned(), known.into());
            }
            record.cells.push(Cell { cell, params });
            let mut sample = testing::sample((cell, 0, 0), call, 0, 1);
            sample.series.insert(DISPLACED.to_owned(), vec![displaced; 5]);
            sample.series.insert("call_ns".to_owned(), vec![7; 5]);
            record.samples.push(sample);
        }
        record
    }

    #[test]
    fn calls_are_given_in_equivalent_lines_read() {
        let record =
            record(&[("copy:4KiB", None, 310), ("fill:4KiB", None, 10), ("send:4KiB", None, 1000)]);
        let levels = levels(&record);
        assert_eq!(levels.len(), 1);
        let [copy, fill, send] = &levels[0].calls[..] else { panic!("{levels:?}") };
        assert_eq!((copy.lines, copy.displaced_lines, copy.per_kib), (300.0, 300.0, Some(75.0)));
        assert_eq!((copy.ci, copy.call_ns, copy.is_at_least), ((300.0, 300.0), 7.0, false));
        assert_eq!((fill.lines, fill.is_at_least), (0.0, false));
        // 64 lines of its own.
        let moved = |cell: usize| versus(&levels, &record.cells[cell]);
        assert_eq!(moved(6).unwrap().1.ratio, 64.0 / 300.0);
        assert_eq!((moved(1), moved(0)), (None, None));
        assert!(send.is_at_least && send.lines >= 900.0, "{send:?}");
    }

    #[test]
    fn known_displacers_agree_or_do_not() {
        let good = [
            ("check-read", Some(300), 310),
            ("check-flushed", Some(250), 258),
            ("check-written-nt", Some(250), 12),
        ];
        let level = &levels(&record(&good))[0];
        assert!(level.checks.iter().all(|check| check.agrees), "{level:?}");
        assert_eq!(serde_json::to_value(level).unwrap()["checks"][0]["agrees"], true);
        for bad in [
            ("check-read", Some(300), 410),
            ("check-flushed", Some(250), 160),
            ("check-written-nt", Some(250), 100),
        ] {
            let level = &levels(&record(&[bad]))[0];
            assert!(!level.checks[0].agrees, "{level:?}");
        }
    }

    #[test]
    fn a_record_without_that_is_given_nothing() {
        assert!(levels(&testing::record(&[NOTHING], &[])).is_empty());
    }
}
