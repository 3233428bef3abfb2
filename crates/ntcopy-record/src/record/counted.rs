//! What was counted of sends, by whichever names a record has it.

use std::collections::BTreeMap;

/// Names in records since interface series 3.
const OPTED_IN: &str = "NtcopyBytes";
const HINTED: &str = "NtcopyHintedBytes";
const BYPASSED: &str = "NtcopyBypassedBytes";

/// Names in earlier records, which have each hinted byte under one of them.
const NONTEMPORAL: &str = "nontemporal_bytes";
const NORMAL: [&str; 3] = ["fits_cache_bytes", "too_small_bytes", "read_by_kernel_bytes"];
/// What was only spliced: copied in no way.
const SPLICED: &str = "not_supported_bytes";

/// Bytes of sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counted {
    /// On sockets that opted in; none in earlier records, which don't say it.
    pub opted_in_bytes: Option<u64>,
    /// Of hinted sends that were copied.
    pub hinted_bytes: u64,
    /// Of these, of sends that went past the caches.
    pub bypassed_bytes: u64,
}

impl Counted {
    /// What counters say; none where no hinted byte was counted.
    #[must_use]
    pub fn of(counters: &BTreeMap<String, u64>) -> Option<Counted> {
        let get = |name: &str| counters.get(name).copied();
        let normal: u64 = NORMAL.into_iter().filter_map(get).sum();
        let hinted_bytes =
            get(HINTED).unwrap_or_else(|| normal + get(NONTEMPORAL).unwrap_or_default());
        let bypassed_bytes = get(BYPASSED).or(get(NONTEMPORAL)).unwrap_or_default();
        let counted = Counted { opted_in_bytes: get(OPTED_IN), hinted_bytes, bypassed_bytes };
        (hinted_bytes > 0 || get(SPLICED).is_some()).then_some(counted)
    }

    /// The part of the hinted bytes that went past the caches, from 0 to 1; none of nothing.
    #[must_use]
    pub fn bypassed_part(&self) -> Option<f64> {
        part(self.bypassed_bytes, self.hinted_bytes)
    }

    /// The part of the bytes on sockets that opted in that was hinted, from 0 to 1.
    #[must_use]
    pub fn hinted_part(&self) -> Option<f64> {
        part(self.hinted_bytes, self.opted_in_bytes?)
    }
}

fn part(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| some as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[(&str, u64)]) -> Option<Counted> {
        Counted::of(&counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect())
    }

    #[test]
    fn both_kinds_of_names_are_read() {
        let new = of(&[(OPTED_IN, 200), (HINTED, 100), (BYPASSED, 25)]).unwrap();
        assert_eq!((new.hinted_part(), new.bypassed_part()), (Some(0.5), Some(0.25)));
        let old = of(&[(NONTEMPORAL, 75), ("fits_cache_bytes", 25), (SPLICED, 90)]).unwrap();
        assert_eq!((old.hinted_part(), old.bypassed_part()), (None, Some(0.75)));
        assert_eq!(old.hinted_bytes, 100);
    }

    #[test]
    fn hardware_s_counters_are_not_counted() {
        assert_eq!(of(&[("cycles", 7)]), None);
        assert_eq!(of(&[]), None);
    }
}
