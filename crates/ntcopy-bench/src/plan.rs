//! What the plans of several experiments are made of: which cells, which modes, in which order.
//! Pure.

pub mod bulk;
mod cell;
pub(crate) mod error;
pub mod messages;
mod sysctl;

use ntcopy_record::{ExperimentKind, Params};
use serde_json::Value;
use std::time::Duration;

use crate::experiment::Mode;

pub use cell::{CellPlan, CpuPair, Form, SURELY_IN_PAGES_BYTES, Small};
pub use error::{Cpus, PlanError};
pub use sysctl::{Sysctl, sysctls};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SendsPlan {
    pub experiment: ExperimentKind,
    pub cells: Vec<CellPlan>,
    /// The modes, the baseline first.
    pub modes: Vec<Mode>,
    /// Interleaved groups in each cell.
    pub pairs: u32,
    /// How long the clocked part of a sample lasts at least, where it is made of rounds or walks.
    pub round_sample: Duration,
    /// How long a mode runs before a sample of rounds, at least, without being clocked.
    pub warm_up: Duration,
    pub free_sample: Duration,
    /// The sockets of a cell on which every byte is compared before timing.
    pub verified_sockets: u32,
}

impl SendsPlan {
    pub fn samples(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.pairs) * self.modes.len() as u64
    }

    /// How long a sample of the cell lasts about; none when the user has set
    /// the number of sends, which may take as long as it likes.
    pub fn sample_time(&self, cell: &CellPlan) -> Option<Duration> {
        match cell.form {
            Form::Rounds { .. } | Form::TwoSenders { .. } | Form::Victim { .. } => {
                Some(self.round_sample)
            }
            Form::FreeRunning { iterations: None, .. } => Some(self.free_sample),
            Form::FreeRunning { iterations: Some(_), .. } => None,
        }
    }

    /// Memory in bytes that the largest cell needs: its data set, what lies in
    /// the sockets with the kernel's own part, and as much again for the
    /// pattern that is sent before timing.
    pub fn memory_bytes(&self) -> u64 {
        let cell = |cell: &CellPlan| {
            // A unix stream skb of 32 KiB payload and its head take up to half as much again.
            let in_flight = u64::from(cell.sockets()) * cell.object_bytes;
            cell.dataset_bytes + in_flight + in_flight / 2 + in_flight.max(4 * cell.object_bytes)
        };
        self.cells.iter().map(cell).max().unwrap_or(0)
    }
}

/// The modes of group number `pair`, reordered so that no mode always comes
/// first or after the same neighbour: every second group runs backwards, and
/// every two groups the first place moves on by one.
pub fn group_order<T: Copy>(modes: &[T], pair: u32) -> Vec<T> {
    let mut order = modes.to_vec();
    if !order.is_empty() {
        order.rotate_left((pair / 2) as usize % modes.len());
    }
    if pair % 2 == 1 {
        order.reverse();
    }
    order
}

/// A cell's parameters: of these, those that have a value.
pub(crate) fn params<const N: usize>(list: [(&str, Value); N]) -> Params {
    let known = list.into_iter().filter(|(_, value)| !value.is_null());
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}

pub(crate) fn or<T: Clone>(asked: &[T], default: &[T]) -> Vec<T> {
    if asked.is_empty() { default.to_vec() } else { asked.to_vec() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn two_modes_take_turns_at_the_front() {
        let firsts: Vec<char> = (0..8).map(|pair| group_order(&['a', 'b'], pair)[0]).collect();
        assert_eq!(firsts.iter().filter(|first| **first == 'a').count(), 4, "{firsts:?}");
        assert_eq!(group_order(&['a', 'b'], 0), ['a', 'b']);
        assert_eq!(group_order(&['a', 'b'], 1), ['b', 'a']);
    }

    proptest! {
        #[test]
        fn every_mode_is_in_every_place_equally_often(count in 1usize..6) {
            let modes: Vec<usize> = (0..count).collect();
            let cycle = 2 * count as u32;
            for place in 0..count {
                for mode in &modes {
                    let times = (0..cycle).filter(|pair| group_order(&modes, *pair)[place] == *mode);
                    prop_assert_eq!(times.count(), 2);
                }
            }
        }
    }
}
