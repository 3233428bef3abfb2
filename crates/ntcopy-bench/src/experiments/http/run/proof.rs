//! What the kernel counted, held against what a way was to do.

use std::collections::BTreeMap;

use ntcopy::uapi;

use super::stack::Running;
use crate::experiments::http::{HttpMode, Scheme, Way};
use crate::run::{Failure, counters};

/// The counters before a run.
pub struct Proof {
    before: counters::All,
    way: Way,
    scheme: Scheme,
}

impl Proof {
    pub fn begin(running: &Running, scheme: Scheme) -> Result<Proof, Failure> {
        Ok(Proof { before: running.counters()?, way: running.way(), scheme })
    }

    /// Reads them again, when every answer of the run has come, and checks what was added against
    /// `bytes` of bodies. Gives the counters that rose.
    pub fn check(&self, running: &Running, bytes: u64) -> Result<BTreeMap<String, u64>, Failure> {
        let mut added = counters::rose(&self.before, &running.counters()?)?;
        fits(&added, self.way, self.scheme, bytes).map_err(Failure::Counters)?;
        added.retain(|_, count| *count > 0);
        Ok(added)
    }
}

/// The bodies' bytes in 100 that have to be counted under some name.
///
/// A daemon of ours hints whole bodies: the backend where they are spliced, the proxy where it
/// writes them itself. nginx writes a body in pieces, and the last one may be below a page, which
/// `ntcopy run` then leaves alone. What the kernel encrypts is made there, and copied from nowhere.
fn least_percent(way: Way, scheme: Scheme) -> u64 {
    match (way.stack, scheme) {
        (_, Scheme::Ktls) => 0,
        // Behind HAProxy the proxy's part of TLS is not hinted, and the backend's whole bodies are.
        (stack, _) if stack.has_storaged() => 99,
        _ => 75,
    }
}

fn fits(added: &BTreeMap<String, u64>, way: Way, scheme: Scheme, bytes: u64) -> Result<(), String> {
    let count = |name: &str| added.get(name).copied().unwrap_or(0);
    let all: u64 = added.values().sum();
    // What is spliced to a socket that hints is counted too, and was not copied.
    let copied = all - count(uapi::STAT_NOT_SUPPORTED);
    let nontemporal = count(uapi::STAT_NONTEMPORAL);
    let least = bytes / 100 * least_percent(way, scheme);
    let (right, due) = match way.mode {
        // Ours chooses, and may choose the hint.
        HttpMode::Auto => (true, String::new()),
        HttpMode::Copy | HttpMode::Sendfile | HttpMode::Vmsplice | HttpMode::Nocache => {
            (all == 0, "no byte at all".to_owned())
        }
        HttpMode::Adaptive => (copied >= least, format!("at least {least} as copied in some way")),
        // Heads of buffers are too small: of 32 KiB less than a page, and of small bodies more.
        HttpMode::Nt => (
            copied >= least && nontemporal >= least / 2,
            format!("at least {least} as copied, and half of them as non-temporal"),
        ),
    };
    if right {
        return Ok(());
    }
    let parts = added.iter().filter(|(_, count)| **count > 0);
    let parts: Vec<String> = parts.map(|(name, count)| format!("{name} rose by {count}")).collect();
    let parts = if parts.is_empty() { "no counter rose".to_owned() } else { parts.join(" and ") };
    Err(format!(
        "{way} sent {bytes} bytes of bodies, and the kernel was to count {due}, but {parts} (look \
         at net.core.ntcopy, and whether another program sends in this network namespace)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::http::Stack;

    fn way(mode: HttpMode) -> Way {
        Way { stack: Stack::StoragedProxyd, mode }
    }

    fn added(counts: &[(&str, u64)]) -> BTreeMap<String, u64> {
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn plain_sends_are_not_counted_at_all() {
        for mode in HttpMode::ALL.iter().copied().filter(|mode| !mode.is_hinted()) {
            if mode == HttpMode::Auto {
                continue;
            }
            assert_eq!(fits(&added(&[]), way(mode), Scheme::Plain, 1000), Ok(()));
            let one = added(&[(uapi::STAT_FITS_CACHE, 1)]);
            let error = fits(&one, way(mode), Scheme::Plain, 1000).unwrap_err();
            assert!(error.contains("no byte at all") && error.contains("rose by 1"), "{error}");
        }
    }

    #[test]
    fn obeyed_hints_are_non_temporal_and_adaptive_ones_whatever() {
        let mixed = added(&[(uapi::STAT_NONTEMPORAL, 400), (uapi::STAT_FITS_CACHE, 600)]);
        assert!(fits(&mixed, way(HttpMode::Nt), Scheme::Plain, 1000).is_err());
        assert_eq!(fits(&mixed, way(HttpMode::Adaptive), Scheme::Plain, 1000), Ok(()));
        let obeyed = added(&[(uapi::STAT_NONTEMPORAL, 900), (uapi::STAT_TOO_SMALL, 150)]);
        assert_eq!(fits(&obeyed, way(HttpMode::Nt), Scheme::Plain, 1000), Ok(()));
    }

    #[test]
    fn bytes_that_were_only_spliced_were_not_hinted_where_they_were_copied() {
        let spliced = added(&[(uapi::STAT_NOT_SUPPORTED, 1000), (uapi::STAT_TOO_SMALL, 10)]);
        for mode in [HttpMode::Nt, HttpMode::Adaptive] {
            assert!(fits(&spliced, way(mode), Scheme::Plain, 1000).is_err());
        }
        let both = added(&[(uapi::STAT_NOT_SUPPORTED, 1000), (uapi::STAT_NONTEMPORAL, 1000)]);
        assert_eq!(fits(&both, way(HttpMode::Nt), Scheme::Plain, 1000), Ok(()));
    }

    #[test]
    fn bytes_that_nobody_counted_were_not_hinted() {
        let half = added(&[(uapi::STAT_NONTEMPORAL, 500)]);
        for mode in [HttpMode::Nt, HttpMode::Adaptive] {
            let error = fits(&half, way(mode), Scheme::Plain, 1000).unwrap_err();
            assert!(error.contains("at least 990"), "{error}");
            assert!(fits(&half, way(mode), Scheme::Tls, 1000).is_err());
            assert_eq!(fits(&added(&[]), way(mode), Scheme::Ktls, 1000), Ok(()));
        }
        let theirs = Way { stack: Stack::HaproxyNginx, mode: HttpMode::Adaptive };
        assert_eq!(fits(&added(&[("x", 760)]), theirs, Scheme::Plain, 1000), Ok(()));
        assert!(fits(&added(&[("x", 700)]), theirs, Scheme::Plain, 1000).is_err());
    }
}
