//! Counts of counters that had to share the hardware with others.

use std::collections::BTreeMap;

use ntcopy_record::COUNTED_PERMILLE;

/// What the kernel says of one counter: the raw count, and for how long it was switched on and on
/// the hardware, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Raw {
    pub count: u64,
    pub enabled_ns: u64,
    pub running_ns: u64,
}

impl Raw {
    pub fn since(&self, before: &Raw) -> Raw {
        Raw {
            count: self.count.saturating_sub(before.count),
            enabled_ns: self.enabled_ns.saturating_sub(before.enabled_ns),
            running_ns: self.running_ns.saturating_sub(before.running_ns),
        }
    }

    /// The count for the whole time; none if the counter was never on the hardware.
    pub fn scaled(&self) -> Option<Counted> {
        if self.running_ns == 0 {
            return None;
        }
        if self.running_ns >= self.enabled_ns {
            return Some(Counted { count: self.count, permille: 1000 });
        }
        let whole = u128::from(self.count) * u128::from(self.enabled_ns);
        let count = whole.div_ceil(u128::from(self.running_ns));
        let permille = u128::from(self.running_ns) * 1000 / u128::from(self.enabled_ns);
        // Below 1000 even where the division rounds to it: it was scaled, and must say so.
        let permille = u32::try_from(permille).unwrap_or(999).min(999);
        Some(Counted { count: u64::try_from(count).unwrap_or(u64::MAX), permille })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counted {
    pub count: u64,
    /// Thousandths of the time in which it really counted.
    pub permille: u32,
}

impl Counted {
    /// Puts it among a sample's counters, with its mark if it needs one.
    pub fn put(self, name: &str, into: &mut BTreeMap<String, u64>) {
        into.insert(name.to_owned(), self.count);
        if self.permille < 1000 {
            into.insert(format!("{name}{COUNTED_PERMILLE}"), self.permille.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(count: u64, enabled_ns: u64, running_ns: u64) -> Raw {
        Raw { count, enabled_ns, running_ns }
    }

    #[test]
    fn a_counter_that_was_there_all_the_time_is_as_it_is() {
        assert_eq!(raw(7, 100, 100).scaled(), Some(Counted { count: 7, permille: 1000 }));
        assert_eq!(raw(0, 100, 100).scaled(), Some(Counted { count: 0, permille: 1000 }));
    }

    #[test]
    fn one_that_took_turns_is_scaled_and_marked() {
        assert_eq!(raw(100, 1000, 250).scaled(), Some(Counted { count: 400, permille: 250 }));
        let almost = raw(1_000_000, 1_000_000_000, 999_999_999).scaled().unwrap();
        assert_eq!(almost.permille, 999);
        let huge = raw(u64::MAX, u64::MAX, 1).scaled().unwrap();
        assert_eq!((huge.count, huge.permille), (u64::MAX, 0));
    }

    #[test]
    fn one_that_never_had_its_turn_has_no_count() {
        assert_eq!(raw(0, 1000, 0).scaled(), None);
        assert_eq!(raw(0, 0, 0).scaled(), None);
        assert_eq!(raw(5, 20, 10).since(&raw(5, 10, 10)).scaled(), None);
    }

    #[test]
    fn what_was_scaled_has_a_mark_beside_it() {
        let mut counts = BTreeMap::new();
        Counted { count: 3, permille: 1000 }.put("x", &mut counts);
        assert_eq!(counts, [("x".to_owned(), 3)].into());
        Counted { count: 4, permille: 400 }.put("x", &mut counts);
        assert_eq!(counts, [("x".to_owned(), 4), ("x:counted_permille".to_owned(), 400)].into());
    }
}
