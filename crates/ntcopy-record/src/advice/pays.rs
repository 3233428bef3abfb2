//! The question that most advice answers: does it pay, and from what size on?

use super::points::{Gain, Point, cells, ids, losses, lost, split, tally, wins_from};
use super::{Advice, Decision, Topic, WinsFrom};
use crate::stats::{THROUGHPUT, Verdict, Versus, WALKS_P99, versus};
use crate::units::Bytes;

/// The question, and how the answer is worded.
pub struct Pays<'w> {
    pub topic: Topic,
    /// What pays or does not.
    pub thing: &'w str,
    /// What a size is of: `a call`, `in flight`.
    pub unit: &'w str,
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
        self.answer_from(points, 0)
    }

    /// The same, where as many points with less are told beside the others and decide nothing.
    pub fn answer_from<'p, 'a>(
        &self,
        points: &'p [Point<'a>],
        beside: usize,
    ) -> (Advice, &'p [Point<'a>]) {
        let (beside, decisive) = points.split_at(beside);
        if decisive.is_empty() {
            let why = format!("{}: nothing was measured on this machine.", self.thing);
            return (Advice::no_evidence(self.topic, why, self.run), decisive);
        }
        let (advice, used) = match wins_from(decisive) {
            Some(from) => {
                let (below, above) = split(points, from);
                (self.set(from, below, above), above)
            }
            None => (self.over_all(beside, decisive), decisive),
        };
        let costs = Some(losses(decisive, self.unit));
        (Advice { costs, records: ids(used), ..advice }, used)
    }

    fn set(&self, from: u64, below: &[Point<'_>], above: &[Point<'_>]) -> Advice {
        let gain = Gain::of(above);
        let mut why = format!(
            "{} win in every cell from {} {} on ({}{}).",
            self.thing,
            Bytes(from),
            self.unit,
            cells(above.len()),
            gain.map_or(String::new(), |gain| spread(&gain)),
        );
        if below.is_empty() {
            why.push_str(" Nothing smaller was measured.");
        } else {
            why.push_str(&format!(" Below that: {}.", tally(below, self.unit)));
        }
        Advice {
            setting: Some((self.setting)(Bytes(from))),
            wins_from: Some(WinsFrom { bytes: from, loses_below: lost(below).next().is_some() }),
            gain,
            ..Advice::bare(self.topic, Decision::Set, why)
        }
    }

    /// There is no size from which on every cell wins. Over all cells together it may win all the
    /// same, and lose in none, or little: then it pays.
    fn over_all(&self, beside: &[Point<'_>], all: &[Point<'_>]) -> Advice {
        let gain = Gain::of(all);
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
            (Decision::Set, Some(smallest)) => (self.setting)(Bytes(smallest.size_bytes)),
            _ => self.leave.to_owned(),
        };
        let mut why =
            format!("{} {says}: of {} {}.", self.thing, cells(all.len()), tally(all, self.unit));
        if !beside.is_empty() {
            why.push_str(&format!(" Below that: {}.", tally(beside, self.unit)));
        }
        Advice { setting: Some(setting), gain, ..Advice::bare(self.topic, decision, why) }
    }
}

/// Says what traffic and the other program come to together, over the cells of the other one's speed.
pub fn say_together(advice: &mut Advice, used: &[Point<'_>], (mode, other): (&str, &str)) {
    let by = |metric| {
        let of = |point: &Point<'_>| versus(point.record, point.cell.cell, mode, other, metric);
        Gain::over(&used.iter().filter_map(of).collect::<Vec<Versus>>())
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
fn spread(gain: &Gain) -> String {
    if gain.cells == 1 {
        return format!(", {gain}");
    }
    format!(", {:.2}x to {:.2}x", gain.least.ratio, gain.most.ratio)
}
