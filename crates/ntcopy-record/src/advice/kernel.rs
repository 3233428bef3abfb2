//! The kernel's settings: what becomes of hints, and the network devices' own copies.

use super::points::{Gain, Point, Question, cells, figure, ids, points, tally, wins_from};
use super::sends::{ADAPTIVE, COPY, NT, again, rounds};
use super::{Advice, Decision, Target, Topic, Value};
use crate::record::{ExperimentKind, Record};
use crate::stats::{THROUGHPUT, Verdict};
use crate::units::Bytes;

const RUN: [&str; 6] = ["ntcopy", "bench", "unix", "--kernel", "um", "--sweep"];
const HINTS: &str = "net.core.ntcopy";
const CACHE_BYTES: &str = "net.core.ntcopy_cache_bytes";

/// What measures the rule's number alone.
const CALIBRATE: [&str; 5] = ["ntcopy", "footprint", "calibrate", "--kernel", "um"];

fn current(name: &str, value: Option<u64>) -> Option<String> {
    Some(match value {
        Some(value) => format!("{name} = {value}"),
        None => "this kernel has no such setting (ntcopy kernel, ntcopy module)".to_owned(),
    })
}

fn sysctl(name: &str, value: u64) -> (Option<String>, Option<Value>) {
    (Some(format!("sysctl -w {name}={value}")), Some(Value::Sysctl(name.to_owned(), value)))
}

pub fn hints(records: &[&Record], target: &Target) -> Advice {
    let adaptive = rounds(records, "unix", ADAPTIVE, COPY);
    let mut advice = match Gain::of(&adaptive) {
        None => {
            let why = "Sends with and without the hint were not measured on this machine.";
            Advice::no_evidence(Topic::HintSysctl, why, &RUN)
        }
        Some(all) => obey(records)
            .or_else(|| decide(&adaptive, &all))
            .unwrap_or_else(|| ignore(&adaptive, all)),
    };
    advice.current = current(HINTS, target.sysctls[0]);
    advice
}

/// Obeying every hint, where that beats the rule in all cells together.
fn obey(records: &[&Record]) -> Option<Advice> {
    let against_copy = rounds(records, "unix", NT, COPY);
    let against_adaptive = rounds(records, "unix", NT, ADAPTIVE);
    let (by_copy, by_adaptive) = (Gain::of(&against_copy)?, Gain::of(&against_adaptive)?);
    if by_copy.verdict() != Verdict::Win || by_adaptive.verdict() != Verdict::Win {
        return None;
    }
    let used: Vec<&Point<'_>> = against_copy.iter().collect();
    let why = format!(
        "Over {} an obeyed hint is at {} of one that the rule decides about, and of plain sends: \
         {}.",
        cells(used.len()),
        figure(by_adaptive.ratio, by_adaptive.ci),
        tally(&used, "in flight"),
    );
    let (setting, value) = sysctl(HINTS, 2);
    Some(Advice {
        setting,
        value,
        gain: Some(by_copy),
        records: ids(&used),
        check: again(&used, NT),
        ..Advice::bare(Topic::HintSysctl, Decision::Set, why)
    })
}

/// Leaving it to the rule, where that wins from some number of bytes in flight on.
fn decide(adaptive: &[Point<'_>], all: &Gain) -> Option<Advice> {
    let from = wins_from(adaptive)?;
    let (above, below): (Vec<&Point<'_>>, Vec<&Point<'_>>) =
        adaptive.iter().partition(|point| point.size_bytes >= from);
    let mut why = format!(
        "By the rule hinted sends win in every cell from {} in flight on ({}).",
        Bytes(from),
        cells(above.len())
    );
    if !below.is_empty() {
        why.push_str(&format!(" Below that: {}.", tally(&below, "in flight")));
    }
    why.push_str(&format!(
        " Over all {} it is at {} of plain sends.",
        cells(all.cells),
        figure(all.ratio, all.ci)
    ));
    let (setting, value) = sysctl(HINTS, 1);
    Some(Advice {
        setting,
        value,
        gain: Gain::of(above.iter().copied()),
        records: ids(&above),
        check: again(&above, ADAPTIVE),
        ..Advice::bare(Topic::HintSysctl, Decision::Set, why)
    })
}

/// Hints that do not pay: off where they lose, as it is where they make no difference.
fn ignore(adaptive: &[Point<'_>], all: Gain) -> Advice {
    let used: Vec<&Point<'_>> = adaptive.iter().collect();
    let why = format!(
        "By the rule hinted sends are at {} of plain ones over {}: {}.",
        figure(all.ratio, all.ci),
        cells(all.cells),
        tally(&used, "in flight")
    );
    let decision = all.without_setting();
    let setting = match decision {
        Decision::Leave => "hints (net.core.ntcopy = 0 ignores them)",
        _ => "net.core.ntcopy",
    };
    Advice {
        setting: Some(setting.to_owned()),
        gain: Some(all),
        records: ids(&used),
        ..Advice::bare(Topic::HintSysctl, decision, why)
    }
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
fn number<'a>(records: &[&'a Record]) -> Option<(CacheBytes, Vec<Point<'a>>)> {
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
    number(&[record]).map(|(number, _)| number)
}

pub fn cache_bytes(records: &[&Record], target: &Target) -> Advice {
    let mut advice = by_the_rule(records);
    advice.current = current(CACHE_BYTES, target.sysctls[1]);
    advice
}

fn by_the_rule(records: &[&Record]) -> Advice {
    let topic = Topic::CacheBytesSysctl;
    let Some((CacheBytes { bytes, gains, gain }, cells_of)) = number(records) else {
        let why = "Obeyed hints and plain sends were not measured side by side.";
        return Advice::no_evidence(topic, why, &CALIBRATE);
    };
    let (gaining, other): (Vec<&Point<'_>>, Vec<&Point<'_>>) =
        cells_of.iter().partition(|point| point.size_bytes >= bytes);
    let from = Bytes(bytes);
    let why = match gains {
        Gains::Nowhere => format!(
            "Nowhere do obeyed hints gain: of {} {}. With {from} all of these are copied normally.",
            cells(other.len()),
            tally(&other, "in flight")
        ),
        Gains::From => format!(
            "With {from} and more in flight obeyed hints gain most: {}. Below that: {}.",
            tally(&gaining, "in flight"),
            tally(&other, "in flight")
        ),
        Gains::Everywhere => format!(
            "Obeyed hints gain from the least that was measured on: {}.",
            tally(&gaining, "in flight")
        ),
    };
    let is_won = gain.is_some_and(|gain| gain.verdict() == Verdict::Win);
    let (decision, (setting, value)) = match gains {
        Gains::Nowhere => (Decision::Leave, (Some(format!("{CACHE_BYTES}, and hints")), None)),
        _ if is_won => (Decision::Set, sysctl(CACHE_BYTES, bytes)),
        _ => {
            let decision = gain.map_or(Decision::AsItIs, |gain| gain.without_setting());
            (decision, (Some(CACHE_BYTES.to_owned()), None))
        }
    };
    let used = if gaining.is_empty() { &other } else { &gaining };
    Advice {
        setting,
        value,
        gain,
        records: ids(used),
        check: if decision == Decision::Set { again(used, NT) } else { None },
        ..Advice::bare(topic, decision, why)
    }
}

/// The published alternative: the network stack's own non-temporal copy, a device at a time.
pub fn nocache(records: &[&Record], target: &Target) -> Advice {
    let topic = Topic::NocacheCopy;
    let found = points(
        records,
        &Question {
            experiment: ExperimentKind::Net,
            mode: "nocache",
            other: COPY,
            metric: THROUGHPUT,
            size: "response_bytes",
            is_about: &|_, _| true,
        },
    );
    let device = match target.devices.as_slice() {
        [only] => only.as_str(),
        _ => "DEV",
    };
    let used: Vec<&Point<'_>> = found.iter().collect();
    let Some(gain) = Gain::of(&found) else {
        let why = "No record of experiment net with mode nocache.";
        let run = ["ntcopy", "bench", "net", "--veth", "--modes", "nocache"];
        return Advice::no_evidence(topic, why, &run);
    };
    let is_win = found.iter().all(|point| point.verdict() == Verdict::Win);
    let is_loss = found.iter().any(|point| point.verdict() == Verdict::Loss);
    let (decision, setting) = match (is_win, is_loss) {
        (true, _) => (Decision::Set, format!("ethtool -K {device} tx-nocache-copy on")),
        (_, true) => (Decision::Leave, format!("ethtool -K {device} tx-nocache-copy off")),
        _ => (gain.without_setting(), "tx-nocache-copy".to_owned()),
    };
    let why = format!(
        "Over {} tx-nocache-copy is at {} of plain copies: {}. It is a switch of the whole device, \
         so it has to win in every cell.",
        cells(used.len()),
        figure(gain.ratio, gain.ci),
        tally(&used, "a response")
    );
    Advice {
        setting: Some(setting),
        gain: Some(gain),
        records: ids(&used),
        ..Advice::bare(topic, decision, why)
    }
}
