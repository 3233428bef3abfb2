//! What a model wants, by `ntcopy advise` over all of its machines.
//!
//! Advice is a function of records. A model's evidence is therefore put into the form of records:
//! the cells of one representative machine's, in which each interleaved pair stands for some of the
//! model's machines and holds their median ratio. The intervals of the advice are so intervals over
//! machines; nothing but ratios goes in, and nothing but ratios is taken out.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, mpsc};
use std::thread;

use ntcopy_record::advice::Tunables;
use ntcopy_record::advice::{Advice, Target, Topic, advise};
use ntcopy_record::stats::{MIN_PAIRS, THROUGHPUT, WALKS, modes};
use ntcopy_record::{Cell, ExperimentKind, Record, Sample};

use super::facts::Thresholds;
use super::order::median;
use super::{Analysis, ModelView};
use crate::summary::{Question, RecordId, questions};

/// The most pairs that machines are dealt into: enough for an interval, and few enough for the ten
/// thousand resamples of each.
const MOST_PAIRS: usize = 15;
/// Records of the representative machine that are read, the newest.
const MOST_RECORDS: usize = 12;
/// What a baseline's sample takes, and moves: ratios keep twelve digits.
const UNIT_NS: f64 = 1e12;
const UNIT_BYTES: u64 = 1 << 40;

/// What advice rests on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rests {
    /// The number of machines, pooled.
    Machines(usize),
    /// One machine, of this name: there are too few for an interval.
    One(String),
}

/// What one CPU model wants.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelAdvice {
    /// Its signature.
    pub signature: String,
    /// What the advice rests on.
    pub rests: Rests,
    /// Every piece, by topic.
    pub advice: Vec<Advice>,
}

/// The machine whose records stand for the model's cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Representative {
    /// Its place in [`super::fleet::Fleet::machines`].
    pub machine: usize,
    /// The records to be read.
    pub records: Vec<RecordId>,
}

/// The most usual machine of a model among those with the most common C library and the most
/// experiments; none where no machine is like its model.
#[must_use]
pub fn representative(analysis: &Analysis, view: &ModelView) -> Option<Representative> {
    let fleet = &analysis.fleet;
    let libc = view.thresholds.first()?;
    let experiments = |machine: usize| {
        let mut names: Vec<&str> =
            fleet.machines[machine].records.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names.len()
    };
    let ours = view.like.iter().copied().filter(|machine| has(analysis, *machine, libc));
    let machine = ours.min_by(|a, b| {
        let more = experiments(*b).cmp(&experiments(*a));
        more.then(analysis.off[*a].total_cmp(&analysis.off[*b])).then(a.cmp(b))
    })?;
    let records = fleet.machines[machine].records.iter().take(MOST_RECORDS);
    Some(Representative { machine, records: records.map(|(_, id)| id.clone()).collect() })
}

/// Whether a machine has a C library with just these thresholds.
fn has(analysis: &Analysis, machine: usize, libc: &Thresholds) -> bool {
    let facts = &analysis.fleet.machines[machine].facts.machine;
    facts.libc == libc.libc
        && facts.libc_nt_threshold_bytes == libc.memcpy_bytes
        && facts.libc_memset_nt_threshold_bytes == libc.memset_bytes
}

/// Advice for models, in their order, on as many threads as there are CPUs. `read` gives a record of
/// the store, or none where the store keeps its summary alone; a model without records has no
/// advice.
///
/// # Errors
///
/// The first of `read`.
pub fn of_models<E>(
    analysis: &Analysis,
    views: &[&ModelView],
    mut read: impl FnMut(&RecordId) -> Result<Option<Record>, E>,
) -> Result<Vec<ModelAdvice>, E> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(views.len());
    // One waits for each thread: records are large, and none is read before it is wanted.
    let (sender, receiver) = mpsc::sync_channel::<(usize, Vec<Record>)>(threads);
    let receiver = Mutex::new(receiver);
    let work = || {
        let mut done: Vec<(usize, ModelAdvice)> = Vec::new();
        loop {
            let next = receiver.lock().map(|receiver| receiver.recv());
            let Ok(Ok((at, records))) = next else { return done };
            done.extend(of_model(analysis, views[at], &records).map(|advice| (at, advice)));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let mut outcome = Ok(());
        for (at, view) in views.iter().enumerate() {
            match read_all(analysis, view, &mut read) {
                // It fails only where every thread panicked; joining them says so.
                Ok(records) => drop(sender.send((at, records))),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        drop(sender);
        let joined = workers.into_iter().map(thread::ScopedJoinHandle::join);
        let mut all: Vec<(usize, ModelAdvice)> = joined
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect();
        all.sort_by_key(|(at, _)| *at);
        outcome.map(|()| all.into_iter().map(|(_, advice)| advice).collect())
    })
}

/// The records that stand for a model.
fn read_all<E>(
    analysis: &Analysis,
    view: &ModelView,
    read: &mut impl FnMut(&RecordId) -> Result<Option<Record>, E>,
) -> Result<Vec<Record>, E> {
    let ids = representative(analysis, view).map(|one| one.records).unwrap_or_default();
    let mut records = Vec::new();
    for id in &ids {
        records.extend(read(id)?);
    }
    Ok(records)
}

/// Advice for a model, from the records of its representative machine and the answers of all.
///
/// None without records.
#[must_use]
pub fn of_model(analysis: &Analysis, view: &ModelView, records: &[Record]) -> Option<ModelAdvice> {
    let host = records.iter().find(|record| record.machine.kernel_kind == "host");
    let machine = host.or(records.first())?.machine.clone();
    let numbers: HashMap<&Question, u32> =
        (0..).zip(&analysis.fleet.questions).map(|(at, question)| (&**question, at)).collect();
    let pooled: Vec<Record> = records
        .iter()
        .map(|record| pool(analysis, view, record, &numbers).unwrap_or_else(|| record.clone()))
        .collect();
    let target = Target {
        tunables: Tunables::of_release(&machine.libc),
        profile: None,
        sysctls: [None; 2],
        devices: Vec::new(),
        machine,
    };
    let mut all = advise(&pooled.iter().collect::<Vec<&Record>>(), &target);
    for advice in &mut all {
        // What one machine has set says nothing of the others; the libraries are the same.
        if !matches!(advice.topic, Topic::MemcpyThreshold | Topic::MemsetThreshold) {
            advice.current = None;
        }
    }
    let rests = if view.like.len() >= MIN_PAIRS {
        Rests::Machines(view.like.len())
    } else {
        let representative = representative(analysis, view)?.machine;
        Rests::One(analysis.fleet.machines[representative].name().to_owned())
    };
    Some(ModelAdvice { signature: view.signature.clone(), rests, advice: all })
}

/// A record's cells with the model's ratios in them; none where there are too few machines.
fn pool(
    analysis: &Analysis,
    view: &ModelView,
    template: &Record,
    numbers: &HashMap<&Question, u32>,
) -> Option<Record> {
    let machines = comparable(analysis, view, template);
    if machines.len() < MIN_PAIRS {
        return None;
    }
    let asked = questions(template);
    let pairs = machines.len().min(MOST_PAIRS);
    let mut samples = Vec::new();
    for cell in &template.cells {
        let ours = asked.iter().filter(|(its, _)| its.cell == cell.cell);
        let numbered: Vec<(&Question, u32)> =
            ours.filter_map(|(_, question)| Some((question, *numbers.get(question)?))).collect();
        for pair in 0..pairs {
            let dealt: Vec<usize> = machines.iter().copied().skip(pair).step_by(pairs).collect();
            samples.extend(one_pair(analysis, template, cell, pair as u32, &dealt, &numbered));
        }
    }
    let mut record = Record { samples, ..without_samples(template) };
    record.header.id = format!("{} and {} other machines", template.header.id, machines.len() - 1);
    Some(record)
}

fn without_samples(template: &Record) -> Record {
    Record {
        header: template.header.clone(),
        machine: template.machine.clone(),
        cells: template.cells.clone(),
        samples: Vec::new(),
        unavailable: template.unavailable.clone(),
        errors: Vec::new(),
        complete: template.complete,
    }
}

/// The machines whose answers can stand beside the template's: where the C library is what others
/// are held against, those with the same one.
fn comparable(analysis: &Analysis, view: &ModelView, template: &Record) -> Vec<usize> {
    let is_of_libc =
        matches!(template.header.experiment, ExperimentKind::Memcpy | ExperimentKind::Memset);
    let libc = Thresholds {
        libc: template.machine.libc.clone(),
        memcpy_bytes: template.machine.libc_nt_threshold_bytes,
        memset_bytes: template.machine.libc_memset_nt_threshold_bytes,
        machines: 0,
    };
    let like = view.like.iter().copied();
    like.filter(|machine| !is_of_libc || has(analysis, *machine, &libc)).collect()
}

/// A mode's ratios in one pair, by metric.
#[derive(Default)]
struct Ratios {
    throughput: Option<f64>,
    walks: Option<f64>,
}

/// One sample a mode: the median of some machines' ratios.
fn one_pair(
    analysis: &Analysis,
    template: &Record,
    cell: &Cell,
    pair: u32,
    machines: &[usize],
    asked: &[(&Question, u32)],
) -> Vec<Sample> {
    let mut by_mode: BTreeMap<&str, Ratios> = BTreeMap::new();
    for (question, number) in asked {
        let answers = machines.iter().filter_map(|machine| {
            Some(analysis.fleet.machines[*machine].answer(*number)?.log_ratio)
        });
        let Some(log_ratio) = median(answers.collect()) else { continue };
        let one = |question: &Question| Ratios {
            throughput: (question.metric == THROUGHPUT).then_some(1.0),
            walks: (question.metric == WALKS).then_some(1.0),
        };
        let baseline = by_mode.entry(&question.baseline).or_default();
        let unit = one(question);
        baseline.throughput = baseline.throughput.or(unit.throughput);
        baseline.walks = baseline.walks.or(unit.walks);
        let ours = by_mode.entry(&question.mode).or_default();
        match question.metric.as_str() {
            THROUGHPUT => ours.throughput = Some(log_ratio.exp()),
            WALKS => ours.walks = Some(log_ratio.exp()),
            _ => {}
        }
    }
    let known = modes(template).into_iter().filter_map(|mode| Some((mode, by_mode.get(mode)?)));
    (0..)
        .zip(known)
        .map(|(position, (mode, ratios))| {
            sample(template, cell.cell, (pair, position), mode, ratios)
        })
        .collect()
}

fn sample(
    template: &Record,
    cell: u32,
    (pair, position): (u32, u32),
    mode: &str,
    ratios: &Ratios,
) -> Sample {
    let taking = |ratio: f64| (UNIT_NS / ratio).round() as u64;
    let walks = ratios.walks.map(|ratio| ("walk_ns".to_owned(), vec![taking(ratio)]));
    // Which stores were used is a matter of the path, the same on every machine of a model.
    let like = template.samples.iter().find(|sample| sample.cell == cell && sample.mode == mode);
    Sample {
        cell,
        pair,
        position,
        mode: mode.to_owned(),
        // Without a ratio of the whole nothing was moved, and there is no throughput.
        bytes: if ratios.throughput.is_some() { UNIT_BYTES } else { 0 },
        elapsed_ns: taking(ratios.throughput.unwrap_or(1.0)),
        phases_ns: BTreeMap::new(),
        counters: like.map(|sample| sample.counters.clone()).unwrap_or_default(),
        series: walks.into_iter().collect(),
    }
}
