//! The question that most advice answers: does it pay, and from what size on?

use super::{About, Advice, Decision, Guest, Measure, Reason, Together, Topic};
use crate::claims::{Claim, Outcomes, Point, Question, ids, lost, split, wins_from};
use crate::stats::{THROUGHPUT, Verdict, WALKS_P99};

/// The question.
pub struct Pays {
    pub topic: Topic,
    pub about: About,
    /// Where all cells together win, it pays if none loses and leaves less than this; none: only
    /// where from some size on every cell wins.
    pub least: Option<f64>,
}

impl Pays {
    /// The advice by points that ascend, and those of them that it rests on.
    pub fn answer<'p, 'a>(&self, points: &'p [Point<'a>]) -> (Advice, &'p [Point<'a>]) {
        let about = self.about.clone();
        if points.is_empty() {
            return (Advice::no_evidence(self.topic, about, Measure::Usual), points);
        }
        let Some((from, _)) = wins_from(points) else {
            return (Advice { about, records: ids(points), ..self.over_all(points) }, points);
        };
        let (below, above) = split(points, from.bytes);
        let below = (!below.is_empty()).then(|| Outcomes::of(below));
        let advice = Advice {
            about,
            from_bytes: Some(from.bytes),
            gain: Claim::of(above),
            records: ids(above),
            ..Advice::bare(self.topic, Decision::Set, Reason::WinsFrom { from, below })
        };
        (advice, above)
    }

    /// There is no size from which on every cell wins. Over all cells together it may win all the
    /// same, and lose in none, or little: then it pays.
    fn over_all(&self, all: &[Point<'_>]) -> Advice {
        let worst = lost(all).map(|point| point.versus.ratio).min_by(f64::total_cmp);
        let is_dear = self.least.is_none_or(|least| worst.is_some_and(|worst| worst < least));
        let gain = Claim::of(all);
        let together = gain.map_or(Verdict::Unresolved, |gain| gain.verdict);
        let decision = match together {
            Verdict::Win if !is_dear => Decision::Set,
            Verdict::Loss => Decision::Leave,
            Verdict::Unresolved if worst.is_none() => Decision::Unresolved,
            _ => Decision::AsItIs,
        };
        let smallest = all.first().map(|point| point.size.bytes);
        Advice {
            from_bytes: smallest.filter(|_| decision == Decision::Set),
            gain,
            ..Advice::bare(self.topic, decision, Reason::OverAll(Outcomes::of(all)))
        }
    }
}

/// What traffic and the other program come to together, over the cells of the other one's speed.
pub fn together(used: &[Point<'_>]) -> Option<Together> {
    let by = |metric| {
        let asked = used
            .iter()
            .filter_map(|one| Question { metric, ..one.question }.of(one.record, one.cell));
        Claim::of(&asked.collect::<Vec<Point<'_>>>())
    };
    Some(Together { whole: by(THROUGHPUT)?, tail: by(WALKS_P99)? })
}

/// The kernel that the figures are of, where it is not the one that runs.
pub fn guest(used: &[Point<'_>]) -> Option<Guest> {
    let machine = &used.first()?.record.machine;
    (machine.kernel_kind != "host").then(|| Guest {
        release: machine.kernel_release.clone(),
        kind: machine.kernel_kind.clone(),
    })
}
