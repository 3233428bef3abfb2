//! A fleet's summaries, judged by CPU model. Pure functions of summaries: the same ones give the
//! same answer, in whatever order they come.
//!
//! [`fleet`] sorts summaries by machine and model; [`order`] has medians over machines and their
//! intervals; [`series`] is what a model gains, from which size; [`centre`] is what is usual for a
//! model, [`score`] how far a machine is from it, [`unlike`] which machines are named for it, and
//! [`facts`] what they differ in; [`advice`] pools a model's machines for `ntcopy advise`.
//!
//! A CPU model is a CPUID signature (vendor, family, model, stepping), never a label.

pub mod advice;
pub mod centre;
pub mod facts;
pub mod fleet;
pub mod order;
pub mod score;
pub mod series;
pub mod tail;
pub mod unlike;

use std::collections::BTreeSet;

use crate::summary::Summary;
use fleet::Fleet;
use series::Series;
use unlike::Unlike;

/// All that the report says of a fleet.
#[derive(Debug, Clone, PartialEq)]
pub struct Analysis {
    /// The machines and their answers.
    pub fleet: Fleet,
    /// The CPU models, those with the most machines first.
    pub models: Vec<ModelView>,
    /// The machines that behave unlike their model, the least usual first.
    pub unlike: Vec<Unlike>,
    /// Machines that were held against their model.
    pub judged: usize,
    /// How far each of [`Fleet::machines`] typically is from its model, as the logarithm of a
    /// factor; infinite where there is no telling.
    pub off: Vec<f64>,
}

/// What is known of one CPU model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelView {
    /// CPUID vendor, family, model and stepping.
    pub signature: String,
    /// What its machines call themselves, the most common name first.
    pub names: Vec<String>,
    /// Its machines: places in [`Fleet::machines`].
    pub machines: Vec<usize>,
    /// Those of them that behave like it: what [`ModelView::series`] is over.
    pub like: Vec<usize>,
    /// Records that count.
    pub records: usize,
    /// What it gains, and from which size.
    pub series: Vec<Series>,
    /// What few machines keep from being said, in a sentence.
    pub note: Option<String>,
    /// The non-temporal thresholds of the C libraries that its machines have.
    pub thresholds: Vec<facts::Thresholds>,
}

/// Judges a fleet.
#[must_use]
pub fn analyse(summaries: &[Summary]) -> Analysis {
    let fleet = Fleet::of(summaries);
    let centres = centre::centres(&fleet);
    let scores = score::scores(&fleet, &centres);
    let mut unlike = unlike::find(&fleet, &centres, &scores);
    unlike.sort_by(|a, b| a.chance.total_cmp(&b.chance).then(b.off.total_cmp(&a.off)));
    let named: BTreeSet<usize> = unlike.iter().map(|one| one.machine).collect();
    let mut models: Vec<ModelView> =
        (0..fleet.models.len()).map(|model| view(&fleet, model, &named)).collect();
    models.sort_by(|a, b| {
        b.machines.len().cmp(&a.machines.len()).then_with(|| a.signature.cmp(&b.signature))
    });
    let mut off = vec![f64::INFINITY; fleet.machines.len()];
    for score in &scores {
        off[score.machine] = score.distances.first().map_or(f64::INFINITY, |all| all.log_off);
    }
    Analysis { models, unlike, judged: scores.len(), off, fleet }
}

fn view(fleet: &Fleet, model: usize, named: &BTreeSet<usize>) -> ModelView {
    let machines = fleet.models[model].machines.clone();
    let like: Vec<usize> =
        machines.iter().copied().filter(|machine| !named.contains(machine)).collect();
    ModelView {
        signature: fleet.models[model].signature.clone(),
        names: facts::names(fleet, &machines),
        records: machines.iter().map(|machine| fleet.machines[*machine].records.len()).sum(),
        series: series::all(fleet, &like),
        note: note(like.len()),
        thresholds: facts::thresholds(fleet, &like),
        machines,
        like,
    }
}

/// What this number of machines cannot show.
fn note(machines: usize) -> Option<String> {
    match machines {
        0 => Some("no machine is left that behaves like the others".to_owned()),
        1 => Some(
            "one machine: no interval over machines, and nothing to hold it against; the intervals \
             are those of its own pairs"
                .to_owned(),
        ),
        count if count < score::LEAST_JUDGED => Some(format!(
            "{count} machines: no interval over machines, and too few to tell which is unlike the \
             others; what stands for intervals is their span"
        )),
        count if count < order::LEAST_MACHINES => Some(format!(
            "{count} machines: too few for an interval over machines; what stands for one is their \
             span"
        )),
        _ => None,
    }
}
