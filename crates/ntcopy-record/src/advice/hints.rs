//! Hints on sends: from how long on, for sends out of more data than the caches hold.

use super::pays::{Pays, name_kernel, say_together};
use super::{Advice, Decision, Topic, Value};
use crate::judge::{Claim, Point, Size, cells, hint, ids, losses, lost, of_cells, outcomes, split};
use crate::lists::unique;
use crate::record::{Cell, ExperimentKind, Machine, Record, number, word};
use crate::stats::{THROUGHPUT, Verdict, WALKS};
use crate::units::Bytes;

/// What is measured where the running kernel has no flag.
pub(super) const RUN_SWEEP: &str = "ntcopy bench unix --kernel um --sweep";

/// No larger number is advised: a response that does not block goes in pieces of the send buffer,
/// 208 KiB by default, of which the first has to be hinted for the rest to be.
const LARGEST_STREAM_BYTES: u64 = 256 << 10;
/// Datagrams are never as long, and their number is the smallest.
const LARGEST_DATAGRAM_BYTES: u64 = 4096;
/// A source of so much is not in any cache, whatever size a hypervisor gives out for the last one.
const SURELY_COLD_BYTES: u64 = 256 << 20;

/// Where the bytes of a send come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// More data than the caches hold.
    Cold,
    /// The same few bytes again and again, or what was just written: in level 2.
    Hot,
}

impl Source {
    /// None where the data is in between, in the last level of cache.
    fn of(machine: &Machine, cell: &Cell) -> Option<Source> {
        let bytes = number(&cell.params, "dataset_bytes")?;
        let level_2 = machine.caches.iter().find(|cache| cache.level == 2);
        let level_2 = level_2.map_or(1 << 20, |cache| cache.size_bytes);
        let is_cold = bytes >= SURELY_COLD_BYTES || bytes > machine.llc_bytes.saturating_mul(2);
        match () {
            () if bytes <= level_2 => Some(Source::Hot),
            () if is_cold => Some(Source::Cold),
            () => None,
        }
    }
}

/// Rounds over sockets of a family from a source: hinted sends relative to plain ones, by the length
/// of a send.
pub(super) fn rounds<'a>(records: &[&'a Record], family: &str, source: Source) -> Vec<Point<'a>> {
    let is_about = |record: &Record, cell: &Cell| {
        is_round(cell, family) && Source::of(&record.machine, cell) == Some(source)
    };
    by_length(of_cells(records, &ExperimentKind::Unix, &|one| hint(one, THROUGHPUT), &is_about))
}

fn by_length(mut points: Vec<Point<'_>>) -> Vec<Point<'_>> {
    for point in &mut points {
        let bytes = number(&point.cell.params, "object_bytes").unwrap_or_default();
        point.size = Size { bytes, of: "a send" };
    }
    points.sort_by_key(|point| point.size.bytes);
    points
}

/// Whether a cell is of objects over sockets of a family, in rounds.
#[must_use]
pub fn is_round(cell: &Cell, family: &str) -> bool {
    word(&cell.params, "form") == Some("rounds") && family_of(cell) == family
}

fn family_of(cell: &Cell) -> &str {
    word(&cell.params, "family").unwrap_or("unix")
}

/// The families of rounds that were measured, unix sockets first.
fn families<'a>(records: &[&'a Record]) -> Vec<&'a str> {
    let unix = records.iter().filter(|record| record.header.experiment == ExperimentKind::Unix);
    let measured = unix.flat_map(|record| &record.cells).map(family_of);
    unique(std::iter::once("unix").chain(measured))
}

/// The smallest send from which on no length loses, out of more data than the caches hold; none if
/// the longest do. A length of which cells lose has to win over all of them.
fn loses_none_from(cold: &[Point<'_>]) -> Option<u64> {
    let mut from = None;
    for alike in cold.chunk_by(|a, b| a.size == b.size).rev() {
        let together = Claim::of(alike).map(|gain| gain.verdict);
        let has_losses = lost(alike).next().is_some();
        if together == Some(Verdict::Loss) || has_losses && together != Some(Verdict::Win) {
            break;
        }
        from = Some(alike[0].size.bytes);
    }
    from
}

/// Sends of each family; unix sockets first.
pub(super) fn sends(records: &[&Record]) -> Vec<Advice> {
    let of_family = |family: &str| {
        let cold = rounds(records, family, Source::Cold);
        let hot = rounds(records, family, Source::Hot);
        let is_told = family == "unix" || !cold.is_empty();
        is_told.then(|| hinted(family, &cold, &hot))
    };
    families(records).into_iter().filter_map(of_family).collect()
}

/// What hinted sends of a family come to: the number, what it brings out of a cold source, and what
/// a hot one loses by it.
pub(super) fn hinted(family: &str, cold: &[Point<'_>], hot: &[Point<'_>]) -> Advice {
    let about = Some(format!("{family} sockets"));
    if cold.is_empty() {
        let why = format!(
            "Hinted sends over {family} sockets out of more data than the caches hold: nothing was \
             measured on this machine."
        );
        return Advice { about, ..Advice::no_evidence(Topic::SENDS, why, RUN_SWEEP) };
    }
    let is_datagram = family.starts_with("udp");
    let largest = if is_datagram { LARGEST_DATAGRAM_BYTES } else { LARGEST_STREAM_BYTES };
    let from = loses_none_from(cold).map(|from| from.min(largest));
    let (below, above) = split(cold, from.unwrap_or_default());
    let gain = Claim::of(above);
    let decision = match (from, gain.map(|gain| gain.verdict)) {
        (Some(_), Some(Verdict::Win)) => Decision::Set,
        (Some(_), Some(Verdict::Equal)) => Decision::AsItIs,
        (Some(_), Some(Verdict::Unresolved) | None) => Decision::Unresolved,
        _ => Decision::Leave,
    };
    let setting = match (decision, from) {
        (Decision::Set, Some(from)) => format!(
            "SO_NTCOPY = {from} (sends of {} and more) on {family} sockets of programs that answer \
             from more data than the caches hold",
            Bytes(from)
        ),
        _ => "SO_NTCOPY".to_owned(),
    };
    let (why, costs) = (why(from, below, above), costs(cold, split(hot, from.unwrap_or(0)).1));
    let bytes = from.filter(|_| decision == Decision::Set);
    let mut advice = Advice {
        about,
        setting: Some(setting),
        gain,
        costs: Some(costs),
        records: ids(cold),
        value: bytes.map(|bytes| Value::Option { name: "SO_NTCOPY", value: bytes }),
        ..Advice::bare(Topic::SENDS, decision, why)
    };
    name_kernel(&mut advice, above);
    advice
}

fn why(from: Option<u64>, below: &[Point<'_>], above: &[Point<'_>]) -> String {
    let all = cells(above.len());
    let mut why = match from {
        Some(from) => format!(
            "Out of more data than the caches hold, of {all} with hinted sends of {} and more {}.",
            Bytes(from),
            outcomes(above)
        ),
        None => format!(
            "Out of more data than the caches hold even the longest sends lose: of {all} {}.",
            outcomes(above)
        ),
    };
    if !below.is_empty() {
        why.push_str(&format!(" Among shorter ones {}.", outcomes(below)));
    }
    why
}

/// Which cells lose, and where their bytes come from.
fn costs(cold: &[Point<'_>], hot: &[Point<'_>]) -> String {
    let mut costs = format!("Out of more data than the caches hold: {}", losses(cold));
    if !hot.is_empty() {
        costs.push_str(&format!(" The same few bytes again and again: {}", losses(hot)));
    }
    costs
}

/// Sends beside another program's hot set on the sender's CPU, by the bytes in flight: its walks, or
/// sends and walks together.
fn beside_hot_set<'a>(records: &[&'a Record], metric: &'static str) -> Vec<Point<'a>> {
    let is_victim = |_: &Record, cell: &Cell| word(&cell.params, "form") == Some("victim");
    of_cells(records, &ExperimentKind::Retention, &|one| hint(one, metric), &is_victim)
}

/// What hinted sends leave of a hot set on the sender's CPU.
pub(super) fn hot_set(records: &[&Record], sends: &Advice) -> Advice {
    let found = beside_hot_set(records, WALKS);
    let pays = Pays {
        topic: Topic::HOT_SET_SENDS,
        thing: "For a hot set on the sender's CPU, hinted sends",
        setting: &|_| match sends.decision {
            Decision::Set => "SO_NTCOPY as for the sends, for the hot set's sake too".to_owned(),
            _ => "SO_NTCOPY in programs whose hot data matters more than the sends".to_owned(),
        },
        leave: "SO_NTCOPY for a hot set's sake",
        least: Some(1.0),
        run: "ntcopy bench retention --kernel um --modes hinted",
    };
    let (mut advice, used) = pays.answer(&found);
    say_together(&mut advice, used);
    name_kernel(&mut advice, used);
    advice
}
