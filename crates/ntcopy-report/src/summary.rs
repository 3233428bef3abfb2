//! What records come to before anything else is read: the advice about sends, in the words of
//! `ntcopy advise`.

use ntcopy_record::advice::{self, Advice, Decision, Target, Topic, Value};
use ntcopy_record::{Machine, Record, compare, verdict};

use crate::advice::headline;
use crate::hot;
use crate::text;

/// What to set on one machine, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    pub cpu: String,
    /// Advice that its records give, by topic.
    pub advice: Vec<Advice>,
    /// The title of a page; none where no sends were measured.
    pub answer: Option<String>,
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
    pub fn lines(&self) -> Vec<String> {
        if self.sentences.is_empty() {
            return Vec::new();
        }
        let (Some(answer), Some(sends)) = (&self.answer, sends(&self.advice)) else {
            return vec![labelled("verdict:", &self.sentences.join(" "))];
        };
        vec![
            labelled("verdict:", answer),
            labelled("to set:", &self.to_set),
            match &self.costs {
                Some(costs) => labelled("costs:", costs),
                None => labelled("why:", &sends.why),
            },
        ]
    }
}

fn labelled(label: &str, words: &str) -> String {
    format!("{label:<width$}{words}", width = text::VERDICT_LABEL)
}

/// What a hint may cost anywhere.
const READER: &str = "A reader that touches the bytes on this machine waits for memory.";

/// A summary for each machine that the records are of, in the order in which they are met.
#[must_use]
pub fn summaries(records: &[Record]) -> Vec<Summary> {
    let mut machines: Vec<(&Machine, Vec<&Record>)> = Vec::new();
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
pub fn of(machine: &Machine, mut records: Vec<&Record>) -> Summary {
    records.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    let counted: Vec<&Record> =
        records.iter().copied().filter(|record| advice::counts(record, machine).is_ok()).collect();
    let mut advice = advice::advise(&counted, &Target::of(machine.clone()));
    advice.retain(|one| !matches!(one.decision, Decision::NoEvidence | Decision::NotHere));
    let answer = sends(&advice).and_then(answer);
    let told = sends(&advice);
    let to_set = told.filter(|sends| sends.decision == Decision::Set);
    let to_set = to_set.and_then(|sends| sends.setting.clone());
    let to_set = to_set.unwrap_or_else(|| "nothing".to_owned());
    let set = sends(&advice).filter(|sends| sends.decision == Decision::Set);
    let costs = set.and_then(|sends| Some(format!("{} {READER}", sends.costs.as_deref()?)));
    let settings = told.into_iter().map(setting).collect();
    let mut sentences: Vec<String> =
        sends(&advice).map(|sends| sends.why.clone()).into_iter().collect();
    sentences.extend(hot::worst(&counted).and_then(|hot| hot.sentence()));
    if sentences.is_empty() {
        let set = advice.iter().filter(|one| one.decision == Decision::Set);
        sentences.extend(set.map(setting));
    }
    if sentences.is_empty() {
        // Nothing here says what to set; the newest record says what it is about.
        let newest = records.first().map(|record| verdict::sentences(record));
        sentences.extend(newest.into_iter().flatten().next());
    }
    Summary { cpu: machine.cpu_model.clone(), advice, answer, to_set, costs, settings, sentences }
}

/// The advice about sends over unix sockets: always the first about sends.
fn sends(all: &[Advice]) -> Option<&Advice> {
    all.iter().find(|advice| advice.topic == Topic::SENDS)
}

/// `Hint sends of 256 KiB and more, out of more data than the caches hold: 1.15x to 1.26x`
fn answer(sends: &Advice) -> Option<String> {
    let gain = sends.gain.as_ref()?;
    let range = gain.range();
    let answer = match (sends.decision, &sends.value) {
        (Decision::Set, Some(Value::Option { value, .. })) => format!(
            "Hint sends of {} and more, out of more data than the caches hold: {range}",
            text::size(*value)
        ),
        (Decision::Set, _) => format!("Hint large sends: {range}"),
        (Decision::Leave, _) => format!("Leave hints off here: {gain}"),
        (Decision::AsItIs, _) => format!("Hints are as fast as plain sends here: {range}"),
        _ => format!("Whether hints pay here is unresolved: {range}"),
    };
    Some(answer)
}

/// `USE SO_NTCOPY: 1.31x (1.28-1.35).`
fn setting(advice: &Advice) -> String {
    let gain = advice.gain.as_ref().map(|gain| format!(": {gain}"));
    text::sentence(&(headline(advice) + &gain.unwrap_or_default()))
}
