//! What one mode did in one cell: the row of every table.

use super::Judged;
use crate::ratio::{BAR, Ratio};
use crate::stats::{Figures, THROUGHPUT, Versus, WALKS};
use ntcopy_record::{Cell, Sends, number};

/// What is said of [`Sends::Idle`] in the place of a verdict.
pub const CEILING: &str = "ceiling";

/// A mode in a cell.
#[derive(Clone, Copy)]
pub struct Measured<'j> {
    pub judged: &'j Judged,
    pub cell: &'j Cell,
    pub mode: &'j str,
    pub(crate) figures: &'j Figures,
}

impl<'j> Measured<'j> {
    #[must_use]
    pub fn sends(&self) -> Sends {
        self.judged.header.sends(self.mode)
    }

    #[must_use]
    pub fn is_baseline(&self) -> bool {
        self.mode == self.judged.header.baseline
    }

    /// How many of its samples have a figure by a metric.
    #[must_use]
    pub fn many(&self, metric: &str) -> usize {
        self.figures.many(metric)
    }

    /// The median of its samples by a metric.
    #[must_use]
    pub fn median(&self, metric: &str) -> Option<f64> {
        self.figures.median(metric)
    }

    /// Relative to the baseline.
    #[must_use]
    pub fn versus(&self, metric: &str) -> Option<&'j Versus> {
        self.relative_to(&self.judged.header.baseline, metric)
    }

    #[must_use]
    pub fn relative_to(&self, other: &str, metric: &str) -> Option<&'j Versus> {
        self.judged.versus(self.cell.cell, self.mode, other, metric)
    }

    /// The time that this part of the answers of all samples did not exceed, if enough of them took
    /// longer. The median is given however few there are.
    #[must_use]
    pub fn quantile_ns(&self, part: f64) -> Option<f64> {
        self.figures.quantile_ns(part)
    }

    #[must_use]
    pub fn mean_ns(&self) -> Option<f64> {
        self.figures.mean_ns()
    }

    #[must_use]
    pub fn answers(&self) -> u64 {
        self.figures.answers()
    }

    /// The answers that had not come when the wait ended.
    #[must_use]
    pub fn unanswered(&self) -> u64 {
        self.figures.unanswered
    }

    /// Part of the hinted bytes that went past the caches, from 0 to 1.
    #[must_use]
    pub fn nontemporal_part(&self) -> Option<f64> {
        self.figures.counted?.bypassed_part()
    }

    /// Nanoseconds that a line of the hot set took at most in this part of the walks of all samples.
    #[must_use]
    pub fn line_ns(&self, part: f64) -> Option<f64> {
        self.figures.line_ns(number(&self.cell.params, "hot_set_bytes")?, part)
    }

    /// How many times as long the median walk takes as one without traffic, by groups.
    #[must_use]
    pub fn slow_down(&self) -> Option<Ratio> {
        let idle = self.judged.header.modes.iter().find(|mode| mode.sends == Sends::Idle)?;
        let Ratio { ratio, ci: (low, high) } = self.relative_to(&idle.mode, WALKS)?.result();
        Some(Ratio { ratio: 1.0 / ratio, ci: (1.0 / high, 1.0 / low) })
    }

    /// What part it has of the gain of what copies nothing in its cell, kernel and stack of servers,
    /// relative to plain sends; none where that may be within what counts as equal.
    #[must_use]
    pub fn part_of_ceiling(&self) -> Option<f64> {
        let header = &self.judged.header;
        let mode = header.mode(self.mode).filter(|mode| mode.sends == Sends::Hinted)?;
        let plain = header.beside(mode, Sends::Plain)?;
        let gain = |name: &str| {
            self.judged.versus(self.cell.cell, name, &plain.mode, THROUGHPUT).map(Versus::result)
        };
        let copies_nothing = header.modes.iter().filter(|other| {
            other.sends == Sends::CopiesNothing
                && (other.kernel, &other.stack) == (mode.kernel, &mode.stack)
        });
        let ceilings = copies_nothing.filter_map(|other| gain(&other.mode));
        let ceiling = ceilings.max_by(|a, b| a.ratio.total_cmp(&b.ratio))?;
        if ceiling.ci.0 <= 1.0 + BAR {
            return None;
        }
        Some((gain(self.mode)?.ratio - 1.0) / (ceiling.ratio - 1.0))
    }

    /// The median of a hardware event per so many bytes of payload, and whether it is scaled, since
    /// its counter took turns.
    #[must_use]
    pub fn event(&self, name: &str, per_bytes: f64) -> Option<(f64, bool)> {
        let (per_byte, is_scaled) = self.figures.events.get(name)?;
        Some((per_byte * per_bytes, *is_scaled))
    }
}
