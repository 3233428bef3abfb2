//! Summaries sorted by machine, machines by CPU model.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::summary::{Finding, MachineFacts, MachineId, Question, RecordId, Summary};

/// What one machine answered to one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// The question's place in [`Fleet::questions`].
    pub question: u32,
    /// Natural logarithm of the ratio: machines differ by factors.
    pub log_ratio: f64,
    /// The same of its 95 % interval: low, high.
    pub log_ci: (f64, f64),
}

impl Answer {
    fn of(question: u32, finding: &Finding) -> Answer {
        let log_ci = (finding.low.ln(), finding.high.ln());
        Answer { question, log_ratio: finding.ratio.ln(), log_ci }
    }

    /// The standard error that its interval stands for.
    #[must_use]
    pub fn error(&self) -> f64 {
        (self.log_ci.1 - self.log_ci.0) / (2.0 * 1.96)
    }
}

/// One machine of the fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// What its newest record says of it; its newest one of the host's own kernel, if it has one.
    pub facts: Arc<MachineFacts>,
    /// Its node's name, if it has one.
    pub node: Option<String>,
    /// Its records that count, by experiment, newest first.
    pub records: Vec<(String, RecordId)>,
    /// Its answers, by question; of a question that was asked twice, the newest.
    pub answers: Vec<Answer>,
}

impl Machine {
    /// Its answer to a question.
    #[must_use]
    pub fn answer(&self, question: u32) -> Option<&Answer> {
        let at = self.answers.binary_search_by_key(&question, |answer| answer.question).ok()?;
        self.answers.get(at)
    }

    /// How to call it: its node's name, or the beginning of its id.
    #[must_use]
    pub fn name(&self) -> &str {
        let id = &self.facts.id.0;
        self.node.as_deref().unwrap_or(id.get(..12).unwrap_or(id))
    }
}

/// The machines of one CPUID signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Model {
    /// The signature.
    pub signature: String,
    /// Places in [`Fleet::machines`].
    pub machines: Vec<usize>,
}

/// All machines of a survey.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fleet {
    /// What was asked of any of them.
    pub questions: Vec<Arc<Question>>,
    /// The machines, by signature and id.
    pub machines: Vec<Machine>,
    /// The models, by signature.
    pub models: Vec<Model>,
    /// Records that were read.
    pub records: usize,
    /// Records that do not count, by reason.
    pub left_out: BTreeMap<String, usize>,
}

/// What is known of a machine while its summaries come.
struct Found<'s> {
    facts: &'s Arc<MachineFacts>,
    node: Option<&'s str>,
    records: Vec<(String, RecordId)>,
    answers: Vec<Answer>,
}

#[derive(Default)]
struct Gathering<'s> {
    questions: Vec<Arc<Question>>,
    numbers: HashMap<Arc<Question>, u32>,
    machines: BTreeMap<&'s MachineId, Found<'s>>,
    left_out: BTreeMap<String, usize>,
}

impl Fleet {
    /// Sorts summaries, which may come in any order.
    #[must_use]
    pub fn of(summaries: &[Summary]) -> Fleet {
        let mut newest_first: Vec<&Summary> = summaries.iter().collect();
        newest_first.sort_by(|a, b| {
            b.taken_unix_ns.cmp(&a.taken_unix_ns).then_with(|| a.record.cmp(&b.record))
        });
        let mut gathering = Gathering::default();
        for summary in newest_first {
            gathering.add(summary);
        }
        Fleet { records: summaries.len(), ..gathering.done() }
    }
}

impl<'s> Gathering<'s> {
    fn add(&mut self, summary: &'s Summary) {
        if let Some(why) = &summary.not_counted {
            *self.left_out.entry(why.clone()).or_default() += 1;
            return;
        }
        let facts = &summary.machine;
        let found = self.machines.entry(&facts.id).or_insert_with(|| Found {
            facts,
            node: None,
            records: Vec::new(),
            answers: Vec::new(),
        });
        if found.facts.cpu_signature() != facts.cpu_signature() {
            let why = "it is of the CPU that the machine had before";
            *self.left_out.entry(why.to_owned()).or_default() += 1;
            return;
        }
        let is_host = |facts: &MachineFacts| facts.machine.kernel_kind == "host";
        if is_host(facts) && !is_host(found.facts) {
            // A booted kernel says nothing of the kernel that the machine has.
            found.facts = facts;
        }
        found.node = found.node.or(summary.node.as_deref());
        found.records.push((summary.experiment.to_string(), summary.record.clone()));
        for finding in &summary.findings {
            let next = self.questions.len() as u32;
            let number = match self.numbers.get(&finding.question) {
                Some(number) => *number,
                None => {
                    self.numbers.insert(Arc::clone(&finding.question), next);
                    self.questions.push(Arc::clone(&finding.question));
                    next
                }
            };
            found.answers.push(Answer::of(number, finding));
        }
    }

    fn done(self) -> Fleet {
        let mut machines: Vec<Machine> = self.machines.into_values().map(machine).collect();
        // By id already: machines of a model stay in that order.
        machines.sort_by(|a, b| a.facts.cpu_signature().cmp(b.facts.cpu_signature()));
        let mut models: Vec<Model> = Vec::new();
        for (at, machine) in machines.iter().enumerate() {
            let signature = machine.facts.cpu_signature();
            match models.last_mut().filter(|model| model.signature == signature) {
                Some(model) => model.machines.push(at),
                None => {
                    models.push(Model { signature: signature.to_owned(), machines: vec![at] });
                }
            }
        }
        let (questions, left_out) = (self.questions, self.left_out);
        Fleet { questions, machines, models, records: 0, left_out }
    }
}

fn machine(found: Found<'_>) -> Machine {
    let mut answers = found.answers;
    // Newest first, and a stable sort keeps it so: the first of equal ones stays.
    answers.sort_by_key(|answer| answer.question);
    answers.dedup_by_key(|answer| answer.question);
    Machine {
        facts: Arc::clone(found.facts),
        node: found.node.map(str::to_owned),
        records: found.records,
        answers,
    }
}
