//! What a piece of advice says, in words.

use ntcopy_judge::Ratio;
use ntcopy_judge::advice::{About, Advice, Decision, Guest, Measure, Now, Reason, Together, Topic};
use ntcopy_judge::claims::{Claim, Outcomes, Parts, Worst};
use ntcopy_judge::modes::MOVNTI;
use ntcopy_judge::stats::Verdict;
use ntcopy_record::units::{Bytes, count};

use super::topics::{about, tunable, words};
use crate::text::{range, tally};

/// Sends out of a source that is in no cache.
const OUT_OF_COLD: &str = "Out of more data than the caches hold";

/// What to type or write, if something is to be set; else what to leave off.
pub fn setting(advice: &Advice) -> Option<String> {
    if matches!(advice.decision, Decision::NoEvidence | Decision::NotHere) {
        return None;
    }
    let topic = words(advice.topic);
    let set = advice.from_bytes.map(|bytes| (topic.set)(advice, Bytes(bytes)));
    Some(set.unwrap_or_else(|| topic.left.to_owned()))
}

/// What it holds now, if known.
pub fn now(advice: &Advice) -> Option<String> {
    Some(match advice.now.as_ref()? {
        Now::Threshold(bytes) => {
            format!("{}={bytes} ({})", tunable(advice.topic)?, Bytes(*bytes))
        }
        Now::NoProfile => {
            "by CPUID: there is no profile of this machine (ntcopy footprint calibrate)".to_owned()
        }
        Now::Profile { profile, from_bytes } => {
            let from =
                from_bytes.map_or("never".to_owned(), |from| format!("from {} on", Bytes(from)));
            format!("non-temporal {from}, by the profile of {} ({})", profile.date, profile.place)
        }
    })
}

/// What pays or does not.
fn thing(advice: &Advice) -> String {
    let thing = words(advice.topic).thing;
    match &advice.about {
        About::Sockets(family) => {
            format!("{thing} over {family} sockets out of more data than the caches hold")
        }
        About::Stack(stack) => format!("{thing} ({stack})"),
        About::Mode(MOVNTI) => "Copies by MOVNTI into the same buffer again and again".to_owned(),
        About::Whole | About::Mode(_) | About::BesideSends(_) => thing.to_owned(),
    }
}

/// Why, in a sentence or two.
pub fn why(advice: &Advice) -> String {
    let is_set_already =
        advice.decision == Decision::AsItIs && matches!(advice.reason, Reason::WinsFrom { .. });
    let already = is_set_already.then(|| "That is how it is set already.".to_owned());
    let unfit = advice.alike.filter(Ratio::differs).map(|alike| {
        format!(
            "The machine is not fit to tell: plain sends are at {alike} of plain ones of other turns."
        )
    });
    let together = advice.together.map(|Together { whole, tail }| {
        format!(
            "The figure is the other program's speed, at its 99th percentile {tail}; sends and that \
             program together come to {whole}."
        )
    });
    let guest = advice.guest.as_ref().map(|Guest { release, kind }| {
        format!(
            "Measured in {release} ({kind}), whose system calls cost more than a running kernel's."
        )
    });
    let more = [already, unfit, together, guest].into_iter().flatten();
    std::iter::once(reason(advice)).chain(more).collect::<Vec<String>>().join(" ")
}

fn reason(advice: &Advice) -> String {
    match &advice.reason {
        Reason::NotMeasured => {
            format!("{}: nothing was measured on this machine.", thing(advice))
        }
        Reason::NoTunable { libc } => format!(
            "{libc} has no such tunable: glibc has it for memcpy since 2.29, and for memset since 2.40."
        ),
        Reason::ThresholdUnknown { libc } => {
            let memory = if advice.topic == Topic::MemsetThreshold { "memset" } else { "memcpy" };
            format!("{libc} does not tell from which size its {memory} is.")
        }
        Reason::ThresholdWithinLevel2 { libc, bytes } => format!(
            "{libc}'s own threshold, {}, lies within the level-2 cache: nothing lower is worth trying.",
            Bytes(*bytes)
        ),
        Reason::NothingInFlight => format!(
            "Nothing was in flight on {} in that time: it sent nothing, or what it sent was read at \
             once. A hint gains nothing there.",
            about(advice).unwrap_or_default()
        ),
        Reason::NoneLikeIt { least_bytes, most_bytes } => {
            let mut why = format!(
                "No record of this machine has hinted sends on {} with about as much in flight.",
                about(advice).unwrap_or_default()
            );
            if let (Some(least), Some(most)) = (least_bytes, most_bytes) {
                let (least, most) = (Bytes(*least), Bytes(*most));
                why.push_str(&format!(" Those that there are have {least} to {most}."));
            }
            why
        }
        Reason::Lengths { from_bytes, below, above, .. } => {
            let of = cells(above.tally.total());
            let above = outcomes(above);
            let below =
                below.as_ref().map(|below| format!(" Among shorter ones {}.", outcomes(below)));
            let said = match from_bytes {
                Some(from) => {
                    let from = Bytes(*from);
                    format!("{OUT_OF_COLD}, of {of} with hinted sends of {from} and more {above}.")
                }
                None => format!("{OUT_OF_COLD} even the longest sends lose: of {of} {above}."),
            };
            said + &below.unwrap_or_default()
        }
        Reason::WinsFrom { from, below } => {
            let gain = advice.gain.as_ref().map_or_else(String::new, in_brackets);
            let below = below.as_ref().map_or_else(
                || "Nothing smaller was measured.".to_owned(),
                |below| format!("Below that: {}.", outcomes(below)),
            );
            format!("{} win in every cell from {from} on{gain}. {below}", thing(advice))
        }
        Reason::OverAll(all) => {
            let of = cells(all.tally.total());
            format!("{} {}: of {of} {}.", thing(advice), over_all(advice, all), outcomes(all))
        }
        Reason::Waits { half, tail } => format!(
            "{}, relative to plain sends of the same kernel: {half} at the median, {tail} at the 99th \
             percentile, of {}.",
            thing(advice),
            cells(half.cells)
        ),
    }
}

/// What cells come to of which not every one wins from some size on.
fn over_all(advice: &Advice, all: &Outcomes) -> &'static str {
    let wins = advice.gain.is_some_and(|gain| gain.verdict == Verdict::Win);
    match advice.decision {
        Decision::Set => "win over all cells together",
        Decision::Leave => "do not pay",
        Decision::AsItIs if all.tally.losses > 0 => {
            "win and lose, and at no size in every cell from there on"
        }
        Decision::AsItIs if wins => {
            "win over all cells, and at no size in every cell from there on"
        }
        Decision::AsItIs => "make no difference",
        _ => "are unresolved",
    }
}

/// Which cells lose, and where their bytes come from; of sends alone.
pub fn costs(advice: &Advice) -> Option<String> {
    let Reason::Lengths { all, .. } = &advice.reason else { return None };
    let losses = losses(all.tally.total(), all.tally.losses, all.worst);
    let hot = advice.hot.map(|hot| {
        let losses = self::losses(hot.claim.cells, hot.losses, hot.worst);
        format!(" The same few bytes again and again: {losses}")
    });
    Some(format!("{OUT_OF_COLD}: {losses}{}", hot.unwrap_or_default()))
}

/// How points came out: `3 win, 1 loses (worst 0.89x (0.82-0.91) at 48 MiB in flight)`.
fn outcomes(outcomes: &Outcomes) -> String {
    let worst = outcomes.worst.map_or_else(String::new, |one| format!(" (worst {})", worst(one)));
    let [loses, lose] = ["loses", "lose"].map(|word| format!("{word}{worst}"));
    let words = [
        ("wins", "win"),
        (&loses, &lose),
        ("makes no difference", "make no difference"),
        ("is unresolved", "are unresolved"),
    ];
    tally(&outcomes.tally, words)
}

/// How many of some cells lose, and the worst of them: `1 of 12 cells loses, 0.89x (0.82-0.91) at
/// 48 MiB in flight.`
fn losses(all: usize, lost: usize, most: Option<Worst>) -> String {
    let all = cells(all);
    match most.map(worst) {
        None => format!("none of {all} loses."),
        Some(worst) if lost == 1 => format!("1 of {all} loses, {worst}."),
        Some(worst) => format!("{lost} of {all} lose, the worst {worst}."),
    }
}

/// `0.89x (0.82-0.91) at 48 MiB in flight`
fn worst(Worst { result, size }: Worst) -> String {
    format!("{result} at {size}")
}

/// ` (3 cells, 1.12x to 1.42x)`
fn in_brackets(gain: &Claim) -> String {
    let by = if gain.cells == 1 { gain.to_string() } else { range(gain) };
    format!(" ({}, {by})", cells(gain.cells))
}

/// `patches alone 1.05x (1.02-1.09) in 4 cells; …`
pub fn parts(Parts { patches, hint, at_most }: &Parts) -> String {
    let told = |claim: &Option<Claim>| match claim {
        Some(claim) => format!("{claim} in {}", cells(claim.cells)),
        None => "not measured".to_owned(),
    };
    format!(
        "patches alone {}; the hint on top {}; sends that copy nothing {}",
        told(patches),
        told(hint),
        told(at_most)
    )
}

fn cells(number: usize) -> String {
    count(number, "cell")
}

/// The command that would give evidence, as its words.
pub fn measure(advice: &Advice) -> Option<Vec<String>> {
    let usual = words(advice.topic).measure;
    let command = match (advice.measure.as_ref()?, &advice.about) {
        (Measure::Rounds { sockets, object_bytes }, About::Sockets(family)) => format!(
            "ntcopy bench unix --kernel um --family {family} --modes hinted --sockets {sockets} --object \
             {}",
            Bytes(*object_bytes).argument()
        ),
        (Measure::Sizes(sizes), _) => {
            let sizes: Vec<String> = sizes.iter().map(|size| Bytes(*size).argument()).collect();
            let threshold = sizes.first().map_or("", String::as_str);
            format!("{usual} --libc-threshold {threshold} --size {}", sizes.join(","))
        }
        (Measure::Usual | Measure::Rounds { .. }, _) => usual.to_owned(),
    };
    Some(command.split(' ').map(str::to_owned).collect())
}
