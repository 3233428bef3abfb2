//! Hints on sends: one choice for a machine, which every piece of advice about sends follows.

use super::pays::{Pays, say_together};
use super::points::{Gain, Point, Question, cells, figure, points, tally, word};
use super::{Advice, Decision, Target, Topic, Value};
use crate::lists::unique;
use crate::record::{Cache, Cell, ExperimentKind, Machine, Record};
use crate::stats::{EQUAL, THROUGHPUT, Verdict, WALKS, versus};
use crate::units::Bytes;

pub(super) const COPY: &str = "copy";
const NT: &str = "nt";
pub(super) const ADAPTIVE: &str = "adaptive";

/// What is measured where the running kernel has no flag.
pub(super) const RUN_SWEEP: [&str; 6] = ["ntcopy", "bench", "unix", "--kernel", "um", "--sweep"];
/// What measures the rule's number alone.
const CALIBRATE: [&str; 5] = ["ntcopy", "footprint", "calibrate", "--kernel", "um"];
const HINTS: &str = "net.core.ntcopy";
const CACHE_BYTES: &str = "net.core.ntcopy_cache_bytes";

/// A loss of no more than this leaves is worth what hints win over all cells.
const CHEAP: f64 = 0.95;

/// What becomes of hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// The kernel's rule decides.
    Rule,
    /// They are obeyed.
    Obey,
}

impl Choice {
    /// Obeyed hints, where these win over all cells and are better than the rule by more than what
    /// counts as equal, with the whole interval; and where the rule was not measured, so that what
    /// was can be told.
    #[must_use]
    pub fn from_records(records: &[&Record]) -> Choice {
        let gain = |mode, other| Gain::of(&rounds(records, "unix", mode, other));
        let Some(obeyed) = gain(NT, COPY) else { return Choice::Rule };
        let is_better = |beside: Gain| beside.ci.0 > *EQUAL.end();
        match gain(ADAPTIVE, COPY) {
            None => Choice::Obey,
            Some(_) if obeyed.verdict() != Verdict::Win => Choice::Rule,
            Some(_) if gain(NT, ADAPTIVE).is_some_and(is_better) => Choice::Obey,
            Some(_) => Choice::Rule,
        }
    }

    /// The mode of experiments that sends so.
    #[must_use]
    pub fn mode(self) -> &'static str {
        match self {
            Choice::Rule => ADAPTIVE,
            Choice::Obey => NT,
        }
    }

    pub(super) fn option(self) -> &'static str {
        match self {
            Choice::Rule => "SO_NTCOPY = NTCOPY_SOCK_EVERY (2)",
            Choice::Obey => "SO_NTCOPY = NTCOPY_SOCK_OBEY (3)",
        }
    }

    fn sends(self, family: &str) -> String {
        match self {
            Choice::Rule => format!("Hinted sends ({family} sockets, by the rule)"),
            Choice::Obey => format!("Obeyed hints ({family} sockets)"),
        }
    }
}

/// Rounds over sockets of a family: a mode by another, by the bytes in flight.
pub(super) fn rounds<'a>(
    records: &[&'a Record],
    family: &str,
    mode: &str,
    other: &str,
) -> Vec<Point<'a>> {
    let question = Question {
        experiment: ExperimentKind::Unix,
        mode,
        other,
        metric: THROUGHPUT,
        size: "in_flight_bytes",
        is_about: &|_, cell| {
            // What small pieces come to says nothing of whole objects.
            word(&cell.params, "form") == Some("rounds")
                && family_of(cell) == family
                && !cell.params.contains_key("pieces")
        },
    };
    points(records, &question)
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
        let points = rounds(records, family, choice.mode(), COPY);
        let is_told = family == "unix" || !points.is_empty();
        is_told.then(|| hinted((family, choice), (&points, &[]), CHEAP))
    };
    families(records).into_iter().filter_map(of_family).collect()
}

/// What hinted sends of a family come to in these cells; beside them those with less in flight.
pub(super) fn hinted(
    (family, choice): (&str, Choice),
    (points, smaller): (&[Point<'_>], &[Point<'_>]),
    least: f64,
) -> Advice {
    let (thing, option) = (choice.sends(family), choice.option());
    let pays = Pays {
        topic: Topic::Sends,
        points,
        smaller,
        thing: &thing,
        unit: "in flight",
        setting: &|from| {
            format!(
                "{option} in programs with {} or more in flight on {family} sockets",
                Bytes(from)
            )
        },
        leave: "SO_NTCOPY",
        least: Some(least),
        run: &RUN_SWEEP,
    };
    let (mut advice, used) = pays.answer();
    name_kernel(&mut advice, &used);
    advice.about = Some(format!("{family} sockets"));
    advice
}

/// Says which kernel the figures are of: not always the one that runs.
pub(super) fn name_kernel(advice: &mut Advice, used: &[&Point<'_>]) {
    if let Some(point) = used.first() {
        let machine = &point.record.machine;
        if machine.kernel_kind != "host" {
            advice.why.push_str(&format!(
                " Measured in {} ({}), whose system calls cost more than a running kernel's.",
                machine.kernel_release, machine.kernel_kind
            ));
        }
    }
}

fn current(name: &str, value: Option<u64>) -> Option<String> {
    Some(match value {
        Some(value) => format!("{name} = {value}"),
        None => "this kernel has no such setting (ntcopy kernel, ntcopy module)".to_owned(),
    })
}

fn sysctl(name: &str, value: u64) -> (Option<String>, Option<Value>) {
    (Some(format!("sysctl -w {name}={value}")), Some(Value::Sysctl(name.to_owned(), value)))
}

/// `net.core.ntcopy`: what was said of sends over unix sockets, for the whole machine.
pub(super) fn setting(
    records: &[&Record],
    (choice, sends): (Choice, &Advice),
    target: &Target,
) -> Advice {
    let topic = Topic::HintSysctl;
    let by_rule = rounds(records, "unix", ADAPTIVE, COPY);
    let mut advice = if by_rule.is_empty() {
        let why = "Hinted sends were not measured by the rule on this machine.";
        Advice::no_evidence(topic, why, &RUN_SWEEP)
    } else {
        Advice { topic, about: None, setting: Some(HINTS.to_owned()), ..sends.clone() }
    };
    match (advice.decision, choice) {
        (Decision::Set, Choice::Rule) => {
            (advice.setting, advice.value) = sysctl(HINTS, 1);
            advice.setting = advice.setting.map(|setting| format!("{setting} (the default)"));
        }
        (Decision::Set, Choice::Obey) => {
            (advice.setting, advice.value) = sysctl(HINTS, 2);
            let against_rule = rounds(records, "unix", NT, ADAPTIVE);
            advice.why.push_str(&Gain::of(&against_rule).map_or(String::new(), |gain| {
                format!(
                    " Over {} they are at {} of sends that the rule decides about.",
                    cells(gain.cells),
                    figure(gain.ratio, gain.ci)
                )
            }));
        }
        (Decision::Leave, _) => {
            advice.setting = Some("hints (net.core.ntcopy = 0 ignores them)".to_owned());
        }
        _ => {}
    }
    advice.current = current(HINTS, target.sysctls[0]);
    advice
}

/// The rule's number: hinted bytes are copied normally while no more than these are in flight, and
/// non-temporally where more are.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheBytes {
    /// `net.core.ntcopy_cache_bytes`.
    pub bytes: u64,
    /// Where obeyed hints gain, of what was measured.
    pub gains: Gains,
    pub gain: Option<Gain>,
}

/// Where obeyed hints gain over plain sends, by what is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gains {
    /// They win from the number on, and not below it.
    From,
    /// They win from the least that was measured on; below it is not known.
    Everywhere,
    /// Nowhere: the number is beyond all that was measured.
    Nowhere,
}

/// The number that would have come out best: from it on, obeyed hints gain most over all cells
/// together, as a sum of logarithms, so that one cell that something disturbed does not decide
/// alone. None without cells.
fn best_number<'a>(records: &[&'a Record]) -> Option<(CacheBytes, Vec<Point<'a>>)> {
    let mut cells = rounds(records, "unix", NT, COPY);
    cells.sort_by_key(|point| point.size_bytes);
    let (least, most) = (cells.first()?.size_bytes, cells.last()?.size_bytes);
    let (mut sum, mut best) = (0.0, (0.0, None));
    for (at, point) in cells.iter().enumerate().rev() {
        sum += point.versus.ratio.ln();
        // Cells with as much go one way together.
        let is_first = at == 0 || cells[at - 1].size_bytes < point.size_bytes;
        if is_first && sum > best.0 {
            best = (sum, Some(point.size_bytes));
        }
    }
    // Half way to what is copied normally, as the rule meets neither to the byte.
    let below = |bytes| cells.iter().map(|point| point.size_bytes).rfind(|size| *size < bytes);
    let (bytes, gains) = match best.1 {
        Some(bytes) if bytes == least => (bytes / 2, Gains::Everywhere),
        Some(bytes) => (bytes.midpoint(below(bytes).unwrap_or(0)), Gains::From),
        None => ((most + 1).next_power_of_two(), Gains::Nowhere),
    };
    let gaining = cells.iter().filter(|point| point.size_bytes >= bytes);
    Some((CacheBytes { bytes, gains, gain: Gain::of(gaining) }, cells))
}

/// The rule's number by a record of plain and obeyed sends in rounds; none if it is not one.
#[must_use]
pub fn cache_bytes_by(record: &Record) -> Option<CacheBytes> {
    best_number(&[record]).map(|(number, _)| number)
}

pub(super) fn cache_bytes(records: &[&Record], choice: Choice, target: &Target) -> Advice {
    let mut advice = match best_number(records) {
        Some((number, cells_of)) => {
            let set = target.sysctls[1].filter(|bytes| *bytes > 0);
            let now = set.unwrap_or_else(|| own_number(&target.machine));
            let mut together = beside_hot_set(records, NT, THROUGHPUT);
            together.retain(|point| (now..number.bytes).contains(&point.size_bytes));
            judge_number(&number, (&cells_of, &together), choice)
        }
        None => {
            let why = "Obeyed hints and plain sends were not measured side by side.";
            Advice::no_evidence(Topic::CacheBytesSysctl, why, &CALIBRATE)
        }
    };
    advice.current = current(CACHE_BYTES, target.sysctls[1]);
    advice
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
    number: &CacheBytes,
    (cells_of, together): (&[Point<'_>], &[Point<'_>]),
    choice: Choice,
) -> Advice {
    let CacheBytes { bytes, gains, gain } = *number;
    let (gaining, other): (Vec<&Point<'_>>, Vec<&Point<'_>>) =
        cells_of.iter().partition(|point| point.size_bytes >= bytes);
    let used = if gaining.is_empty() { &other } else { &gaining };
    let beside_rule = beside_rule(cells_of, bytes);
    let mut why = why_number(number, &gaining, &other);
    let wins = |gain: Option<Gain>| gain.is_some_and(|gain| gain.verdict() == Verdict::Win);
    let without = |gain: Option<Gain>| gain.map_or(Decision::AsItIs, |gain| gain.without_setting());
    let (decision, gain) = match (gains, beside_rule) {
        (Gains::Nowhere, _) => (Decision::Leave, gain),
        (_, Some(_)) if choice == Choice::Obey => {
            why.push_str(" Hints that are obeyed do not ask the rule.");
            (Decision::AsItIs, gain)
        }
        (_, Some(beside)) => {
            why.push_str(&format!(
                " The rule with this number would be at {} of the rule with its own.",
                figure(beside.ratio, beside.ci)
            ));
            let is_worth_it = wins(Some(beside)) && !EQUAL.contains(&beside.ratio);
            (if is_worth_it { Decision::Set } else { without(Some(beside)) }, Some(beside))
        }
        (_, None) if wins(gain) => (Decision::Set, gain),
        (_, None) => (without(gain), gain),
    };
    let together = Gain::of(together);
    let decision = if decision == Decision::Set {
        why.push_str(&what_decides(together));
        if wins(together) { Decision::AsItIs } else { Decision::Set }
    } else {
        decision
    };
    let (setting, value) = match decision {
        Decision::Set => sysctl(CACHE_BYTES, bytes),
        Decision::Leave => (Some(format!("{CACHE_BYTES}, and hints")), None),
        _ => (Some(CACHE_BYTES.to_owned()), None),
    };
    // What loses beside its own number is left off, but no hint is.
    let decision = match (decision, gains) {
        (Decision::Leave, Gains::From | Gains::Everywhere) => Decision::AsItIs,
        (decision, _) => decision,
    };
    Advice {
        setting,
        value,
        gain,
        records: super::points::ids(used),
        ..Advice::bare(Topic::CacheBytesSysctl, decision, why)
    }
}

/// Whether sends alone decide, by what sends and another program's walks together gain below the
/// number.
fn what_decides(together: Option<Gain>) -> String {
    let Some(gain) = together else {
        return " Sends alone decide: sends and another program's walks together were not measured \
                below that (ntcopy bench retention)."
            .to_owned();
    };
    let told = format!("{} over {}", figure(gain.ratio, gain.ci), cells(gain.cells));
    match gain.verdict() {
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

fn why_number(number: &CacheBytes, gaining: &[&Point<'_>], other: &[&Point<'_>]) -> String {
    let from = Bytes(number.bytes);
    match number.gains {
        Gains::Nowhere => format!(
            "Nowhere do obeyed hints gain: of {} {}. With {from} all of these are copied normally.",
            cells(other.len()),
            tally(other, "in flight")
        ),
        Gains::From => format!(
            "With {from} and more in flight obeyed hints gain most: {}. Below that: {}.",
            tally(gaining, "in flight"),
            tally(other, "in flight")
        ),
        Gains::Everywhere => format!(
            "Obeyed hints gain from the least that was measured on: {}.",
            tally(gaining, "in flight")
        ),
    }
}

/// What a rule that meets the number would make of the cells, by what the rule made of them: nt
/// from the number on, copy below it, each by adaptive. None where the rule was not measured.
fn beside_rule(cells_of: &[Point<'_>], bytes: u64) -> Option<Gain> {
    let all: Vec<_> = cells_of
        .iter()
        .filter_map(|point| {
            let mode = if point.size_bytes >= bytes { NT } else { COPY };
            versus(point.record, point.cell.cell, mode, ADAPTIVE, THROUGHPUT)
        })
        .collect();
    Gain::over(&all)
}

/// Sends beside another program's hot set on the sender's CPU, by the bytes in flight: its walks, or
/// sends and walks together.
fn beside_hot_set<'a>(records: &[&'a Record], mode: &str, metric: &'static str) -> Vec<Point<'a>> {
    let question = Question {
        experiment: ExperimentKind::Retention,
        mode,
        other: COPY,
        metric,
        size: "in_flight_bytes",
        is_about: &|_, cell| word(&cell.params, "form") == Some("victim"),
    };
    points(records, &question)
}

/// What hinted sends leave of a hot set on the sender's CPU, hinted as was chosen for sends.
pub(super) fn hot_set(records: &[&Record], (choice, sends): (Choice, &Advice)) -> Advice {
    let beside = |mode| beside_hot_set(records, mode, WALKS);
    let is_open = sends.decision == Decision::NoEvidence;
    let mut choice = choice;
    let mut found = beside(choice.mode());
    if found.is_empty() && is_open {
        // Nothing was chosen for sends, so what was measured may be.
        choice = Choice::Obey;
        found = beside(choice.mode());
    }
    let (mode, option) = (choice.mode(), choice.option());
    let thing = format!("For a hot set on the sender's CPU, hinted sends ({option})");
    let run = ["ntcopy", "bench", "retention", "--kernel", "um", "--modes", mode];
    let pays = Pays {
        topic: Topic::HotSetSends,
        points: &found,
        smaller: &[],
        thing: &thing,
        unit: "in flight",
        setting: &|_| match sends.decision {
            Decision::Set => format!("{option} as for the sends, for the hot set's sake too"),
            _ => format!("{option} in programs whose hot data matters more than the sends"),
        },
        leave: "SO_NTCOPY for a hot set's sake",
        least: Some(1.0),
        run: &run,
    };
    let (mut advice, used) = pays.answer();
    say_together(&mut advice, &used, (mode, COPY), "sends");
    name_kernel(&mut advice, &used);
    advice
}
