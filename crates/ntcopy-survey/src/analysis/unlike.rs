//! The machines that behave unlike their model.
//!
//! Every machine is asked about once a survey, so that some will look odd by chance alone: of
//! 10,000 at a level of 1 in 100, a hundred. The chances are therefore adjusted for how many
//! machines were asked about ([`super::tail::adjusted`]), and within a machine for how many
//! experiments were. And a machine has to be off by enough to matter: what is a hundred standard
//! deviations away and 1 % slower is left in peace.

use super::centre::Centres;
use super::facts::{Differs, differences};
use super::fleet::Fleet;
use super::order::Over;
use super::score::{Distance, LEAST_JUDGED, Score, expected, log_off};
use super::tail::{above, adjusted};
use crate::summary::Question;

/// The part of the machines that are named which is expected to be named by chance.
pub const LEVEL: f64 = 0.01;
/// A machine is named only if it is typically off by at least this factor: 5 %.
pub const LEAST_OFF: f64 = 1.05;
/// A machine is unlike others in an experiment from this number of deviations on.
const CLEARLY: f64 = 3.0;
/// Another model's behaviour is a machine's if the machine is off that by no more than this part of
/// what it is off its own.
const NEARER: f64 = 0.5;
/// The share of a machine's answers that another model needs to be compared with it.
const COMMON: f64 = 0.5;
/// The number of examples that are kept of each machine.
const EXAMPLES: usize = 3;

/// Another model, which a machine behaves like.
#[derive(Debug, Clone, PartialEq)]
pub struct Resembles {
    /// Its signature.
    pub signature: String,
    /// The factor by which the machine is typically off it.
    pub off: f64,
}

/// An answer that shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Example {
    /// What was asked.
    pub question: Question,
    /// The machine's ratio.
    pub here: f64,
    /// The model's, over its machines.
    pub model: Over,
}

/// A machine that is unlike its model.
#[derive(Debug, Clone, PartialEq)]
pub struct Unlike {
    /// Its place in [`Fleet::machines`].
    pub machine: usize,
    /// Its CPU's signature.
    pub signature: String,
    /// The factor by which its answers are typically off the model's, above 1.
    pub off: f64,
    /// The chance of something so odd among this many machines that are all as they should be.
    pub chance: f64,
    /// The experiments in which it is; none: only in all of them together.
    pub experiments: Vec<String>,
    /// The model that it behaves like, if there is one.
    pub resembles: Option<Resembles>,
    /// In what its record says that it differs; nothing where no recorded fact does.
    pub differs: Vec<Differs>,
    /// Where it shows most.
    pub examples: Vec<Example>,
}

/// Finds them.
#[must_use]
pub fn find(fleet: &Fleet, centres: &Centres, scores: &[Score]) -> Vec<Unlike> {
    let chances: Vec<f64> = scores.iter().map(|score| chance(&score.distances)).collect();
    let adjusted = adjusted(&chances);
    let named: Vec<(&Score, f64)> = scores
        .iter()
        .zip(adjusted)
        .filter(|(score, chance)| *chance <= LEVEL && is_far(&score.distances))
        .collect();
    named.iter().map(|(score, chance)| unlike(fleet, centres, score, *chance, &named)).collect()
}

/// The least likely of a machine's distances, adjusted for how many it has.
fn chance(distances: &[Distance]) -> f64 {
    let least = distances.iter().map(|one| above(one.deviations)).fold(1.0, f64::min);
    (least * distances.len() as f64).min(1.0)
}

/// Whether it matters: in what is unusual, it is off by enough.
fn is_far(distances: &[Distance]) -> bool {
    distances.iter().any(|one| one.deviations >= CLEARLY && one.log_off >= LEAST_OFF.ln())
}

fn unlike(
    fleet: &Fleet,
    centres: &Centres,
    score: &Score,
    chance: f64,
    named: &[(&Score, f64)],
) -> Unlike {
    let is_named = |machine: &usize| named.iter().any(|(score, _)| score.machine == *machine);
    let all = &fleet.models[score.model].machines;
    let others: Vec<usize> = all.iter().copied().filter(|machine| !is_named(machine)).collect();
    let clearly = score.distances.iter().filter(|one| one.deviations >= CLEARLY);
    let off = clearly.clone().map(|one| one.log_off).fold(0.0, f64::max);
    Unlike {
        machine: score.machine,
        signature: fleet.models[score.model].signature.clone(),
        off: off.exp(),
        chance,
        experiments: clearly.filter_map(|one| one.experiment.clone()).collect(),
        resembles: resembles(fleet, centres, score),
        differs: differences(fleet, score.machine, &others),
        examples: examples(fleet, centres, score, &others),
    }
}

/// The model whose centre is nearest, if it is much nearer than the machine's own.
fn resembles(fleet: &Fleet, centres: &Centres, score: &Score) -> Option<Resembles> {
    let own = off(fleet, centres, score.machine, score.model)?;
    let others = (0..fleet.models.len()).filter(|model| *model != score.model);
    let (nearest, model) = others
        .filter_map(|model| Some((off(fleet, centres, score.machine, model)?, model)))
        .min_by(|a, b| a.0.total_cmp(&b.0))?;
    (nearest <= NEARER * own)
        .then(|| Resembles { signature: fleet.models[model].signature.clone(), off: nearest.exp() })
}

/// How far a machine is from a model's centre: the logarithm of the factor. None where the model
/// was not asked enough of the same, or has too few machines to have a centre.
fn off(fleet: &Fleet, centres: &Centres, machine: usize, model: usize) -> Option<f64> {
    let answers = &fleet.machines[machine].answers;
    if fleet.models[model].machines.len() < LEAST_JUDGED {
        return None;
    }
    let offs: Vec<f64> = answers
        .iter()
        .filter_map(|answer| {
            let centre = centres[model][answer.question as usize]?;
            Some(answer.log_ratio - centre.log_ratio)
        })
        .collect();
    let is_enough = offs.len() as f64 >= COMMON * answers.len() as f64 && !offs.is_empty();
    is_enough.then(|| log_off(offs.into_iter()))
}

/// The answers that are furthest from the model's, each of another kind of question.
fn examples(fleet: &Fleet, centres: &Centres, score: &Score, others: &[usize]) -> Vec<Example> {
    let mut all: Vec<(f64, u32, f64)> = Vec::new();
    for answer in &fleet.machines[score.machine].answers {
        let Some(centre) = centres[score.model][answer.question as usize] else { continue };
        let off = answer.log_ratio - centre.log_ratio;
        all.push(((off / expected(answer, &centre)).abs(), answer.question, answer.log_ratio));
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut kinds: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for (_, number, log_ratio) in all {
        let question = Question::clone(&fleet.questions[number as usize]);
        let kind = question.kind();
        let theirs = others
            .iter()
            .filter_map(|other| Some(fleet.machines[*other].answer(number)?.log_ratio));
        let Some(model) = Over::of(theirs.collect()) else { continue };
        if kinds.contains(&kind) || found.len() == EXAMPLES {
            continue;
        }
        kinds.push(kind);
        let model = model.map(f64::exp);
        found.push(Example { question, here: log_ratio.exp(), model });
    }
    found
}
