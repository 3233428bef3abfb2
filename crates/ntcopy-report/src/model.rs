//! A record, arranged for reading: cells that differ only in their bytes in flight side by side,
//! and for each mode what is known about it there.

use ntcopy_record::stats::{self, CellResult, SEND_THROUGHPUT, THROUGHPUT, sweep};
use ntcopy_record::{Cell, Params, Record, RunError};
use serde_json::Value;

use crate::text;

/// Parameters in which the cells of one group may differ.
const VARYING: [&str; 2] = ["in_flight_bytes", "sockets"];

/// Cells that belong on one axis.
#[derive(Debug)]
pub(crate) struct Group<'a> {
    /// What they have in common, in a few words.
    pub heading: String,
    pub details: String,
    /// By bytes in flight, where they have that; otherwise as the record has them.
    pub cells: Vec<CellView<'a>>,
}

#[derive(Debug)]
pub(crate) struct CellView<'a> {
    pub cell: &'a Cell,
    /// Bytes in flight, in the round form.
    pub in_flight_bytes: Option<u64>,
    /// What distinguishes it in its group, in words.
    pub label: String,
    /// Every mode of the record, the baseline first.
    pub modes: Vec<ModeView<'a>>,
}

#[derive(Debug)]
pub(crate) struct ModeView<'a> {
    pub mode: &'a str,
    /// Whether it is what the others are compared with.
    pub is_baseline: bool,
    /// Its throughput, if it has samples.
    pub rate: Option<Rate>,
    /// Median of the sends alone, bytes per second, if they were clocked.
    pub send_bytes_per_s: Option<f64>,
    /// Part of the time that was spent in the sends, from 0 to 1, if they were clocked.
    pub send_share: Option<f64>,
    /// The comparison by throughput.
    pub result: Option<CellResult>,
    pub errors: Vec<&'a RunError>,
    /// Why the mode is not to be had.
    pub unavailable: Option<&'a str>,
}

/// A throughput in bytes per second.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    /// Median of the samples.
    pub median: f64,
    /// 95 % interval of the median, where there are enough samples for one.
    pub ci: Option<(f64, f64)>,
}

impl ModeView<'_> {
    /// What to say in place of a figure; nothing if there is one. The reasons are said once, for
    /// the whole record.
    pub fn gap(&self) -> Option<&'static str> {
        match (self.rate, self.unavailable, self.errors.first()) {
            (Some(_), ..) => None,
            (None, Some(_), _) => Some("not available"),
            (None, None, Some(_)) => Some("failed"),
            (None, None, None) => Some("not measured"),
        }
    }
}

/// The modes that this version knows, in the order of tables and plots.
pub(crate) const KNOWN_MODES: [&str; 4] = ["copy", "nt", "vmsplice", "adaptive"];

/// The record's modes: the baseline, the known ones, then others in the order in which they are
/// met.
pub(crate) fn modes(record: &Record) -> Vec<&str> {
    let baseline = record.header.baseline.as_str();
    let met = stats::modes(record)
        .into_iter()
        .chain(record.errors.iter().map(|error| error.mode.as_str()))
        .chain(record.unavailable.iter().map(|line| line.mode.as_str()));
    let mut modes = vec![baseline];
    for mode in met {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    let rank = |mode: &str| KNOWN_MODES.iter().position(|known| *known == mode);
    // Plain sends of the other kernel, where two were compared, before what adds to them.
    modes[1..].sort_by_key(|mode| (*mode != "patched", rank(mode).unwrap_or(KNOWN_MODES.len())));
    modes
}

/// The record's cells in groups, in the order in which they are met.
pub(crate) fn groups(record: &Record) -> Vec<Group<'_>> {
    let results = stats::results(record);
    let modes = modes(record);
    let mut groups: Vec<(Params, Group<'_>)> = Vec::new();
    for cell in &record.cells {
        let constant = constant(&cell.params);
        let view = view(record, &results, &modes, cell);
        match groups.iter_mut().find(|(params, _)| *params == constant) {
            Some((_, group)) => group.cells.push(view),
            None => {
                let (heading, details) = heading(&constant);
                groups.push((constant, Group { heading, details, cells: vec![view] }));
            }
        }
    }
    let mut groups: Vec<Group<'_>> = groups.into_iter().map(|(_, group)| group).collect();
    for group in &mut groups {
        group.cells.sort_by_key(|cell| cell.in_flight_bytes);
    }
    groups
}

fn view<'a>(
    record: &'a Record,
    results: &[CellResult],
    modes: &[&'a str],
    cell: &'a Cell,
) -> CellView<'a> {
    let number = |name: &str| cell.params.get(name).and_then(Value::as_u64);
    let in_flight_bytes = number("in_flight_bytes");
    let label = match (in_flight_bytes, number("sockets")) {
        (Some(bytes), _) => text::size(bytes),
        (None, _) if cell.params.get("form") == Some(&Value::from("free-running")) => {
            "free-running".to_owned()
        }
        (None, Some(sockets)) => format!("{sockets} sockets"),
        (None, None) => format!("cell {}", cell.cell),
    };
    let modes = modes.iter().map(|mode| mode_view(record, results, cell, mode)).collect();
    CellView { cell, in_flight_bytes, label, modes }
}

fn mode_view<'a>(
    record: &'a Record,
    results: &[CellResult],
    cell: &Cell,
    mode: &'a str,
) -> ModeView<'a> {
    let samples = record.samples.iter().filter(|s| s.cell == cell.cell && s.mode == mode);
    let shares: Vec<f64> = samples.clone().filter_map(sweep::send_share).collect();
    let rates: Vec<f64> = samples
        .filter_map(|sample| stats::rate(&record.header.experiment, sample, THROUGHPUT))
        .collect();
    let rate = (!rates.is_empty()).then(|| Rate {
        median: stats::median(&rates),
        ci: (rates.len() >= stats::MIN_PAIRS).then(|| stats::interval(&rates)),
    });
    let ours = |result: &&CellResult| {
        (result.cell, result.mode.as_str(), result.metric) == (cell.cell, mode, THROUGHPUT)
    };
    let errors = record.errors.iter();
    ModeView {
        mode,
        is_baseline: mode == record.header.baseline,
        rate,
        send_share: (!shares.is_empty()).then(|| stats::median(&shares)),
        send_bytes_per_s: stats::mode_median(record, cell.cell, mode, SEND_THROUGHPUT),
        result: results.iter().find(ours).cloned(),
        errors: errors.filter(|e| e.cell == cell.cell && e.mode == mode).collect(),
        unavailable: unavailable(record, cell, mode),
    }
}

/// Why a mode is not to be had in a cell.
pub(crate) fn unavailable<'a>(record: &'a Record, cell: &Cell, mode: &str) -> Option<&'a str> {
    let here = |at: Option<u32>| at.is_none_or(|at| at == cell.cell);
    let line = record.unavailable.iter().find(|line| line.mode == mode && here(line.cell));
    line.map(|line| line.why.as_str())
}

fn constant(params: &Params) -> Params {
    let kept = params.iter().filter(|(name, _)| !VARYING.contains(&name.as_str()));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What a group's cells have in common, briefly and in full. Parameters that this version does
/// not know are shown as they are: a newer record must not lose one.
fn heading(params: &Params) -> (String, String) {
    let mut rest = params.clone();
    let mut take = |name: &str| rest.remove(name);
    let mut bytes = |name: &str| take(name).as_ref().and_then(Value::as_u64).map(text::size);
    let (object, dataset) = (bytes("object_bytes"), bytes("dataset_bytes"));
    let (pipe, sndbuf) = (bytes("pipe_bytes"), bytes("sndbuf_bytes"));
    let small = bytes("small_bytes");
    let mut words = Vec::new();
    words.extend(match take("form") {
        Some(form) if form == "rounds" => Some("every socket filled, then all drained".to_owned()),
        Some(form) => Some(match form.as_str().and_then(sends_of_boots) {
            Some(sends) => format!(
                "{sends}; two kernels booted in turns; every socket filled, then all drained"
            ),
            None => plain(&form),
        }),
        None => None,
    });
    words.extend(take("family").map(|family| format!("{} sockets", plain(&family))));
    if let (Some(sender), Some(reader)) = (take("sender_cpu"), take("reader_cpu")) {
        words.push(format!("sender on CPU {sender}, reader on CPU {reader}"));
    }
    if let (Some(senders), Some(on), Some(readers)) =
        (take("senders"), take("sender_cpus"), take("reader_cpus"))
    {
        words.push(format!(
            "{senders} senders at once, on CPUs {}, readers on CPUs {}",
            plain(&on),
            plain(&readers)
        ));
    }
    if let (Some(size), Some(count), Some(whose)) =
        (small, take("small_per_object"), take("clocked"))
    {
        words.push(format!(
            "beside {count} small sends of {size} per object, the {} sender's time",
            plain(&whose)
        ));
    }
    words.extend(pipe.map(|pipe| format!("pipe of {pipe}")));
    words.extend(sndbuf.map(|sndbuf| format!("send buffer of {sndbuf}")));
    if let Some(pieces) = take("pieces").as_ref().and_then(Value::as_u64) {
        words.push(format!("{pieces} pieces a send"));
    }
    if let Some(count) = take("iterations").as_ref().and_then(Value::as_u64) {
        words.push(format!("{} sends a sample", text::thousands(count as f64)));
    }
    let sizes = match (object, dataset) {
        (Some(object), Some(dataset)) => format!("Objects of {object} out of {dataset}"),
        (Some(object), None) => format!("Objects of {object}"),
        _ => "Results".to_owned(),
    };
    let heading = match take("published") {
        Some(label) => {
            words.insert(0, sizes.replacen('O', "o", 1));
            format!("As published: {}", plain(&label))
        }
        None => sizes,
    };
    let note = take("note");
    words.extend(rest.iter().map(|(name, value)| format!("{name} {}", plain(value))));
    words.extend(note.as_ref().map(plain));
    (heading, words.join(", "))
}

/// What was sent, where two kernels were compared.
fn sends_of_boots(form: &str) -> Option<&'static str> {
    match form {
        "boots" => Some("plain sends"),
        "boots-with-hints" => Some("plain and hinted sends"),
        "boots-after-hint" => Some("plain sends once a program has hinted"),
        "hinted-boots" => Some("hinted sends"),
        "boots-by-mode" => Some("each mode in both"),
        _ => None,
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
