//! One ask, many nodes: several at a time, records into the store as they come, and nothing measured
//! that the store has.

use std::collections::{BTreeSet, VecDeque};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

use serde::Serialize;

use super::tool::Tool;
use super::{Ask, Piece, Received, machine_id};
use crate::store::{Added, Entry, Origin, Store, StoreError};
use crate::summary::RecordId;

/// What is to be done.
pub struct Plan<'a> {
    pub tool: &'a Tool,
    pub fleet: &'a str,
    pub ask: &'a Ask,
    pub nodes: &'a [String],
    /// Nodes at a time.
    pub parallel: usize,
    /// Answers since then (nanoseconds since 1970-01-01 UTC) are good enough; none: ask anew.
    pub good_since_unix_ns: Option<u64>,
}

/// What became of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Every question that was put to it is answered.
    Measured,
    /// The store had all answers.
    #[serde(rename = "already there")]
    AlreadyThere,
    /// Some question is not answered.
    Failed,
    /// It was not waited for.
    Cancelled,
}

impl State {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            State::Measured => "measured",
            State::AlreadyThere => "already there",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }
}

/// What became of a node, in full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Outcome {
    pub node: String,
    pub state: State,
    pub records: Vec<RecordId>,
    /// Why it failed, if it did: the last reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether a byte was wrong in one of its records.
    pub wrong_byte: bool,
}

/// What happens, for whoever watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'e> {
    /// A node.
    Started(&'e str),
    /// A node, and what it was asked.
    Stored(&'e str, &'e str),
    Ended(&'e Outcome),
}

/// A node that is to be measured.
struct Job {
    at: usize,
    missing: Vec<String>,
}

enum Report {
    Started(usize),
    Record(usize, Box<Entry>, i32),
    Ended { at: usize, is_whole: bool, why: Option<String> },
}

struct Shared<'a> {
    plan: &'a Plan<'a>,
    jobs: Mutex<VecDeque<Job>>,
    /// Set when the store fails: there is no use in measuring on.
    is_lost: AtomicBool,
    cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Shared<'_> {
    fn is_over(&self) -> bool {
        self.is_lost.load(Ordering::Relaxed) || (self.cancelled)()
    }
}

/// Measures; one outcome per node, in the order of the plan.
/// When the store fails, what it took until then stays.
pub fn run(
    plan: &Plan<'_>,
    store: &mut Store,
    cancelled: &(dyn Fn() -> bool + Sync),
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<Vec<Outcome>, StoreError> {
    let (mut outcomes, jobs) = due(plan, store)?;
    for outcome in outcomes.iter().filter(|outcome| outcome.state == State::AlreadyThere) {
        watch(Event::Ended(outcome));
    }
    let workers = plan.parallel.clamp(1, jobs.len().max(1));
    let shared =
        Shared { plan, jobs: Mutex::new(jobs.into()), is_lost: AtomicBool::new(false), cancelled };
    thread::scope(|scope| {
        let (tell, reports) = sync_channel(workers);
        for _ in 0..workers {
            let (tell, shared) = (tell.clone(), &shared);
            scope.spawn(move || work(shared, &tell));
        }
        drop(tell);
        let listened = listen(&reports, store, &mut outcomes, watch);
        if listened.is_err() {
            shared.is_lost.store(true, Ordering::Relaxed);
            // Workers must not wait for a listener.
            drop(reports);
        }
        listened
    })?;
    Ok(outcomes)
}

/// An outcome per node, and a job for each that lacks an answer.
fn due(plan: &Plan<'_>, store: &mut Store) -> Result<(Vec<Outcome>, Vec<Job>), StoreError> {
    let answered: BTreeSet<(String, String)> = match plan.good_since_unix_ns {
        Some(since) => store.answered(plan.fleet, since)?.into_iter().collect(),
        None => BTreeSet::new(),
    };
    let (mut outcomes, mut jobs) = (Vec::new(), Vec::new());
    for (at, node) in plan.nodes.iter().enumerate() {
        let is_missing =
            |experiment: &&String| !answered.contains(&(node.clone(), plan.ask.key(experiment)));
        let missing: Vec<String> =
            plan.ask.experiments.iter().filter(is_missing).cloned().collect();
        let state = if missing.is_empty() { State::AlreadyThere } else { State::Cancelled };
        outcomes.push(Outcome {
            node: node.clone(),
            state,
            records: Vec::new(),
            why: None,
            wrong_byte: false,
        });
        if !missing.is_empty() {
            jobs.push(Job { at, missing });
        }
    }
    Ok((outcomes, jobs))
}

/// Stores what comes until all workers are gone.
fn listen(
    reports: &Receiver<Report>,
    store: &mut Store,
    outcomes: &mut [Outcome],
    watch: &mut dyn FnMut(Event<'_>),
) -> Result<(), StoreError> {
    for report in reports {
        match report {
            Report::Started(at) => watch(Event::Started(&outcomes[at].node)),
            Report::Record(at, entry, code) => {
                let outcome = &mut outcomes[at];
                let added = store.insert(&entry)?;
                if added != Added::Differs {
                    outcome.records.push(entry.summary.record.clone());
                }
                outcome.wrong_byte |= code == 4;
                let asked = entry.asked.as_deref().unwrap_or(entry.summary.experiment.as_str());
                watch(Event::Stored(&outcome.node, asked));
            }
            Report::Ended { at, is_whole, why } => {
                let outcome = &mut outcomes[at];
                outcome.state = if is_whole { State::Measured } else { State::Failed };
                outcome.why = if is_whole { None } else { why };
                watch(Event::Ended(outcome));
            }
        }
    }
    Ok(())
}

/// Takes jobs until there are none.
fn work(shared: &Shared<'_>, tell: &SyncSender<Report>) {
    while !shared.is_over() {
        let next = shared.jobs.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(job) = next else { return };
        if one(shared, job, tell).is_err() {
            return;
        }
    }
}

struct Gone;

impl<T> From<std::sync::mpsc::SendError<T>> for Gone {
    fn from(_: std::sync::mpsc::SendError<T>) -> Gone {
        Gone
    }
}

fn one(shared: &Shared<'_>, mut job: Job, tell: &SyncSender<Report>) -> Result<(), Gone> {
    let plan = shared.plan;
    let node = plan.nodes[job.at].as_str();
    tell.send(Report::Started(job.at))?;
    let ask = Ask { experiments: job.missing.clone(), ..plan.ask.clone() };
    // A node that is broken fills no store: each question has one answer.
    let mut open: BTreeSet<String> =
        job.missing.iter().map(|experiment| plan.ask.key(experiment)).collect();
    let mut why = None;
    let mut gone = Ok(());
    let cancelled = || shared.is_over();
    let ended = plan.tool.measure(node, &ask, &cancelled, &mut |piece| match piece {
        Piece::Done => {}
        Piece::Failed { asked, why: reason } => {
            why = Some(asked.map_or(reason.clone(), |asked| format!("{asked}: {reason}")));
        }
        Piece::Record(record) if !open.remove(&record.asked) => {
            why = Some(format!("{}: it was not asked, or has been answered", record.asked));
        }
        Piece::Record(mut record) => match entry(plan.fleet, node, &mut record) {
            Err(reason) => why = Some(format!("{}: {reason}", record.asked)),
            Ok(entry) => {
                let is_answer = entry.asked.is_some();
                if is_answer {
                    job.missing.retain(|experiment| plan.ask.key(experiment) != record.asked);
                } else {
                    why = Some(failed(&record));
                }
                let sent = tell.send(Report::Record(job.at, Box::new(entry), record.code));
                gone = gone.is_ok().then_some(()).ok_or(Gone).and(sent.map_err(Gone::from));
            }
        },
    });
    gone?;
    let is_whole = job.missing.is_empty();
    // What the node said of an experiment tells more than that its task failed.
    let why = why.or(ended.err());
    if !is_whole && shared.is_over() {
        return Ok(());
    }
    let why = if is_whole { None } else { why.or(Some("it gave no answer".to_owned())) };
    Ok(tell.send(Report::Ended { at: job.at, is_whole, why })?)
}

fn failed(record: &Received) -> String {
    let Received { asked, code, .. } = record;
    match code {
        4 => format!("{asked}: a byte was wrong"),
        code => format!("{asked}: the measurement ended with {code}"),
    }
}

/// What goes into the store of what came from a node: takes the record's bytes.
pub fn entry(fleet: &str, node: &str, record: &mut Received) -> Result<Entry, String> {
    let origin = Origin {
        machine: machine_id(fleet, node),
        fleet: Some(fleet.to_owned()),
        node: Some(node.to_owned()),
        // One that failed is kept, and does not count as an answer.
        asked: record.is_whole().then(|| record.asked.clone()),
    };
    let raw = std::mem::take(&mut record.raw);
    Entry::parse(Path::new("its record"), raw, origin).map_err(|error| error.to_string())
}
