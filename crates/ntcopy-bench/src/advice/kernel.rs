//! The kernel's settings: what becomes of hints, and the network devices' own copies.

use super::points::{Gain, Point, Question, cells, figure, ids, points, tally, wins_from};
use super::sends::{ADAPTIVE, COPY, NT, again, large_sends, rounds};
use super::{Advice, Decision, Target, Topic, Value};
use crate::record::Record;
use crate::stats::{THROUGHPUT, Verdict, Versus, versus};
use crate::units::Bytes;

const RUN: [&str; 6] = ["ntcopy", "bench", "unix", "--kernel", "um", "--sweep"];
const HINTS: &str = "net.core.ntcopy";
const MIN_BYTES: &str = "net.core.ntcopy_min_bytes";
const CACHE_BYTES: &str = "net.core.ntcopy_cache_bytes";

/// A fixed size has to gain so much over what the kernel learns by itself: the goal of that
/// decision is to stay within 3 % of the better choice.
const WORTH_FIXING: f64 = 1.03;

/// What the running kernel has.
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

/// Obeying every hint, where that beats the kernel's own decision in all cells together.
fn obey(records: &[&Record]) -> Option<Advice> {
    let against_copy = rounds(records, "unix", NT, COPY);
    let against_adaptive = rounds(records, "unix", NT, ADAPTIVE);
    let (by_copy, by_adaptive) = (Gain::of(&against_copy)?, Gain::of(&against_adaptive)?);
    if by_copy.verdict() != Verdict::Win || by_adaptive.verdict() != Verdict::Win {
        return None;
    }
    let used: Vec<&Point<'_>> = against_copy.iter().collect();
    let why = format!(
        "Over {} an obeyed hint is at {} of what the kernel decides by itself, and of plain sends: \
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

/// Leaving it to the kernel, where that wins from some number of bytes in flight on.
fn decide(adaptive: &[Point<'_>], all: &Gain) -> Option<Advice> {
    let from = wins_from(adaptive)?;
    let (above, below): (Vec<&Point<'_>>, Vec<&Point<'_>>) =
        adaptive.iter().partition(|point| point.size_bytes >= from);
    let mut why = format!(
        "Where the kernel decides, hinted sends win in every cell from {} in flight on ({}).",
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
        "Where the kernel decides, hinted sends are at {} of plain ones over {}: {}.",
        figure(all.ratio, all.ci),
        cells(all.cells),
        tally(&used, "in flight")
    );
    let (decision, setting) = match all.verdict() {
        Verdict::Loss => (Decision::Leave, "hints (net.core.ntcopy = 0 ignores them)"),
        _ => (Decision::AsItIs, "net.core.ntcopy"),
    };
    Advice {
        setting: Some(setting.to_owned()),
        gain: Some(all),
        records: ids(&used),
        ..Advice::bare(Topic::HintSysctl, decision, why)
    }
}

pub fn min_bytes(records: &[&Record], target: &Target) -> Advice {
    let mut advice = smallest(records);
    advice.current = current(MIN_BYTES, target.sysctls[1]);
    advice
}

/// By the size of a send, where enough is in flight for hints to pay at all.
fn smallest(records: &[&Record]) -> Advice {
    let topic = Topic::MinBytesSysctl;
    let sockets = ["--sockets", "2048", "--object", "4KiB,16KiB,64KiB", "--modes", "adaptive"];
    let command: Vec<&str> =
        ["ntcopy", "bench", "unix", "--kernel", "um"].into_iter().chain(sockets).collect();
    let Some(found) = large_sends(records) else {
        let why = "There is no number of bytes in flight from which on hinted sends win: which of \
                   them are too small cannot be told.";
        return Advice::no_evidence(topic, why, &RUN);
    };
    let (from, winning) = (Bytes(found.in_flight_bytes), Bytes(found.send_bytes));
    let (large, small): (Vec<&Point<'_>>, Vec<&Point<'_>>) =
        (found.large.iter().collect(), found.small.iter().collect());
    if small.is_empty() {
        let why = format!(
            "With {from} or more in flight sends of {winning} and more win; smaller ones were not \
             measured there. Leave it as it is."
        );
        return Advice::no_evidence(topic, why, &command);
    }
    let why = format!(
        "With {from} or more in flight hinted sends win in every cell from {winning} a send on \
         ({}); of smaller ones {}.",
        cells(large.len()),
        tally(&small, "a send")
    );
    let (setting, value) = sysctl(MIN_BYTES, found.send_bytes);
    Advice {
        setting,
        value,
        gain: Gain::of(large.iter().copied()),
        records: ids(&large),
        ..Advice::bare(topic, Decision::Set, why)
    }
}

pub fn cache_bytes(records: &[&Record], target: &Target) -> Advice {
    let mut advice = fixed(records);
    advice.current = current(CACHE_BYTES, target.sysctls[2]);
    advice
}

/// A cell, the working set that the kernel's rule would see in it, and what either choice comes to
/// against its own decision.
struct Choice<'a> {
    working_set_bytes: u64,
    copy: Versus,
    nt: Versus,
    nt_by_copy: Versus,
    point: Point<'a>,
}

/// With a fixed size the kernel copies non-temporally where both working sets together are more
/// than half of it. Which size would have come out best over the cells that were measured, and
/// would it have beaten what the kernel decided?
fn fixed(records: &[&Record]) -> Advice {
    let topic = Topic::CacheBytesSysctl;
    let choices: Vec<Choice<'_>> =
        rounds(records, "unix", NT, ADAPTIVE).into_iter().filter_map(choice).collect();
    let mut limits: Vec<u64> = choices.iter().map(|choice| choice.working_set_bytes).collect();
    limits.sort_unstable();
    limits.dedup();
    let log = |limit: u64| -> f64 { choices.iter().map(|one| one.by(limit).ratio.ln()).sum() };
    let best = limits.into_iter().max_by(|a, b| log(*a).total_cmp(&log(*b)));
    let gain = best.and_then(|limit| {
        Gain::of_all(&choices.iter().map(|one| one.by(limit)).collect::<Vec<&Versus>>())
    });
    let (Some(limit), Some(gain)) = (best, gain) else {
        let why = "Obeyed hints and the kernel's decision were not measured side by side.";
        return Advice::no_evidence(topic, why, &RUN);
    };
    let points: Vec<&Point<'_>> = choices.iter().map(|choice| &choice.point).collect();
    let bytes = 2 * limit;
    let why = format!(
        "Over {} the best fixed size, {}, would come to {} of what the kernel decides by itself, \
         chosen after the fact.",
        cells(choices.len()),
        Bytes(bytes),
        figure(gain.ratio, gain.ci),
    );
    let beyond = choices.iter().filter(|one| one.working_set_bytes > limit);
    let beyond = Gain::of_all(&beyond.map(|one| &one.nt_by_copy).collect::<Vec<&Versus>>());
    // Where what is beyond the size gains nothing, it is hints that do not pay, not the decision.
    let is_won = beyond.is_some_and(|gain| gain.verdict() == Verdict::Win);
    let (decision, setting, value) = if is_won && gain.ci.0 > WORTH_FIXING {
        let (setting, value) = sysctl(CACHE_BYTES, bytes);
        (Decision::Set, setting, value)
    } else {
        (
            Decision::Leave,
            Some("a fixed net.core.ntcopy_cache_bytes (0: the kernel learns)".into()),
            None,
        )
    };
    Advice {
        setting,
        value,
        gain: Some(gain),
        records: ids(&points),
        ..Advice::bare(topic, decision, why)
    }
}

fn choice(point: Point<'_>) -> Option<Choice<'_>> {
    let working_set_bytes = point.size_bytes + point.number("dataset_bytes")?;
    let of = |mode, other| versus(point.record, point.cell.cell, mode, other, THROUGHPUT);
    let (copy, nt_by_copy) = (of(COPY, ADAPTIVE)?, of(NT, COPY)?);
    Some(Choice { working_set_bytes, copy, nt: point.versus.clone(), nt_by_copy, point })
}

impl Choice<'_> {
    /// What the rule would have come to in this cell.
    fn by(&self, limit_bytes: u64) -> &Versus {
        if self.working_set_bytes > limit_bytes { &self.nt } else { &self.copy }
    }
}

/// The published alternative: the network stack's own non-temporal copy, a device at a time.
pub fn nocache(records: &[&Record], target: &Target) -> Advice {
    let topic = Topic::NocacheCopy;
    let found = points(
        records,
        &Question {
            experiment: "net",
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
        _ => (Decision::AsItIs, "tx-nocache-copy".to_owned()),
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
