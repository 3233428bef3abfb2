//! The question that most advice answers: does it pay, and from what size on?

use super::points::{Gain, Point, cells, figure, ids, losses, tally, wins_from};
use super::{Advice, Decision, Topic, WinsFrom};
use crate::stats::{THROUGHPUT, Verdict, Versus, WALKS_P99, versus};
use crate::units::Bytes;

/// The question, and how the answer is worded.
pub struct Pays<'w, 'a> {
    pub topic: Topic,
    /// Ascending by size.
    pub points: &'w [Point<'a>],
    /// Those with less that are told beside them and decide nothing, where `points` are some of all.
    pub smaller: &'w [Point<'a>],
    /// What pays or does not.
    pub thing: &'w str,
    /// What a size is of: `a call`, `in flight`.
    pub unit: &'w str,
    /// What to do where it pays, from this size on.
    pub setting: &'w dyn Fn(u64) -> String,
    /// What to leave where it does not.
    pub leave: &'w str,
    /// Where all cells together win, it pays if none loses and leaves less than this; none: only
    /// where from some size on every cell wins.
    pub least: Option<f64>,
    /// The command that gives evidence.
    pub run: &'w [&'w str],
}

impl<'w, 'a> Pays<'w, 'a> {
    /// The advice; and the points that it rests on, for whoever wants to measure them again.
    pub fn answer(&self) -> (Advice, Vec<&'w Point<'a>>) {
        let all: Vec<&Point<'a>> = self.points.iter().collect();
        if all.is_empty() {
            let why = format!("{}: nothing was measured on this machine.", self.thing);
            return (Advice::no_evidence(self.topic, why, self.run), all);
        }
        let costs = Some(losses(&all, self.unit));
        let (advice, used) = match wins_from(self.points) {
            Some(from) => self.set(from),
            None => (self.over_all(&all), all),
        };
        (Advice { costs, ..advice }, used)
    }

    fn set(&self, from: u64) -> (Advice, Vec<&'w Point<'a>>) {
        let all = self.smaller.iter().chain(self.points);
        let (above, below): (Vec<&Point<'a>>, Vec<&Point<'a>>) =
            all.partition(|point| point.size_bytes >= from);
        let gain = Gain::of(above.iter().copied());
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
            why.push_str(&format!(" Below that: {}.", tally(&below, self.unit)));
        }
        let loses_below = below.iter().any(|point| point.verdict() == Verdict::Loss);
        let advice = Advice {
            setting: Some((self.setting)(from)),
            wins_from: Some(WinsFrom { bytes: from, loses_below }),
            gain,
            records: ids(&above),
            ..Advice::bare(self.topic, Decision::Set, why)
        };
        (advice, above)
    }

    /// There is no size from which on every cell wins. Over all cells together it may win all the
    /// same, and lose in none, or little: then it pays.
    fn over_all(&self, all: &[&Point<'a>]) -> Advice {
        let gain = Gain::of(all.iter().copied());
        let lost = all.iter().filter(|point| point.verdict() == Verdict::Loss);
        let worst = lost.map(|point| point.versus.ratio).min_by(f64::total_cmp);
        let loses = worst.is_some();
        let is_dear = self.least.is_none_or(|least| worst.is_some_and(|worst| worst < least));
        let (decision, says) = match (gain.map(|gain| gain.verdict()), loses) {
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
            (Decision::Set, Some(smallest)) => (self.setting)(smallest.size_bytes),
            _ => self.leave.to_owned(),
        };
        let mut why =
            format!("{} {says}: of {} {}.", self.thing, cells(all.len()), tally(all, self.unit));
        if !self.smaller.is_empty() {
            let smaller: Vec<&Point<'a>> = self.smaller.iter().collect();
            why.push_str(&format!(" Below that: {}.", tally(&smaller, self.unit)));
        }
        Advice {
            setting: Some(setting),
            gain,
            records: ids(all),
            ..Advice::bare(self.topic, decision, why)
        }
    }
}

/// Says what traffic and the other program come to together, over the cells of the other one's speed.
pub fn say_together(
    advice: &mut Advice,
    used: &[&Point<'_>],
    (mode, other): (&str, &str),
    traffic: &str,
) {
    let by = |metric| {
        let of = |point: &&Point<'_>| versus(point.record, point.cell.cell, mode, other, metric);
        Gain::over(&used.iter().filter_map(of).collect::<Vec<Versus>>())
    };
    if let (Some(whole), Some(tail)) = (by(THROUGHPUT), by(WALKS_P99)) {
        advice.why.push_str(&format!(
            " The figure is the other program's speed, at its 99th percentile {}; {traffic} and that \
             program together come to {}.",
            figure(tail.ratio, tail.ci),
            figure(whole.ratio, whole.ci)
        ));
    }
}

/// `, 1.12x to 1.42x`, of several cells.
fn spread(gain: &Gain) -> String {
    if gain.cells == 1 {
        return format!(", {}", figure(gain.ratio, gain.ci));
    }
    format!(", {:.2}x to {:.2}x", gain.least.0, gain.most.0)
}
