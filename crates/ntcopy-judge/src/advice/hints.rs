//! Hints on sends: from how long on, for sends out of more data than the caches hold.

use super::pays::{Pays, guest, together};
use super::{About, Advice, Decision, Hot, Measure, Reason, Taker, Topic};
use crate::Judged;
use crate::claims::{
    Asks, Claim, Outcomes, Parts, Point, Size, hint_of, ids, lost, of_cells, split, tally,
};
use crate::ratio::Ratio;
use crate::stats::{self, THROUGHPUT, Tally, Verdict, WALKS};
use ntcopy_record::lists::unique;
use ntcopy_record::{Cell, ExperimentKind, Machine, number, word};

/// No larger number is advised: a response that does not block goes in pieces of the send buffer,
/// 208 KiB by default, of which the first has to be hinted for the rest to be. The module remembers no
/// rest, and for it the number is what was measured.
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
    #[must_use]
    pub fn of(machine: &Machine, cell: &Cell) -> Option<Source> {
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

/// Sends over sockets of a family from a source: hinted relative to plain ones of the same kernel, by
/// the length of a send. Every form counts in which one sender has the CPU.
fn lengths<'a>(
    records: &[&'a Judged],
    taker: Taker,
    family: &str,
    source: Source,
) -> Vec<Point<'a>> {
    let is_about = |record: &Judged, cell: &Cell| {
        is_sends(cell, family) && Source::of(&record.machine, cell) == Some(source)
    };
    let asks: Asks<'_> = &|one| hint_of(one, taker.into(), THROUGHPUT);
    by_length(of_cells(records, &ExperimentKind::Unix, asks, &is_about))
}

fn is_sends(cell: &Cell, family: &str) -> bool {
    let is_alone = word(&cell.params, "form") != Some("two-senders");
    is_alone && family_of(cell) == family
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
fn families<'a>(records: &[&'a Judged]) -> Vec<&'a str> {
    let unix = records.iter().filter(|record| record.header.experiment == ExperimentKind::Unix);
    let measured = unix.flat_map(|record| &record.cells).map(family_of);
    unique(std::iter::once("unix").chain(measured))
}

/// The smallest send from which on no length loses, out of more data than the caches hold; none if
/// the longest do. A length of which cells lose has to win over all of them.
fn loses_none_from(cold: &[Point<'_>]) -> Option<u64> {
    let mut from = None;
    for alike in cold.chunk_by(|a, b| a.size == b.size).rev() {
        let Tally { losses, unresolved, .. } = tally(alike);
        // Cells that win or are equal are no loss together.
        let is_open = losses + unresolved > 0;
        let together = is_open.then(|| Claim::of(alike)).flatten().map(|gain| gain.verdict);
        if together == Some(Verdict::Loss) || losses > 0 && together != Some(Verdict::Win) {
            break;
        }
        from = Some(alike[0].size.bytes);
    }
    from
}

/// Sends of each family; unix sockets first.
pub(super) fn sends(records: &[&Judged], taker: Taker) -> Vec<Advice> {
    let all = families(records).into_iter().map(|family| Lengths::of(records, family, taker));
    let told = all.filter(|sends| sends.family == "unix" || !sends.cold.is_empty());
    told.map(|sends| sends.advice(&sends.cold)).collect()
}

/// What was measured of hinted sends of a family, and the one number that follows: the length from
/// which on they are hinted. Whoever says a number has it from here.
pub(super) struct Lengths<'f, 'a> {
    pub family: &'f str,
    /// Ascending by the length of a send, as all.
    pub cold: Vec<Point<'a>>,
    hot: Vec<Point<'a>>,
    from_bytes: Option<u64>,
    parts: Option<Parts>,
    alike: Option<Ratio>,
}

impl<'f, 'a> Lengths<'f, 'a> {
    pub fn of(records: &[&'a Judged], family: &'f str, taker: Taker) -> Lengths<'f, 'a> {
        let [cold, hot] =
            [Source::Cold, Source::Hot].map(|one| lengths(records, taker, family, one));
        let largest = match taker {
            Taker::Module => u64::MAX,
            Taker::Kernel if family.starts_with("udp") => LARGEST_DATAGRAM_BYTES,
            Taker::Kernel => LARGEST_STREAM_BYTES,
        };
        let from_bytes = loses_none_from(&cold).map(|from| from.min(largest));
        let is_about = |_: &Judged, cell: &Cell| is_sends(cell, family);
        let parts = Parts::of(records, &ExperimentKind::Unix, taker.into(), &is_about);
        let halves = |point: &Point<'a>| {
            Some(&point.record.figures(point.cell.cell, point.question.other)?.halves)
        };
        let alike = stats::alike(cold.iter().chain(&hot).filter_map(halves));
        Lengths { family, cold, hot, from_bytes, parts, alike }
    }

    /// The number, and what it brings in these cells out of a cold source: all of them, or those that
    /// are like a program. What a hot source gains or loses stands beside it.
    pub fn advice(&self, cold: &[Point<'_>]) -> Advice {
        let about = About::Sockets(self.family.to_owned());
        if cold.is_empty() {
            return Advice::no_evidence(Topic::Sends, about, Measure::Usual);
        }
        let from_bytes = self.from_bytes;
        let (below, above) = split(cold, from_bytes.unwrap_or_default());
        let hot = split(&self.hot, from_bytes.unwrap_or_default()).1;
        let gain = Claim::of(above);
        let decision = self.decision(gain.map(|gain| gain.verdict));
        let reason = Reason::Lengths {
            from_bytes,
            below: (!below.is_empty()).then(|| Outcomes::of(below)),
            above: Outcomes::of(above),
            all: Outcomes::of(cold),
        };
        Advice {
            about,
            from_bytes: from_bytes.filter(|_| decision == Decision::Set),
            gain,
            hot: of_hot(hot),
            parts: self.parts,
            alike: self.alike,
            guest: guest(above),
            records: ids(cold),
            ..Advice::bare(Topic::Sends, decision, reason)
        }
    }

    fn decision(&self, gain: Option<Verdict>) -> Decision {
        match (self.from_bytes, gain) {
            _ if self.alike.is_some_and(|alike| alike.differs()) => Decision::Unresolved,
            (Some(_), Some(Verdict::Win)) => Decision::Set,
            (Some(_), Some(Verdict::Equal)) => Decision::AsItIs,
            (Some(_), Some(Verdict::Unresolved) | None) => Decision::Unresolved,
            _ => Decision::Leave,
        }
    }
}

/// What a hot source comes to, and from how much in flight on it loses no more.
fn of_hot(points: &[Point<'_>]) -> Option<Hot> {
    let claim = Claim::of(points)?;
    let in_flight = |point: &Point<'_>| number(&point.cell.params, "in_flight_bytes").unwrap_or(0);
    let wins_above = |loses_up_to: u64| {
        let above = points.iter().filter(|point| in_flight(point) > loses_up_to);
        let above: Vec<Point<'_>> = above.copied().collect();
        let wins = Claim::of(&above)?.verdict == Verdict::Win;
        above.iter().map(in_flight).min().filter(|_| wins)
    };
    let wins_from_in_flight_bytes = lost(points).map(in_flight).max().and_then(wins_above);
    let Outcomes { tally, worst } = Outcomes::of(points);
    Some(Hot { claim, losses: tally.losses, worst, wins_from_in_flight_bytes })
}

/// Sends beside another program's hot set on the sender's CPU, by the bytes in flight: its walks, or
/// sends and walks together.
fn beside_hot_set<'a>(
    records: &[&'a Judged],
    taker: Taker,
    metric: &'static str,
) -> Vec<Point<'a>> {
    let is_victim = |_: &Judged, cell: &Cell| word(&cell.params, "form") == Some("victim");
    let asks: Asks<'_> = &|one| hint_of(one, taker.into(), metric);
    of_cells(records, &ExperimentKind::Retention, asks, &is_victim)
}

/// What hinted sends leave of a hot set on the sender's CPU.
pub(super) fn hot_set(records: &[&Judged], taker: Taker, sends: &Advice) -> Advice {
    let found = beside_hot_set(records, taker, WALKS);
    let about = About::BesideSends(sends.decision);
    let pays = Pays { topic: Topic::HotSetSends, about, least: Some(1.0) };
    let (advice, used) = pays.answer(&found);
    Advice { together: together(used), guest: guest(used), ..advice }
}
