//! The most multigets per second at which p99 keeps to a limit, found by bisection.
//!
//! Rates lie on a grid that all modes and pairs of a cell share. A search goes up or down by
//! factors of two until one rate keeps to the limit and its double does not, and halves what is
//! between. A rate fails that does not keep to it twice.

use std::time::Duration;

use ntcopy_record::Sample;
use ntcopy_record::stats::quantile_ns;

use crate::run::Failure;

/// Rates of the grid from one to its double: 2 % apart, found in five steps.
const FINE: i32 = 32;
/// Where searches begin: a quarter of what the baseline answers without a pause.
const FIRST: i32 = -2 * FINE;
/// The lowest rate: a part in 64 of that.
const LOWEST: i32 = -6 * FINE;
/// The highest one. No server gets there: what is offered is more than it can answer.
const HIGHEST: i32 = 4 * FINE;
/// Steps of a search, about, with those that are tried again.
const STEPS: u32 = 14;
/// Multigets that a step offers at least: two of them are the slowest in 100.
const LEAST_MULTIGETS: u64 = 200;
/// A step takes no longer than this, however few that are.
const LONGEST: Duration = Duration::from_secs(4);

pub fn longest(sample: Duration, warm_up: Duration) -> Duration {
    (sample.max(LONGEST) + warm_up) * STEPS
}

/// The rates, by their number.
#[derive(Debug, Clone, Copy)]
pub struct Grid {
    /// Multigets that the baseline answers in 1000 s without a pause and without large values.
    pub full_per_1000_s: u64,
}

impl Grid {
    pub fn rate(self, point: i32) -> u64 {
        let factor = (f64::from(point) / f64::from(FINE)).exp2();
        ((self.full_per_1000_s as f64 * factor).round() as u64).max(1)
    }

    pub fn lowest(self) -> u64 {
        self.rate(LOWEST)
    }

    /// That which a grid with this lowest rate is made of.
    pub fn full_per_1000_s(lowest: u64) -> u64 {
        lowest << (-LOWEST / FINE)
    }

    pub fn step(self, point: i32, sample: Duration) -> Duration {
        let needed = LEAST_MULTIGETS as f64 * 1000.0 / self.rate(point) as f64;
        sample.max(Duration::from_secs_f64(needed).min(LONGEST))
    }
}

/// The highest point that holds at the first or second try; none if not even the lowest does.
pub fn highest<E>(mut tried: impl FnMut(i32) -> Result<bool, E>) -> Result<Option<i32>, E> {
    // Else a stop of the machine for some milliseconds would be taken for the limit.
    let mut holds = |point| Ok(tried(point)? || tried(point)?);
    let (mut low, mut high) = (FIRST, FIRST);
    if holds(FIRST)? {
        loop {
            if low == HIGHEST {
                return Ok(Some(low));
            }
            high = low + FINE;
            if !holds(high)? {
                break;
            }
            low = high;
        }
    } else {
        loop {
            if high == LOWEST {
                return Ok(None);
            }
            low = high - FINE;
            if holds(low)? {
                break;
            }
            high = low;
        }
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            low = middle;
        } else {
            high = middle;
        }
    }
    Ok(Some(low))
}

#[derive(Default)]
pub struct Found {
    /// Each step's rate, and its p99.
    tried: Vec<(u64, u64)>,
    /// The sample of the highest rate that held, with the rate.
    best: Option<(u64, Sample)>,
    /// That of the lowest rate that did not, if none has.
    worst: Option<(u64, Sample)>,
}

impl Found {
    /// Adds a step by how long its multigets took; whether it keeps to the limit.
    pub fn add(
        &mut self,
        rate: u64,
        limit_ns: u64,
        (latencies, sample): (&[(u64, u64)], Sample),
    ) -> Result<bool, Failure> {
        let p99_ns = quantile_ns(latencies, 0.99);
        let Some(p99_ns) = p99_ns.map(|ns| ns as u64) else {
            return Err(Failure::Answer("no multiget was due in a step of the search".to_owned()));
        };
        self.tried.push((rate, p99_ns));
        let holds = p99_ns <= limit_ns;
        let kept = if holds { &mut self.best } else { &mut self.worst };
        if kept.as_ref().is_none_or(|(other, _)| if holds { *other < rate } else { *other > rate })
        {
            *kept = Some((rate, sample));
        }
        Ok(holds)
    }

    /// The search as one sample: what else came at the rate that it found, and every step.
    pub fn sample(self) -> Option<Sample> {
        let held = self.best.as_ref().map(|(rate, _)| *rate);
        let (_, mut sample) = self.best.or(self.worst)?;
        let (rates, p99s) = self.tried.into_iter().unzip();
        sample.series = [("tried_per_1000_s", rates), ("tried_p99_ns", p99s)]
            .map(|(name, list)| (name.to_owned(), list))
            .into();
        let held = held.map(|rate| ("capacity_per_1000_s".to_owned(), vec![rate]));
        sample.series.extend(held);
        Some(sample)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a search finds where rates hold up to a point, and how many steps it took.
    fn search(most: i32) -> (Option<i32>, u32) {
        let mut steps = 0;
        let found = highest(|point| {
            steps += 1;
            Ok::<bool, ()>(point <= most)
        });
        (found.unwrap(), steps)
    }

    #[test]
    fn a_search_finds_the_last_point_that_holds_in_a_few_steps() {
        for most in LOWEST..HIGHEST {
            let (found, steps) = search(most);
            assert_eq!(found, Some(most));
            assert!(steps <= 20, "{most}: {steps}");
        }
        assert_eq!(search(FIRST).1, 13);
        assert_eq!(search(LOWEST - 1).0, None);
        assert_eq!(search(HIGHEST + 5).0, Some(HIGHEST));
        assert_eq!(highest(|_| Err::<bool, i32>(7)), Err(7));
    }

    #[test]
    fn a_point_that_fails_once_is_tried_again() {
        let mut failed = std::collections::BTreeSet::new();
        let found = highest(|point| Ok::<bool, ()>(point <= FIRST && !failed.insert(point)));
        assert_eq!(found, Ok(Some(FIRST)));
    }

    #[test]
    fn a_grid_doubles_and_a_step_at_a_low_rate_lasts_longer() {
        let grid = Grid { full_per_1000_s: 6_400_000 };
        assert_eq!(
            (grid.rate(0), grid.rate(FINE), grid.lowest()),
            (6_400_000, 12_800_000, 100_000)
        );
        assert_eq!(Grid::full_per_1000_s(grid.lowest()), 6_400_000);
        let sample = Duration::from_millis(500);
        assert_eq!(grid.step(0, sample), sample);
        // 200 of 100 a second.
        assert_eq!(grid.step(LOWEST, sample), Duration::from_secs(2));
        assert_eq!(Grid { full_per_1000_s: 1 }.step(0, sample), LONGEST);
        assert!((LOWEST..HIGHEST).all(|point| grid.rate(point) < grid.rate(point + 1)));
    }
}
