//! The machines that behave unlike their model.
//!
//! A machine is off its model, in an experiment, by the median over its answers of the factor
//! between its ratio and the model's median ratio. It is named where that is 5 % or more, and
//! five times as far as is usual for its model.

use std::collections::BTreeMap;

use ntcopy_record::units::Bytes;
use serde::Serialize;

use super::Machine;
use super::over::{LEAST_MACHINES, median};
use crate::summary::{MachineFacts, MachineId, Question};

/// With fewer machines there is no telling which one is the odd one.
pub const LEAST_JUDGED: usize = LEAST_MACHINES;
/// Fewer answers say nothing of a machine: one that was disturbed would be half of them.
const LEAST_ANSWERS: usize = 3;
/// What is far off and less than this is left in peace.
pub const LEAST_OFF: f64 = 1.05;
/// How many times as far as usual is far.
pub const FAR: f64 = 5.0;
/// A fact is no hint if this part of the other machines share it.
const COMMON: f64 = 0.1;

/// A machine that is unlike its model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unlike {
    pub machine: MachineId,
    pub node: Option<String>,
    pub signature: String,
    /// The factor by which it is off in the experiment in which it is off the furthest.
    pub off: f64,
    /// That experiment.
    pub experiment: String,
    /// The factor by which the model's machines usually are.
    pub usual: f64,
    /// The question of the experiment in which it is off the furthest.
    pub example: Example,
    /// In what its record says that it differs.
    pub differs: Vec<Differs>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Example {
    #[serde(flatten)]
    pub question: Question,
    /// The machine's ratio.
    pub ratio: f64,
    /// The model's.
    pub model: f64,
}

/// A fact in which a machine differs from most others of its model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Differs {
    pub what: &'static str,
    pub here: String,
    pub others: String,
}

/// Those of one model's machines.
pub(super) fn find(machines: &[&Machine<'_>]) -> Vec<Unlike> {
    if machines.len() < LEAST_JUDGED {
        return Vec::new();
    }
    let centres = centres(machines);
    let mut by_experiment: BTreeMap<&str, Vec<(usize, f64)>> = BTreeMap::new();
    for (at, machine) in machines.iter().enumerate() {
        let mut offs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for (question, finding) in &machine.answers {
            if let Some(centre) = centres.get(question) {
                let off = (finding.ratio / centre).ln().abs();
                offs.entry(&question.experiment).or_default().push(off);
            }
        }
        for (experiment, mut offs) in offs {
            if let Some(off) = median(&mut offs).filter(|_| offs.len() >= LEAST_ANSWERS) {
                by_experiment.entry(experiment).or_default().push((at, off));
            }
        }
    }
    let mut furthest: BTreeMap<usize, (f64, &str, f64)> = BTreeMap::new();
    for (experiment, offs) in by_experiment {
        let Some(usual) = median(&mut offs.iter().map(|(_, off)| *off).collect::<Vec<f64>>())
        else {
            continue;
        };
        for (at, off) in offs {
            let known = furthest.get(&at).map_or(0.0, |(known, ..)| *known);
            if off >= LEAST_OFF.ln() && off >= FAR * usual && off > known {
                furthest.insert(at, (off, experiment, usual));
            }
        }
    }
    let named: Vec<usize> = furthest.keys().copied().collect();
    let others: Vec<&MachineFacts> =
        (0..machines.len()).filter(|at| !named.contains(at)).map(|at| machines[at].facts).collect();
    let one = |(at, (off, experiment, usual)): (usize, (f64, &str, f64))| {
        let machine = machines[at];
        Some(Unlike {
            machine: machine.facts.id.clone(),
            node: machine.node.map(str::to_owned),
            signature: machine.facts.machine.cpu_signature.clone(),
            off: off.exp(),
            experiment: experiment.to_owned(),
            usual: usual.exp(),
            example: example(machine, experiment, &centres)?,
            differs: differences(machine.facts, &others),
        })
    };
    furthest.into_iter().filter_map(one).collect()
}

/// The median ratio of each question that enough machines answered.
fn centres<'s>(machines: &[&Machine<'s>]) -> BTreeMap<&'s Question, f64> {
    let mut ratios: BTreeMap<&Question, Vec<f64>> = BTreeMap::new();
    for (question, finding) in machines.iter().flat_map(|machine| &machine.answers) {
        ratios.entry(question).or_default().push(finding.ratio);
    }
    ratios.retain(|_, ratios| ratios.len() >= LEAST_JUDGED);
    let centre = |(question, mut ratios): (_, Vec<f64>)| Some((question, median(&mut ratios)?));
    ratios.into_iter().filter_map(centre).collect()
}

fn example(
    machine: &Machine<'_>,
    experiment: &str,
    centres: &BTreeMap<&Question, f64>,
) -> Option<Example> {
    let ours = machine.answers.iter().filter(|(question, _)| question.experiment == experiment);
    let both = ours.filter_map(|(question, finding)| {
        Some((*question, finding.ratio, *centres.get(question)?))
    });
    let far = |ratio: f64, model: f64| (ratio / model).ln().abs();
    let (question, ratio, model) = both.max_by(|a, b| far(a.1, a.2).total_cmp(&far(b.1, b.2)))?;
    Some(Example { question: question.clone(), ratio, model })
}

/// A machine's facts, what matters most first. None where it is not known.
fn facts(facts: &MachineFacts) -> [(&'static str, Option<String>); 9] {
    let machine = &facts.machine;
    let size = |bytes: u64| (bytes > 0).then(|| Bytes(bytes).to_string());
    // Firmware and hypervisors keep a little of the memory.
    let gib = (machine.memory_bytes as f64 / f64::from(1 << 30) / 8.0).ceil() * 8.0;
    [
        ("last-level cache", size(machine.llc_bytes)),
        ("hypervisor", Some(machine.hypervisor.clone().unwrap_or_else(|| "no sign of one".into()))),
        ("memory", Some(format!("about {gib} GiB"))),
        ("CPUs", Some(machine.cpus.to_string())),
        ("frequency governor", machine.governor.clone()),
        ("C library", Some(machine.libc.clone())),
        ("its memcpy non-temporal from", machine.libc_nt_threshold_bytes.and_then(size)),
        ("kernel", (machine.kernel_kind == "host").then(|| machine.kernel_release.clone())),
        ("name of the CPU", Some(machine.cpu_model.clone())),
    ]
}

/// What most others share and this machine has not; what a good part of them have too is no hint.
fn differences(machine: &MachineFacts, others: &[&MachineFacts]) -> Vec<Differs> {
    let mut found = Vec::new();
    for (at, (what, here)) in facts(machine).into_iter().enumerate() {
        let Some(here) = here else { continue };
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for value in others.iter().filter_map(|other| facts(other)[at].1.clone()) {
            *counts.entry(value).or_default() += 1;
        }
        let of: usize = counts.values().sum();
        let same = counts.get(&here).copied().unwrap_or(0) as f64;
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        if let Some((others, _)) = most.filter(|_| same < COMMON * of as f64) {
            found.push(Differs { what, here, others });
        }
    }
    found
}
