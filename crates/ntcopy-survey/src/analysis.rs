//! What a fleet's summaries say by CPU model. Pure functions of summaries: the same ones give the
//! same answer, in whatever order they come.
//!
//! A CPU model is a CPUID signature (vendor, family, model, stepping), never a label. [`over`] has
//! medians over machines, [`series`] what a model gains and from which size, [`unlike`] which
//! machines are unlike their model.

pub mod over;
pub mod series;
pub mod unlike;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::summary::{Finding, MachineFacts, MachineId, Question, Summary};
use series::Series;
use unlike::Unlike;

/// All that the report says of a fleet. As JSON it is the report for programs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Analysis {
    pub records: usize,
    /// Those with a record that counts.
    pub machines: usize,
    /// Machines that were held against their model.
    pub judged: usize,
    /// Records that do not count, by reason.
    pub left_out: BTreeMap<String, usize>,
    /// The machines that behave unlike their model, the furthest first.
    pub unlike: Vec<Unlike>,
    /// The CPU models, those with the most machines first.
    pub models: Vec<Model>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Model {
    pub signature: String,
    /// What its machines call themselves.
    pub names: BTreeSet<String>,
    pub machines: usize,
    /// Those of them that are unlike it, and that [`Model::series`] leaves out.
    pub unlike: usize,
    pub records: usize,
    pub series: Vec<Series>,
}

/// A machine and its answers; of a question that was asked twice, the newest.
pub(crate) struct Machine<'s> {
    pub facts: &'s MachineFacts,
    pub node: Option<&'s str>,
    records: usize,
    pub answers: BTreeMap<&'s Question, &'s Finding>,
}

#[must_use]
pub fn analyse(summaries: &[Summary]) -> Analysis {
    let mut left_out = BTreeMap::new();
    let machines = machines(summaries, &mut left_out);
    let mut by_model: BTreeMap<&str, Vec<&Machine<'_>>> = BTreeMap::new();
    for machine in &machines {
        by_model.entry(&machine.facts.machine.cpu_signature).or_default().push(machine);
    }
    let (mut unlike, mut judged, mut models) = (Vec::new(), 0, Vec::new());
    for (signature, machines) in by_model {
        let found = unlike::find(&machines);
        judged += if machines.len() < unlike::LEAST_JUDGED { 0 } else { machines.len() };
        let is_like = |one: &&&Machine<'_>| found.iter().all(|odd| odd.machine != one.facts.id);
        let like: Vec<&Machine<'_>> = machines.iter().filter(is_like).copied().collect();
        models.push(Model {
            signature: signature.to_owned(),
            names: machines.iter().map(|one| one.facts.machine.cpu_model.clone()).collect(),
            machines: machines.len(),
            unlike: found.len(),
            records: machines.iter().map(|one| one.records).sum(),
            series: series::all(&like),
        });
        unlike.extend(found);
    }
    // Stable: models of as many machines stay in the order of their signatures.
    models.sort_by_key(|model| std::cmp::Reverse(model.machines));
    unlike.sort_by(|a, b| b.off.total_cmp(&a.off));
    let (records, machines) = (summaries.len(), machines.len());
    Analysis { records, machines, judged, left_out, unlike, models }
}

fn machines<'s>(
    summaries: &'s [Summary],
    left_out: &mut BTreeMap<String, usize>,
) -> Vec<Machine<'s>> {
    let mut newest_first: Vec<&Summary> = summaries.iter().collect();
    newest_first.sort_by(|a, b| {
        b.taken_unix_ns.cmp(&a.taken_unix_ns).then_with(|| a.record.cmp(&b.record))
    });
    let mut machines: BTreeMap<&MachineId, Machine<'_>> = BTreeMap::new();
    for summary in newest_first {
        let facts = &summary.machine;
        let found = machines.get(&facts.id).map(|machine| &machine.facts.machine.cpu_signature);
        let is_of_earlier_cpu = found.is_some_and(|cpu| *cpu != facts.machine.cpu_signature);
        let why = match &summary.not_counted {
            Some(why) => Some(why.as_str()),
            None if is_of_earlier_cpu => Some("it is of the CPU that the machine had before"),
            None => None,
        };
        if let Some(why) = why {
            *left_out.entry(why.to_owned()).or_default() += 1;
            continue;
        }
        let machine = machines.entry(&facts.id).or_insert_with(|| Machine {
            facts,
            node: None,
            records: 0,
            answers: BTreeMap::new(),
        });
        // A booted kernel says nothing of the kernel that the machine has.
        let is_host = |facts: &MachineFacts| facts.machine.kernel_kind == "host";
        if is_host(facts) && !is_host(machine.facts) {
            machine.facts = facts;
        }
        machine.node = machine.node.or(summary.node.as_deref());
        machine.records += 1;
        for finding in &summary.findings {
            machine.answers.entry(&finding.question).or_insert(finding);
        }
    }
    machines.into_values().collect()
}
