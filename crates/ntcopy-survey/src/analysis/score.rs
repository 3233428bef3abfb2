//! How far a machine is from its model, in one figure for each experiment.
//!
//! The figure is a trimmed mean of squared deviations: what is furthest away is left out, so that
//! one disturbed cell names no machine. How that figure is spread over machines that are as they
//! should be is not taken from theory (a machine's answers go together: they share its memory and
//! its neighbours) but from the fleet itself, by its middle and its upper quantiles, which a few odd
//! machines do not move.

use ntcopy_record::stats::quantile;

use super::centre::{Centre, Centres};
use super::fleet::{Answer, Fleet};
use super::order::median;

/// Machines of a model that has at least this number are held against it: of two, neither is odd.
pub const LEAST_JUDGED: usize = 3;
/// The part of an experiment's answers that is left out, the furthest ones.
const TRIMMED: f64 = 0.2;
/// An experiment with fewer answers does not judge a machine by itself.
const LEAST_ANSWERS: usize = 3;
/// No answer counts for more than this many deviations: beyond that it is only very far away.
const MOST: f64 = 8.0;
/// A fleet of at least this number of machines tells how distances are spread.
const ENOUGH: usize = 20;
/// How many answers say as much as one that is independent of all others, where the fleet is too
/// small to tell.
const TOGETHER: f64 = 3.0;
/// Which part of the machines lies below, and by how many deviations of a normal variable that part
/// is above its middle. Up to one machine in ten may be odd, and the first tells of the others.
const UPPER: (f64, f64) = (0.9, 1.2816);
/// The same further out: what answers have in common (a machine's memory, an experiment's hour)
/// makes the far end longer than the near one tells.
const FAR: (f64, f64) = (0.975, 1.96);
/// A fleet of at least this number of machines is asked for its far end: ten of them may be odd.
const ENOUGH_FAR: usize = 400;

/// One machine's distance from its model, over some of its answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Distance {
    /// The experiment; none: over all of them.
    pub experiment: Option<String>,
    /// Standard deviations above what is usual in this fleet.
    pub deviations: f64,
    /// By which factor its answers are typically off the model's, as a natural logarithm: the
    /// square root of the trimmed mean square.
    pub log_off: f64,
    /// Answers that were held against the model's.
    pub answers: usize,
}

/// One machine's distances.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// Its place in [`Fleet::machines`].
    pub machine: usize,
    /// Its model's place in [`Fleet::models`].
    pub model: usize,
    /// Over everything, then by experiment.
    pub distances: Vec<Distance>,
}

/// A distance before the fleet's spread is known.
struct Raw {
    experiment: Option<usize>,
    /// The cube root of the trimmed mean of squared deviations: nearly normal where those are
    /// (Wilson and Hilferty, PNAS 17, 1931).
    root: f64,
    log_off: f64,
    answers: usize,
}

/// Scores every machine of a model that has enough of them.
#[must_use]
pub fn scores(fleet: &Fleet, centres: &Centres) -> Vec<Score> {
    let (experiments, of) = experiments(fleet);
    let mut raw: Vec<(usize, usize, Vec<Raw>)> = Vec::new();
    for (model, found) in fleet.models.iter().enumerate() {
        if found.machines.len() < LEAST_JUDGED {
            continue;
        }
        for machine in &found.machines {
            raw.push((*machine, model, distances(fleet, *machine, &centres[model], &of)));
        }
    }
    let spread = |experiment: Option<usize>| {
        let all = raw.iter().flat_map(|(_, _, distances)| distances);
        Spread::of(all.filter(|one| one.experiment == experiment))
    };
    let over_all = spread(None);
    let by_experiment: Vec<Spread> = (0..experiments.len()).map(|at| spread(Some(at))).collect();
    let told = |raw: Raw| Distance {
        deviations: match raw.experiment {
            None => over_all.deviations(&raw),
            Some(at) => by_experiment[at].deviations(&raw),
        },
        experiment: raw.experiment.map(|at| experiments[at].clone()),
        log_off: raw.log_off,
        answers: raw.answers,
    };
    raw.into_iter()
        .map(|(machine, model, distances)| Score {
            machine,
            model,
            distances: distances.into_iter().map(told).collect(),
        })
        .collect()
}

/// The experiments, and which one each question belongs to.
fn experiments(fleet: &Fleet) -> (Vec<String>, Vec<usize>) {
    let mut names: Vec<String> =
        fleet.questions.iter().map(|question| question.experiment.clone()).collect();
    names.sort_unstable();
    names.dedup();
    let at = |name: &String| names.binary_search(name).unwrap_or(0);
    let of = fleet.questions.iter().map(|question| at(&question.experiment)).collect();
    (names, of)
}

/// One machine's distances: over everything, then by experiment.
fn distances(
    fleet: &Fleet,
    machine: usize,
    centres: &[Option<Centre>],
    experiment_of: &[usize],
) -> Vec<Raw> {
    let mut all: Vec<(usize, f64, f64)> = Vec::new();
    for answer in &fleet.machines[machine].answers {
        let question = answer.question as usize;
        // What no other machine of the model was asked says nothing.
        let Some(centre) = centres[question].filter(|centre| centre.machines >= LEAST_JUDGED)
        else {
            continue;
        };
        let off = answer.log_ratio - centre.log_ratio;
        all.push((experiment_of[question], off / expected(answer, &centre), off));
    }
    let mut found = Vec::new();
    found.extend(raw(None, all.iter().map(|(_, z, off)| (*z, *off)).collect()));
    let mut experiments: Vec<usize> = all.iter().map(|(experiment, ..)| *experiment).collect();
    experiments.sort_unstable();
    experiments.dedup();
    for experiment in experiments {
        let ours = all.iter().filter(|(its, ..)| *its == experiment);
        found.extend(raw(Some(experiment), ours.map(|(_, z, off)| (*z, *off)).collect()));
    }
    found
}

/// How far off an answer may be: the model's deviation, and more where this machine's own interval
/// is wider than is usual.
pub fn expected(answer: &Answer, centre: &Centre) -> f64 {
    let excess = (answer.error().powi(2) - centre.error.powi(2)).max(0.0);
    (centre.deviation.powi(2) + excess).sqrt()
}

/// Takes (deviations, logarithm of the factor); gives none for too few.
fn raw(experiment: Option<usize>, answers: Vec<(f64, f64)>) -> Option<Raw> {
    if answers.len() < LEAST_ANSWERS {
        return None;
    }
    let squares = answers.iter().map(|(z, _)| z.clamp(-MOST, MOST).powi(2)).collect();
    Some(Raw {
        experiment,
        root: trimmed(squares).cbrt(),
        log_off: log_off(answers.iter().map(|(_, off)| *off)),
        answers: answers.len(),
    })
}

/// The factor, as a logarithm, by which answers are typically off: the square root of the trimmed
/// mean square; 0 of none.
pub fn log_off(offs: impl Iterator<Item = f64>) -> f64 {
    trimmed(offs.map(|off| off.powi(2)).collect()).sqrt()
}

/// The mean without the largest fifth.
fn trimmed(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let kept = values.len() - (values.len() as f64 * TRIMMED).ceil() as usize;
    let kept = &values[..kept.max(usize::from(!values.is_empty()))];
    if kept.is_empty() { 0.0 } else { kept.iter().sum::<f64>() / kept.len() as f64 }
}

/// How distances are spread over machines that are as they should be.
struct Spread {
    middle: f64,
    deviation: f64,
    /// Answers of the machine in the middle: with fewer, distances are spread more.
    answers: f64,
}

impl Spread {
    fn of<'r>(distances: impl Iterator<Item = &'r Raw>) -> Spread {
        let (roots, answers): (Vec<f64>, Vec<f64>) =
            distances.map(|one| (one.root, one.answers as f64)).unzip();
        let answers_in_the_middle = median(answers).unwrap_or(1.0);
        let by_theory = by_theory(answers_in_the_middle);
        let count = roots.len();
        let (middle, deviation) = match median(roots.clone()) {
            Some(middle) if count >= ENOUGH => {
                // Never tighter than if every answer stood for itself.
                let least = (2.0 / (9.0 * answers_in_the_middle)).sqrt();
                (middle, upwards(&roots, middle).max(least))
            }
            _ => by_theory,
        };
        Spread { middle, deviation, answers: answers_in_the_middle }
    }

    fn deviations(&self, raw: &Raw) -> f64 {
        let wider = (self.answers / raw.answers as f64).sqrt().max(1.0);
        (raw.root - self.middle) / (self.deviation * wider)
    }
}

/// The deviation of distances above their middle.
fn upwards(roots: &[f64], middle: f64) -> f64 {
    let by = |(part, deviations): (f64, f64)| (quantile(roots, part) - middle) / deviations;
    if roots.len() < ENOUGH_FAR { by(UPPER) } else { by(UPPER).max(by(FAR)) }
}

/// Middle and deviation of the cube root of a chi-squared variable by its degrees of freedom; that
/// a fifth is trimmed makes the true middle smaller, so this errs on the side of naming no machine.
fn by_theory(answers: f64) -> (f64, f64) {
    let free = (answers / TOGETHER).max(1.0);
    (1.0 - 2.0 / (9.0 * free), (2.0 / (9.0 * free)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_furthest_away_is_left_out() {
        assert_eq!(trimmed(vec![1.0, 1.0, 100.0, 1.0, 1.0]), 1.0);
        assert_eq!(trimmed(vec![2.0, 1.0, 3.0]), 1.5);
        assert_eq!(trimmed(vec![]), 0.0);
        assert_eq!(trimmed(vec![7.0]), 7.0);
        assert!((log_off([0.1, -0.1, 0.1, -0.1, 5.0].into_iter()) - 0.1).abs() < 1e-12);
    }

    #[test]
    fn one_disturbed_cell_does_not_make_a_machine_far_away() {
        let raw = |answers: Vec<(f64, f64)>| raw(None, answers).unwrap();
        let mut usual: Vec<(f64, f64)> =
            [-1.2, 0.3, 0.8, -0.5, 1.1, -0.2, 0.6, -0.9, 0.1, 0.4].map(|z| (z, z * 0.02)).into();
        let before = raw(usual.clone());
        usual[4] = (40.0, 0.8);
        let disturbed = raw(usual);
        let moved = (disturbed.root - before.root).abs();
        assert!(moved < 0.25 && disturbed.log_off < 0.02, "{} {}", moved, disturbed.log_off);
        assert!(
            super::raw(None, vec![(9.0, 1.0), (9.0, 1.0)]).is_none(),
            "two answers are too few"
        );
    }
}
