//! What one mode did in one cell: the row of every table.

use std::ops::Deref;

use super::Judged;
use crate::ratio::{BAR, Ratio};
use crate::stats::{Figures, THROUGHPUT, Versus, WALKS};
use ntcopy_record::{Cell, Sends};

/// What is said of [`Sends::Idle`] in the place of a verdict.
pub const CEILING: &str = "ceiling";

/// A mode in a cell.
#[derive(Clone, Copy)]
pub struct Measured<'j> {
    pub judged: &'j Judged,
    pub cell: &'j Cell,
    pub mode: &'j str,
    pub(super) figures: &'j Figures,
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

    /// Relative to the baseline.
    #[must_use]
    pub fn versus(&self, metric: &str) -> Option<&'j Versus> {
        self.relative_to(&self.judged.header.baseline, metric)
    }

    #[must_use]
    pub fn relative_to(&self, other: &str, metric: &str) -> Option<&'j Versus> {
        self.judged.versus(self.cell.cell, self.mode, other, metric)
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
}

/// What its samples say.
impl Deref for Measured<'_> {
    type Target = Figures;

    fn deref(&self) -> &Figures {
        self.figures
    }
}
