//! What all plans are made of: parameters, CPUs, limits, and the order of modes. Pure.

pub(crate) mod error;
mod sysctl;

use ntcopy_record::Params;
use serde_json::Value;

pub use error::{CpuPair, Cpus, PlanError};
pub use sysctl::Sysctl;

/// From here on a hinted send has pieces of a page, which go past the caches; a smaller one may lie in
/// the heads of socket buffers alone.
pub const SURELY_IN_PAGES_BYTES: u64 = 40 << 10;

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
