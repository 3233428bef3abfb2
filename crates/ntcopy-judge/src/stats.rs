//! Turns samples into ratios with intervals. Pure functions of records.
//!
//! A ratio is taken inside an interleaved group (throughput of the mode over
//! throughput of the baseline, measured moments apart), so that a drift of the
//! machine hits both. The result is the median of those ratios, with a
//! percentile bootstrap interval over the groups. `docs/design/methodology.md` says why.

mod bootstrap;
pub mod footprint;
pub mod looks;
mod metric;
mod sample;
pub mod turns;

use std::collections::BTreeMap;

use ntcopy_record::{MISSES_PERMILLE, Sample};

pub use metric::*;
pub use sample::{is_short, quantile_ns};

pub use crate::ratio::{BAR, Verdict};
pub use bootstrap::{interval, interval_of_geomean, median};

use crate::ratio::Ratio;

/// The fewest interleaved groups that make a result.
///
/// The interval of a median of five is their whole span, and holds the truth in
/// 94 of 100 cases; of four, in 88. Below five it would promise too much.
pub const MIN_PAIRS: usize = 5;

/// Bytes of a line of a cache.
const LINE_BYTES: f64 = 64.0;

/// How results came out: how many of each verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    pub wins: usize,
    pub losses: usize,
    pub equal: usize,
    pub unresolved: usize,
}

impl FromIterator<Verdict> for Tally {
    fn from_iter<I: IntoIterator<Item = Verdict>>(verdicts: I) -> Self {
        let mut tally = Tally::default();
        for verdict in verdicts {
            *match verdict {
                Verdict::Win => &mut tally.wins,
                Verdict::Loss => &mut tally.losses,
                Verdict::Equal => &mut tally.equal,
                Verdict::Unresolved => &mut tally.unresolved,
            } += 1;
        }
        tally
    }
}

impl Tally {
    #[must_use]
    pub fn total(&self) -> usize {
        self.wins + self.losses + self.equal + self.unresolved
    }
}

/// One mode against another in one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Versus {
    /// The ratio in each group that had both sides.
    pub ratios: Vec<f64>,
    /// For a ratio relative to a mode that was measured in other groups: its value in each of those.
    pub apart: Vec<f64>,
    pub ratio: f64,
    /// Interval of that median: low, high.
    pub ci: (f64, f64),
    /// In how many of 1000 the interval may miss the truth.
    pub misses_permille: u32,
    /// Median of the one's samples: bytes, walks or, by a latency, answers per second.
    pub median: f64,
    /// Median of the other's samples in the same groups, in the same unit.
    pub other_median: f64,
}

impl Versus {
    /// Of the figures of the one and of the other, group by group.
    pub(crate) fn of(ours: &[f64], theirs: &[f64], misses_permille: u32) -> Versus {
        let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect();
        Versus::new(ratios, [ours, theirs], misses_permille)
    }

    /// Of the ratio in each group, and each group's figure of the one and of the other.
    pub(crate) fn new(
        ratios: Vec<f64>,
        [ours, theirs]: [&[f64]; 2],
        misses_permille: u32,
    ) -> Versus {
        Versus {
            ratio: median(&ratios),
            ci: interval(&ratios, misses_permille),
            misses_permille,
            median: median(ours),
            other_median: median(theirs),
            ratios,
            apart: Vec::new(),
        }
    }

    /// A ratio relative to one that was measured apart; the medians are the two ratios. The interval
    /// draws the groups of both anew, each by itself.
    pub(crate) fn relative_to(&self, other: &Versus) -> Versus {
        let misses_permille = self.misses_permille.min(other.misses_permille);
        Versus {
            ratio: self.ratio / other.ratio,
            ci: interval_of_geomean(&[(&self.ratios, &other.ratios)], misses_permille),
            misses_permille,
            median: self.ratio,
            other_median: other.ratio,
            ratios: self.ratios.clone(),
            apart: other.ratios.clone(),
        }
    }

    #[must_use]
    pub fn result(&self) -> Ratio {
        Ratio { ratio: self.ratio, ci: self.ci }
    }

    #[must_use]
    pub fn verdict(&self) -> Verdict {
        self.result().verdict()
    }
}

/// The smallest size from which on all win, and whether one below does not; none where the largest
/// does not win.
#[must_use]
pub fn wins_from(sizes: &[(u64, bool)]) -> Option<(u64, bool)> {
    let last_other = sizes.iter().filter(|(_, wins)| !wins).map(|(size, _)| *size).max();
    let from = sizes.iter().map(|(size, _)| *size).filter(|size| Some(*size) > last_other).min()?;
    Some((from, last_other.is_some()))
}

/// The geometric mean of some ratios, with its interval: of one its own. None without ratios.
#[must_use]
pub fn geomean<'a>(all: impl IntoIterator<Item = &'a Versus>) -> Option<Ratio> {
    let all: Vec<&Versus> = all.into_iter().collect();
    if let [only] = all.as_slice() {
        return Some(only.result());
    }
    let logs: f64 = all.iter().map(|versus| versus.ratio.ln()).sum();
    let lists: Vec<(&[f64], &[f64])> =
        all.iter().map(|versus| (&versus.ratios[..], &versus.apart[..])).collect();
    let permille = all.iter().map(|versus| versus.misses_permille).min()?;
    let ci = interval_of_geomean(&lists, permille);
    Some(Ratio { ratio: (logs / all.len() as f64).exp(), ci })
}

/// Figures of a mode in every second group, and in the others: alike but for what the machine does, so
/// that nothing has to be measured for it.
pub type Halves = [Vec<f64>; 2];

pub(crate) fn halves(figures: &[(u32, Option<f64>)]) -> Halves {
    let mut halves = Halves::default();
    for (pair, figure) in figures {
        halves[(pair % 2) as usize].extend(figure.filter(|figure| *figure > 0.0));
    }
    halves
}

/// The one halves relative to the others, over all cells: how far apart the machine puts what is
/// alike. None where a half has fewer than two figures.
#[must_use]
pub fn alike<'h>(cells: impl IntoIterator<Item = &'h Halves>) -> Option<Ratio> {
    let whole = |[odd, even]: &&Halves| odd.len() > 1 && even.len() > 1;
    let cells: Vec<&Halves> = cells.into_iter().filter(whole).collect();
    let logs: f64 = cells.iter().map(|[one, two]| (median(one) / median(two)).ln()).sum();
    let lists: Vec<(&[f64], &[f64])> =
        cells.iter().map(|[one, two]| (one.as_slice(), two.as_slice())).collect();
    (!lists.is_empty()).then(|| Ratio {
        ratio: (logs / lists.len() as f64).exp(),
        ci: interval_of_geomean(&lists, MISSES_PERMILLE),
    })
}

/// A mode's figure in each group that it has a sample of.
pub(crate) type ByPair = BTreeMap<u32, Option<f64>>;

pub(crate) fn by_pair(samples: &[&Sample], figure: impl Fn(&Sample) -> Option<f64>) -> ByPair {
    samples.iter().map(|sample| (sample.pair, figure(sample))).collect()
}

/// The figures of a mode and of another one in the groups that have both. Nothing has a ratio to a
/// rate of nothing moved.
pub(crate) fn paired(ours: &ByPair, theirs: &ByPair) -> (Vec<f64>, Vec<f64>) {
    let both = |(pair, ours): (&u32, &Option<f64>)| {
        Some(((*ours)?, theirs.get(pair)?.filter(|rate| *rate > 0.0)?))
    };
    ours.iter().filter_map(both).unzip()
}

#[cfg(test)]
mod tests;
