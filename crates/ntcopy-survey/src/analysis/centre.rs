//! What is usual for a CPU model: the middle of its machines' answers, and how far apart they are.
//!
//! Medians and median absolute deviations, so that a few odd machines move neither. A model of few
//! machines has a poor deviation of its own; it borrows from what is usual for questions of that
//! kind over all models, as if that were known from `BORROWED` more machines.

use std::collections::HashMap;

use super::fleet::Fleet;
use super::order::median;

/// The deviation that is usual for a kind of question counts as if this many machines had it.
const BORROWED: f64 = 8.0;
/// A model of at least this number of machines has a say, by its own deviation, in what is usual.
const ENOUGH: usize = 5;
/// Where no model has that many: 2 %, which is what repeating a measurement moves it by.
const USUAL: f64 = 0.02;
/// No deviation is believed to be smaller: half a percent.
const LEAST: f64 = 0.005;
/// The standard deviation of a normal variable by its median absolute deviation.
const NORMAL: f64 = 1.4826;

/// A model's usual answer to one question.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Centre {
    /// The median over machines, as a natural logarithm.
    pub log_ratio: f64,
    /// How far machines of the model usually are from it: one standard deviation.
    pub deviation: f64,
    /// The standard error that one machine's answer usually has.
    pub error: f64,
    /// Machines that answered.
    pub machines: usize,
}

/// For each model, by its place in [`Fleet::models`], the centre of each question, by its place in
/// [`Fleet::questions`].
pub type Centres = Vec<Vec<Option<Centre>>>;

/// Finds them.
#[must_use]
pub fn centres(fleet: &Fleet) -> Centres {
    let mut centres: Centres =
        fleet.models.iter().map(|model| own(fleet, &model.machines)).collect();
    let (kinds, usual) = usual(fleet, &centres);
    for model in &mut centres {
        for (question, centre) in model.iter_mut().enumerate() {
            let Some(centre) = centre else { continue };
            let borrowed = usual[kinds[question]];
            let own = (centre.machines - 1) as f64;
            let variance =
                (own * centre.deviation.powi(2) + BORROWED * borrowed.powi(2)) / (own + BORROWED);
            centre.deviation = variance.sqrt().max(LEAST);
        }
    }
    centres
}

/// The centres of one model, each deviation as its machines alone have it.
fn own(fleet: &Fleet, machines: &[usize]) -> Vec<Option<Centre>> {
    let mut answers: Vec<(Vec<f64>, Vec<f64>)> = vec![Default::default(); fleet.questions.len()];
    for answer in machines.iter().flat_map(|machine| &fleet.machines[*machine].answers) {
        let (ratios, errors) = &mut answers[answer.question as usize];
        ratios.push(answer.log_ratio);
        errors.push(answer.error());
    }
    answers.into_iter().map(|(ratios, errors)| centre(ratios, errors)).collect()
}

fn centre(ratios: Vec<f64>, errors: Vec<f64>) -> Option<Centre> {
    let machines = ratios.len();
    let log_ratio = median(ratios.clone())?;
    let away = ratios.iter().map(|ratio| (ratio - log_ratio).abs()).collect();
    Some(Centre { log_ratio, deviation: NORMAL * median(away)?, error: median(errors)?, machines })
}

/// Questions by kind, and the deviation that is usual for each kind: the median over all models
/// that have machines enough.
fn usual(fleet: &Fleet, centres: &Centres) -> (Vec<usize>, Vec<f64>) {
    let mut numbers: HashMap<String, usize> = HashMap::new();
    let kinds: Vec<usize> = fleet
        .questions
        .iter()
        .map(|question| {
            let next = numbers.len();
            *numbers.entry(question.kind()).or_insert(next)
        })
        .collect();
    let mut deviations: Vec<Vec<f64>> = vec![Vec::new(); numbers.len()];
    for model in centres {
        for (question, centre) in model.iter().enumerate() {
            if let Some(centre) = centre.filter(|centre| centre.machines >= ENOUGH) {
                deviations[kinds[question]].push(centre.deviation);
            }
        }
    }
    let usual = deviations.into_iter().map(|all| median(all).unwrap_or(USUAL)).collect();
    (kinds, usual)
}
