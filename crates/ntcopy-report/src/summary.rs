//! What records come to before anything else is read: the advice about sends, in the words of
//! `ntcopy advise`.

use ntcopy_judge::advice::{self, Advice, Decision, Taker, Target, Topic};
use ntcopy_judge::stats::{Verdict, turns};
use ntcopy_judge::{Judged, compare, params};
use ntcopy_record::Machine;

use crate::advice::{headline, words};
use crate::hot;
use crate::text::Line;
use crate::{text, verdict};

/// What to set on one machine, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub cpu: String,
    /// Advice that its records give, by topic.
    pub advice: Vec<Advice>,
    /// What was found of the user's own programs, each by its name.
    pub own: Vec<String>,
    /// The title of a page; none where no sends were measured.
    pub answer: Option<String>,
    /// What patches and hint bring, what there is to gain at all, and what the machine makes of sends
    /// that are alike, a sentence each.
    pub beside: Vec<String>,
    /// All of it in a line.
    to_set: String,
    /// What it costs, where sends are to be hinted.
    pub costs: Option<String>,
    /// What to set and what it brings, a sentence each.
    pub settings: Vec<String>,
    /// Why, and what becomes of a hot set; of records without sends, what else is advised, or else what
    /// the newest says.
    pub sentences: Vec<String>,
}

impl Summary {
    /// For a terminal: the verdict, what to set, and what that costs, or why nothing is to be set, a
    /// line each.
    #[must_use]
    pub fn lines(&self) -> Vec<Line<'_>> {
        if self.sentences.is_empty() {
            return Vec::new();
        }
        let Some(answer) = &self.answer else {
            return vec![Line { label: "verdict:", words: self.sentences.join(" ").into() }];
        };
        let why =
            self.costs.as_ref().map_or(("why:", &self.sentences[0]), |costs| ("costs:", costs));
        let own = self.own.iter().map(|own| ("yours:", own));
        let lines = own.chain([("verdict:", answer), ("to set:", &self.to_set), why]);
        let lines = lines.chain(self.beside.iter().map(|beside| ("beside:", beside)));
        lines.map(|(label, words)| Line { label, words: words.into() }).collect()
    }
}

/// What a hint may cost anywhere.
const READER: &str = "A reader that touches the bytes on this machine waits for memory.";

/// A summary for each machine that the records are of, in the order in which they are met.
#[must_use]
pub fn summaries(records: &[Judged]) -> Vec<Summary> {
    let mut machines: Vec<(&Machine, Vec<&Judged>)> = Vec::new();
    for record in records {
        let is_known =
            |machine: &Machine| compare::is_same_machine(&record.machine, machine).is_ok();
        match machines.iter_mut().find(|(machine, _)| is_known(machine)) {
            Some((_, ours)) => ours.push(record),
            None => machines.push((&record.machine, vec![record])),
        }
    }
    machines.into_iter().map(|(machine, ours)| of(machine, ours)).collect()
}

/// The summary of one machine.
#[must_use]
pub fn of(machine: &Machine, mut records: Vec<&Judged>) -> Summary {
    records.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    let counted: Vec<&Judged> =
        records.iter().copied().filter(|record| advice::counts(record, machine).is_ok()).collect();
    let advice = advice::advise(&counted, &Target::of(machine.clone()));
    // Where nothing says what to set, the newest record says what it is about.
    with(machine, &counted, advice, records.first().copied())
}

/// The same of records that count, the newest first, by the advice that they give.
#[must_use]
pub fn with(
    machine: &Machine,
    counted: &[&Judged],
    mut advice: Vec<Advice>,
    newest: Option<&Judged>,
) -> Summary {
    advice.retain(|one| !matches!(one.decision, Decision::NoEvidence | Decision::NotHere));
    let sends = sends(&advice);
    let taker = sends.map_or(Taker::Kernel, |sends| sends.taker);
    let hot = hot::worst(counted, taker);
    let kept = hot.as_ref().and_then(hot::Hot::kept);
    let answer = sends.and_then(|sends| answer(sends, kept.as_deref()));
    let beside = sends.map(beside).unwrap_or_default();
    let set = sends.filter(|sends| sends.decision == Decision::Set);
    let to_set = set.and_then(words::setting).unwrap_or_else(|| "nothing".to_owned());
    let costs = set.and_then(|sends| Some(format!("{} {READER}", words::costs(sends)?)));
    let settings = sends.map(setting).into_iter().collect();
    let mut sentences: Vec<String> = sends.map(words::why).into_iter().collect();
    sentences.extend(hot.and_then(|hot| hot.sentence()));
    if sentences.is_empty() {
        let set = advice.iter().filter(|one| one.decision == Decision::Set);
        sentences.extend(set.map(setting));
    }
    if sentences.is_empty() {
        sentences.extend(newest.map(verdict::sentences).into_iter().flatten().next());
    }
    let own = own(counted);
    let cpu = machine.cpu_model.clone();
    Summary { cpu, advice, own, answer, beside, to_set, costs, settings, sentences }
}

/// The advice about sends over unix sockets: always the first about sends.
fn sends(all: &[Advice]) -> Option<&Advice> {
    all.iter().find(|advice| advice.topic == Topic::Sends)
}

/// What was found of each program that was tried, the newest first.
fn own(records: &[&Judged]) -> Vec<String> {
    let tried = records.iter().filter_map(|record| {
        let outcome = record.outcome.as_ref()?;
        let program = outcome.params.get(turns::PROGRAM).map(params::listed)?;
        Some((program, verdict::said_of(outcome)))
    });
    let mut known: Vec<String> = Vec::new();
    let mut own = Vec::new();
    for (program, said) in tried {
        if !known.contains(&program) {
            own.push(format!("{program}: {said}"));
            known.push(program);
        }
    }
    own
}

/// What hints come to, by where the bytes come from: `Programs that answer from more data than the
/// caches hold: 1.11x to 1.44x by hinting sends of 256 KiB and more; …`
fn answer(sends: &Advice, kept: Option<&str>) -> Option<String> {
    let gain = sends.gain.as_ref()?;
    let range = text::range(gain);
    let Some(from_bytes) = sends.from_bytes.filter(|_| is_set(sends)) else {
        return Some(match sends.decision {
            Decision::Leave => format!("Leave hints off here: {gain}"),
            Decision::AsItIs => format!("Hints are as fast as plain sends here: {range}"),
            _ => format!("Whether hints pay here is unresolved: {range}"),
        });
    };
    let kept = kept.map_or_else(String::new, |kept| format!("; {kept}"));
    let hot = sends.hot.map_or_else(String::new, |hot| {
        let says = match (hot.wins_from_in_flight_bytes, hot.losses) {
            (Some(bytes), _) => format!("leave it below {} in flight", text::size(bytes)),
            (None, 0) if hot.claim.verdict == Verdict::Win => "hint it too".to_owned(),
            (None, 0) if hot.claim.verdict == Verdict::Equal => "no difference".to_owned(),
            _ => "leave it".to_owned(),
        };
        format!(". The same few MiB again and again: {says} ({})", text::range(&hot.claim))
    });
    Some(format!(
        "Programs that answer from more data than the caches hold: {range} by hinting sends of {} and \
         more{kept}{hot}",
        text::size(from_bytes)
    ))
}

fn is_set(advice: &Advice) -> bool {
    advice.decision == Decision::Set
}

/// What stands beside the answer.
fn beside(sends: &Advice) -> Vec<String> {
    let parts = sends.parts.map(|parts| text::sentence(&words::parts(&parts)));
    let alike = sends.alike.map(|alike| {
        format!("Plain sends relative to plain ones of other turns, on this machine: {alike}.")
    });
    parts.into_iter().chain(alike).collect()
}

/// `USE SO_NTCOPY: 1.31x (1.28-1.35).`
fn setting(advice: &Advice) -> String {
    let gain = advice.gain.as_ref().map(|gain| format!(": {gain}"));
    text::sentence(&(headline(advice) + &gain.unwrap_or_default()))
}
