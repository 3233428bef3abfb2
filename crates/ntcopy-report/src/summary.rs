//! What records come to before anything else is read: the advice about sends, in the words of
//! `ntcopy advise`.

use ntcopy_record::advice::{self, Advice, Choice, Decision, Gain, Target, Topic, Value};
use ntcopy_record::stats::Verdict;
use ntcopy_record::{Machine, Record, compare, verdict};

use crate::advice::{figure, headline};
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
    /// What to set and what it brings, then what it costs. One sentence at least.
    pub sentences: Vec<String>,
}

impl Summary {
    /// For a terminal: the verdict, what to set, and why, a line each.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        let Some((_, rest)) = self.sentences.split_first() else { return Vec::new() };
        let (Some(answer), Some(sends)) = (&self.answer, sends(&self.advice)) else {
            return vec![format!("verdict: {}", self.sentences.join(" "))];
        };
        let setting = sends.setting.as_deref().filter(|_| sends.decision == Decision::Set);
        vec![
            format!("verdict: {answer}"),
            format!("to set:  {}", setting.unwrap_or("nothing")),
            format!("why:     {}", rest.join(" ")),
        ]
    }
}

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
    machines.into_iter().map(|(machine, ours)| summary(machine, ours)).collect()
}

fn summary(machine: &Machine, mut records: Vec<&Record>) -> Summary {
    records.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    let counted: Vec<&Record> =
        records.iter().copied().filter(|record| advice::counts(record, machine).is_ok()).collect();
    let mut advice = advice::advise(&counted, &Target::of(machine.clone()));
    advice.retain(|one| !matches!(one.decision, Decision::NoEvidence | Decision::NotHere));
    let answer = sends(&advice).and_then(answer);
    let mut sentences = about_sends(&advice);
    let mode = Choice::from_records(&counted).mode();
    sentences.extend(hot::worst(&counted).and_then(|hot| hot.sentence(mode)));
    if sentences.is_empty() {
        // Nothing here says what to set for sends; the newest record says what it is about.
        let newest = records.first().map(|record| verdict::sentences(record));
        sentences.extend(newest.into_iter().flatten().next());
    }
    Summary { cpu: machine.cpu_model.clone(), advice, answer, sentences }
}

/// The advice about sends over unix sockets: always the first about sends.
fn sends(all: &[Advice]) -> Option<&Advice> {
    all.iter().find(|advice| advice.topic == Topic::Sends)
}

/// `Hint large sends: 1.15x to 1.26x from 16 MiB in flight on; they lose below`.
fn answer(sends: &Advice) -> Option<String> {
    let gain = sends.gain.as_ref()?;
    let range = range(gain);
    let answer = match (sends.decision, &sends.wins_from) {
        (Decision::Set, Some(from)) => {
            let loses = if from.loses_below { "; they lose below" } else { "" };
            format!("Hint large sends: {range} from {} in flight on{loses}", text::size(from.bytes))
        }
        (Decision::Set, None) => format!("Hint large sends: {range}"),
        (Decision::Leave, _) => format!("Leave hints off here: {range}"),
        (Decision::AsItIs, _) if gain.verdict() == Verdict::Equal => {
            format!("Hints are as fast as plain sends here: {range}")
        }
        (Decision::AsItIs, _) => format!("Hint only what you measured: {range}"),
        _ => format!("Whether hints pay here is unresolved: {range}"),
    };
    Some(answer)
}

/// `1.20x to 1.90x`, over the cells of a gain.
fn range(gain: &Gain) -> String {
    let (least, most) = (text::ratio(gain.least.0), text::ratio(gain.most.0));
    if least == most { least } else { format!("{least} to {most}") }
}

/// The advice about sends over unix sockets with its reason, and what is to be set beside it.
fn about_sends(all: &[Advice]) -> Vec<String> {
    let Some(sends) = sends(all) else { return Vec::new() };
    let with_figure = |advice: &Advice| {
        let gain = advice.gain.as_ref().map(|gain| format!(": {}", figure(gain)));
        text::sentence(&(headline(advice) + &gain.unwrap_or_default()))
    };
    let mut said = vec![with_figure(sends), sends.why.clone()];
    let settings = [Topic::HintSysctl, Topic::CacheBytesSysctl];
    let beside = all.iter().filter(|advice| settings.contains(&advice.topic));
    said.extend(beside.filter(|advice| changes_default(advice)).map(with_figure));
    said
}

/// Whether a setting is other than what the kernel starts with: the rule.
fn changes_default(advice: &Advice) -> bool {
    let is_default = |name: &str, value: u64| name == Topic::HintSysctl.slug() && value == 1;
    matches!(&advice.value, Some(Value::Sysctl(name, value)) if !is_default(name, *value))
}
