//! The question that most advice answers: does it pay, and from what size on?

use super::{Advice, Decision, Topic};
use crate::claims::{
    Claim, Point, Question, Size, cells, ids, losses, lost, outcomes, split, wins_from,
};
use crate::stats::{THROUGHPUT, Verdict, WALKS_P99};
use ntcopy_record::units::Bytes;

/// The question, and how the answer is worded.
pub struct Pays<'w> {
    pub topic: Topic,
    /// What pays or does not.
    pub thing: &'w str,
    /// What to do where it pays, from this size on.
    pub setting: &'w dyn Fn(Bytes) -> String,
    /// What to leave where it does not.
    pub leave: &'w str,
    /// Where all cells together win, it pays if none loses and leaves less than this; none: only
    /// where from some size on every cell wins.
    pub least: Option<f64>,
    /// The command that gives evidence.
    pub run: &'w str,
}

impl Pays<'_> {
    /// The advice by points that ascend, and those of them that it rests on.
    pub fn answer<'p, 'a>(&self, points: &'p [Point<'a>]) -> (Advice, &'p [Point<'a>]) {
        if points.is_empty() {
            let why = format!("{}: nothing was measured on this machine.", self.thing);
            return (Advice::no_evidence(self.topic, why, self.run), points);
        }
        let (advice, used) = match wins_from(points) {
            Some((from, _)) => {
                let (below, above) = split(points, from.bytes);
                (self.set(from, below, above), above)
            }
            None => (self.over_all(points), points),
        };
        let costs = Some(losses(points));
        (Advice { costs, records: ids(used), ..advice }, used)
    }

    fn set(&self, from: Size, below: &[Point<'_>], above: &[Point<'_>]) -> Advice {
        let gain = Claim::of(above);
        let mut why = format!(
            "{} win in every cell from {from} on ({}{}).",
            self.thing,
            cells(above.len()),
            gain.map_or(String::new(), |gain| spread(&gain)),
        );
        if below.is_empty() {
            why.push_str(" Nothing smaller was measured.");
        } else {
            why.push_str(&format!(" Below that: {}.", outcomes(below)));
        }
        Advice {
            setting: Some((self.setting)(Bytes(from.bytes))),
            wins_from: Some(from.bytes),
            gain,
            ..Advice::bare(self.topic, Decision::Set, why)
        }
    }

    /// There is no size from which on every cell wins. Over all cells together it may win all the
    /// same, and lose in none, or little: then it pays.
    fn over_all(&self, all: &[Point<'_>]) -> Advice {
        let gain = Claim::of(all);
        let worst = lost(all).map(|point| point.versus.ratio).min_by(f64::total_cmp);
        let loses = worst.is_some();
        let is_dear = self.least.is_none_or(|least| worst.is_some_and(|worst| worst < least));
        let (decision, says) = match (gain.map(|gain| gain.verdict), loses) {
            (Some(Verdict::Win), _) if !is_dear => (Decision::Set, "win over all cells together"),
            (Some(Verdict::Loss), _) => (Decision::Leave, "do not pay"),
            (_, true) => {
                (Decision::AsItIs, "win and lose, and at no size in every cell from there on")
            }
            (Some(Verdict::Win), _) => {
                (Decision::AsItIs, "win over all cells, and at no size in every cell from there on")
            }
            (Some(Verdict::Equal), _) => (Decision::AsItIs, "make no difference"),
            _ => (Decision::Unresolved, "are unresolved"),
        };
        let setting = match (decision, all.first()) {
            (Decision::Set, Some(smallest)) => (self.setting)(Bytes(smallest.size.bytes)),
            _ => self.leave.to_owned(),
        };
        let why = format!("{} {says}: of {} {}.", self.thing, cells(all.len()), outcomes(all));
        Advice { setting: Some(setting), gain, ..Advice::bare(self.topic, decision, why) }
    }
}

/// Says what traffic and the other program come to together, over the cells of the other one's speed.
pub fn say_together(advice: &mut Advice, used: &[Point<'_>]) {
    let by = |metric| {
        let asked = used
            .iter()
            .filter_map(|one| Question { metric, ..one.question }.of(one.record, one.cell));
        Claim::of(&asked.collect::<Vec<Point<'_>>>())
    };
    if let (Some(whole), Some(tail)) = (by(THROUGHPUT), by(WALKS_P99)) {
        advice.why.push_str(&format!(
            " The figure is the other program's speed, at its 99th percentile {tail}; sends and that \
             program together come to {whole}."
        ));
    }
}

/// Says which kernel the figures are of: not always the one that runs.
pub fn name_kernel(advice: &mut Advice, used: &[Point<'_>]) {
    let machines = used.first().map(|point| &point.record.machine);
    if let Some(machine) = machines.filter(|machine| machine.kernel_kind != "host") {
        advice.why.push_str(&format!(
            " Measured in {} ({}), whose system calls cost more than a running kernel's.",
            machine.kernel_release, machine.kernel_kind
        ));
    }
}

/// `, 1.12x to 1.42x`, of several cells.
fn spread(gain: &Claim) -> String {
    if gain.cells == 1 { format!(", {gain}") } else { format!(", {}", gain.range()) }
}
