//! Hints on sends: one choice for a machine, which every piece of advice about sends follows.

use super::pays::{Pays, name_kernel, say_together};
use super::{Advice, Decision, Target, Topic, Value};
use crate::judge::{Claim, Point, Question, cells, ids, outcomes, split};
use crate::lists::unique;
use crate::record::{Cache, Cell, ExperimentKind, Machine, Record, word};
use crate::stats::{EQUAL, THROUGHPUT, Verdict, WALKS};
use crate::units::Bytes;

pub(super) const COPY: &str = "copy";
const NT: &str = "nt";
pub(super) const ADAPTIVE: &str = "adaptive";

/// What is measured where the running kernel has no flag.
pub(super) const RUN_SWEEP: &str = "ntcopy bench unix --kernel um --sweep";
const HINTS: &str = "net.core.ntcopy";
const CACHE_BYTES: &str = "net.core.ntcopy_cache_bytes";

/// A loss of no more than this leaves is worth what hints win over all cells.
const CHEAP: f64 = 0.95;

/// What becomes of hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The mode of experiments that sends so.
    pub mode: &'static str,
    /// What a program sets.
    option: &'static str,
    /// What is set for all programs.
    sysctl: u64,
}

impl Choice {
    /// The kernel's rule decides.
    pub const RULE: Choice =
        Choice { mode: ADAPTIVE, option: "SO_NTCOPY = NTCOPY_SOCK_EVERY (2)", sysctl: 1 };
    /// They are obeyed.
    pub const OBEY: Choice =
        Choice { mode: NT, option: "SO_NTCOPY = NTCOPY_SOCK_OBEY (3)", sysctl: 2 };

    /// Obeyed hints, where these win over all cells and are better than the rule by more than what
    /// counts as equal, with the whole interval; and where the rule was not measured, so that what
    /// was can be told.
    #[must_use]
    pub fn from_records(records: &[&Record]) -> Choice {
        let gain = |mode, other| Claim::of(&rounds(records, "unix", mode, other));
        let Some(obeyed) = gain(NT, COPY) else { return Choice::RULE };
        let is_better = |beside: Claim| beside.all.ci.0 > *EQUAL.end();
        match gain(ADAPTIVE, COPY) {
            None => Choice::OBEY,
            Some(_) if obeyed.verdict != Verdict::Win => Choice::RULE,
            Some(_) if gain(NT, ADAPTIVE).is_some_and(is_better) => Choice::OBEY,
            Some(_) => Choice::RULE,
        }
    }

    fn sends(self, family: &str) -> String {
        match self {
            Choice::RULE => format!("Hinted sends ({family} sockets, by the rule)"),
            _ => format!("Obeyed hints ({family} sockets)"),
        }
    }
}

/// Rounds over sockets of a family: a mode by another, by the bytes in flight.
pub(super) fn rounds<'a>(
    records: &[&'a Record],
    family: &str,
    mode: &'a str,
    other: &'a str,
) -> Vec<Point<'a>> {
    let question = Question { mode, other, metric: THROUGHPUT };
    question.of_cells(records, &ExperimentKind::Unix, &|_, cell| is_round(cell, family))
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

/// Sends of each family, hinted as was chosen; unix sockets first.
pub(super) fn sends(records: &[&Record], choice: Choice) -> Vec<Advice> {
    let of_family = |family: &str| {
        let points = rounds(records, family, choice.mode, COPY);
        let is_told = family == "unix" || !points.is_empty();
        is_told.then(|| hinted((family, choice), (&points, 0), CHEAP))
    };
    families(records).into_iter().filter_map(of_family).collect()
}

/// What hinted sends of a family come to in these cells, of which those with least are told beside
/// the others.
pub(super) fn hinted(
    (family, choice): (&str, Choice),
    (points, beside): (&[Point<'_>], usize),
    least: f64,
) -> Advice {
    let pays = Pays {
        topic: Topic::SENDS,
        thing: &choice.sends(family),
        setting: &|from| {
            let option = choice.option;
            format!("{option} in programs with {from} or more in flight on {family} sockets")
        },
        leave: "SO_NTCOPY",
        least: Some(least),
        run: RUN_SWEEP,
    };
    let (mut advice, used) = pays.answer(points, beside);
    name_kernel(&mut advice, used);
    Advice { about: Some(format!("{family} sockets")), ..advice }
}

fn current(name: &str, value: Option<u64>) -> Option<String> {
    Some(match value {
        Some(value) => format!("{name} = {value}"),
        None => "this kernel has no such setting (ntcopy kernel, ntcopy module)".to_owned(),
    })
}

fn sysctl(name: &'static str, value: u64) -> (Option<String>, Option<Value>) {
    (Some(format!("sysctl -w {name}={value}")), Some(Value::Sysctl { name, value }))
}

/// `net.core.ntcopy`: what was said of sends over unix sockets, for the whole machine.
pub(super) fn setting(
    records: &[&Record],
    (choice, sends): (Choice, &Advice),
    target: &Target,
) -> Advice {
    let topic = Topic::HINTS;
    let by_rule = rounds(records, "unix", ADAPTIVE, COPY);
    let mut advice = if by_rule.is_empty() {
        let why = "Hinted sends were not measured by the rule on this machine.";
        Advice::no_evidence(topic, why, RUN_SWEEP)
    } else {
        Advice { topic, about: None, setting: Some(HINTS.to_owned()), ..sends.clone() }
    };
    if advice.decision == Decision::Leave {
        advice.setting = Some("hints (net.core.ntcopy = 0 ignores them)".to_owned());
    }
    if advice.decision == Decision::Set {
        let default = if choice == Choice::RULE { " (the default)" } else { "" };
        let (setting, value) = sysctl(HINTS, choice.sysctl);
        (advice.setting, advice.value) = (setting.map(|setting| setting + default), value);
        // None beside itself.
        let against_rule = rounds(records, "unix", choice.mode, ADAPTIVE);
        if let Some(gain) = Claim::of(&against_rule) {
            let over = cells(gain.cells);
            let words =
                format!(" Over {over} they are at {gain} of sends that the rule decides about.");
            advice.why.push_str(&words);
        }
    }
    advice.current = current(HINTS, target.sysctls[0]);
    advice
}

/// The number that would have come out best: hinted bytes are copied normally while no more than
/// these are in flight, and non-temporally where more are. From it on, obeyed hints gain most over
/// all cells together, as a sum of logarithms, so that one cell that something disturbed does not
/// decide alone; where they gain nowhere it is beyond all that was measured. None without cells.
pub(super) fn best_number(cells: &[Point<'_>]) -> Option<u64> {
    let most = cells.last()?.size.bytes;
    let (mut sum, mut best) = (0.0, (0.0, None));
    // Cells with as much go one way together.
    for alike in cells.chunk_by(|a, b| a.size == b.size).rev() {
        for point in alike.iter().rev() {
            sum += point.versus.ratio.ln();
        }
        if sum > best.0 {
            best = (sum, Some(alike[0].size.bytes));
        }
    }
    // Half way to what is copied normally, as the rule meets neither to the byte.
    let below = |bytes| split(cells, bytes).0.last().map_or(0, |point| point.size.bytes);
    let half_way = |bytes: u64| bytes.midpoint(below(bytes));
    Some(best.1.map_or((most + 1).next_power_of_two(), half_way))
}

pub(super) fn cache_bytes(records: &[&Record], choice: Choice, target: &Target) -> Advice {
    let cells = rounds(records, "unix", NT, COPY);
    let advice = match best_number(&cells) {
        Some(bytes) => {
            let set = target.sysctls[1].filter(|bytes| *bytes > 0);
            let now = set.unwrap_or_else(|| own_number(&target.machine));
            let mut together = beside_hot_set(records, NT, THROUGHPUT);
            together.retain(|point| (now..bytes).contains(&point.size.bytes));
            judge_number(bytes, (&cells, &together), choice)
        }
        None => {
            let why = "Obeyed hints and plain sends were not measured side by side.";
            Advice::no_evidence(Topic::CACHE_BYTES, why, RUN_SWEEP)
        }
    };
    Advice { current: current(CACHE_BYTES, target.sysctls[1]), ..advice }
}

/// The rule's number where none is set: a third of the CPU's part of level 2, on a Zen 4 of level 3.
fn own_number(machine: &Machine) -> u64 {
    let mut signature = machine.cpu_signature.rsplit('-').skip(1).map(str::parse::<u32>);
    let (model, family) = (signature.next(), signature.next());
    let is_zen4 = machine.cpu_signature.starts_with("AuthenticAMD")
        && matches!((family, model), (Some(Ok(0x19)), Some(Ok(0x10..=0x1f | 0x60..=0xaf))));
    let level = if is_zen4 { 3 } else { 2 };
    let cache = machine.caches.iter().find(|cache| cache.level == level);
    let part =
        |cache: &Cache| cache.size_bytes / u64::from(cache.shared_by_cpus.unwrap_or(1).max(1));
    cache.map_or(0, part) / 3
}

/// Whether the best number is worth to be set: where hints gain at all, and, where the rule was
/// measured with the number that it has, if the rule with this one would do better than that.
///
/// A larger number has sends with less in flight copied normally. Where sends and another program's
/// walks `together` gain by hints there, that decides, whatever sends alone gain by the number.
fn judge_number(
    bytes: u64,
    (cells_of, together): (&[Point<'_>], &[Point<'_>]),
    choice: Choice,
) -> Advice {
    let (other, gaining) = split(cells_of, bytes);
    let gain = Claim::of(gaining);
    let mut why = why_number(Bytes(bytes), gaining, other);
    // Where hints lose with this number, they may win with the kernel's own.
    let judged = |gain: Option<Claim>| match gain.map(|gain| gain.verdict) {
        Some(Verdict::Win) => Decision::Set,
        Some(Verdict::Unresolved) => Decision::Unresolved,
        _ => Decision::AsItIs,
    };
    let (mut decision, gain) = match (gaining, beside_rule(cells_of, bytes)) {
        ([], _) => (Decision::Leave, gain),
        (_, Some(_)) if choice == Choice::OBEY => {
            why.push_str(" Hints that are obeyed do not ask the rule.");
            (Decision::AsItIs, gain)
        }
        (_, Some(beside)) => {
            why.push_str(&format!(
                " The rule with this number would be at {beside} of the rule with its own."
            ));
            let is_as_good = EQUAL.contains(&beside.all.ratio) && beside.verdict == Verdict::Win;
            (if is_as_good { Decision::AsItIs } else { judged(Some(beside)) }, Some(beside))
        }
        (_, None) => (judged(gain), gain),
    };
    if decision == Decision::Set {
        let together = Claim::of(together);
        why.push_str(&what_decides(together));
        if together.is_some_and(|gain| gain.verdict == Verdict::Win) {
            decision = Decision::AsItIs;
        }
    }
    let (setting, value) = match decision {
        Decision::Set => sysctl(CACHE_BYTES, bytes),
        Decision::Leave => (Some(format!("{CACHE_BYTES}, and hints")), None),
        _ => (Some(CACHE_BYTES.to_owned()), None),
    };
    let records = ids(if gaining.is_empty() { other } else { gaining });
    Advice { setting, value, gain, records, ..Advice::bare(Topic::CACHE_BYTES, decision, why) }
}

/// Whether sends alone decide, by what sends and another program's walks together gain below the
/// number.
fn what_decides(together: Option<Claim>) -> String {
    let Some(gain) = together else {
        return " Sends alone decide: sends and another program's walks together were not measured \
                below that (ntcopy bench retention)."
            .to_owned();
    };
    let told = format!("{gain} over {}", cells(gain.cells));
    match gain.verdict {
        Verdict::Win => format!(
            " Sends and another program's walks together gain by hints below that, {told}, and \
             would not with this number: that decides, and the number stays."
        ),
        _ => format!(
            " Sends alone decide: sends and another program's walks together gain nothing by hints \
             below that, {told}."
        ),
    }
}

fn why_number(from: Bytes, gaining: &[Point<'_>], other: &[Point<'_>]) -> String {
    let [gain, below] = [gaining, other].map(outcomes);
    match (gaining, other) {
        ([], _) => format!(
            "Nowhere do obeyed hints gain: of {} {below}. With {from} all of these are copied normally.",
            cells(other.len())
        ),
        (_, []) => format!("Obeyed hints gain from the least that was measured on: {gain}."),
        _ => format!(
            "With {from} and more in flight obeyed hints gain most: {gain}. Below that: {below}."
        ),
    }
}

/// What a rule that meets the number would make of the cells, by what the rule made of them: nt
/// from the number on, copy below it, each by adaptive. None where the rule was not measured.
fn beside_rule(cells_of: &[Point<'_>], bytes: u64) -> Option<Claim> {
    let all: Vec<_> = cells_of
        .iter()
        .filter_map(|point| {
            let mode = if point.size.bytes >= bytes { NT } else { COPY };
            Question { mode, other: ADAPTIVE, metric: THROUGHPUT }.of(point.record, point.cell)
        })
        .collect();
    Claim::of(&all)
}

/// Sends beside another program's hot set on the sender's CPU, by the bytes in flight: its walks, or
/// sends and walks together.
fn beside_hot_set<'a>(
    records: &[&'a Record],
    mode: &'static str,
    metric: &'static str,
) -> Vec<Point<'a>> {
    let is_victim = |_: &Record, cell: &Cell| word(&cell.params, "form") == Some("victim");
    let question = Question { mode, other: COPY, metric };
    question.of_cells(records, &ExperimentKind::Retention, &is_victim)
}

/// What hinted sends leave of a hot set on the sender's CPU, hinted as was chosen for sends.
pub(super) fn hot_set(records: &[&Record], (choice, sends): (Choice, &Advice)) -> Advice {
    let beside = |mode| beside_hot_set(records, mode, WALKS);
    let is_open = sends.decision == Decision::NoEvidence;
    let mut choice = choice;
    let mut found = beside(choice.mode);
    if found.is_empty() && is_open {
        // Nothing was chosen for sends, so what was measured may be.
        choice = Choice::OBEY;
        found = beside(choice.mode);
    }
    let (mode, option) = (choice.mode, choice.option);
    let thing = format!("For a hot set on the sender's CPU, hinted sends ({option})");
    let pays = Pays {
        topic: Topic::HOT_SET_SENDS,
        thing: &thing,
        setting: &|_| match sends.decision {
            Decision::Set => format!("{option} as for the sends, for the hot set's sake too"),
            _ => format!("{option} in programs whose hot data matters more than the sends"),
        },
        leave: "SO_NTCOPY for a hot set's sake",
        least: Some(1.0),
        run: &format!("ntcopy bench retention --kernel um --modes {mode}"),
    };
    let (mut advice, used) = pays.answer(&found, 0);
    say_together(&mut advice, used);
    name_kernel(&mut advice, used);
    advice
}
