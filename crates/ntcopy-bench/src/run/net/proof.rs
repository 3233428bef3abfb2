//! What the kernel counted, held against what a mode was to do.

use std::collections::BTreeMap;

use ntcopy::uapi;

use super::network::Network;
use crate::experiment::Mode;
use crate::plan::SMALLEST_HINTED_BYTES;
use crate::run::{Failure, counters};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sent {
    pub messages: u64,
    pub request_bytes: u64,
    pub response_bytes: u64,
}

impl Sent {
    fn bytes(&self) -> u64 {
        self.messages * (self.request_bytes + self.response_bytes)
    }

    /// Bytes of messages that are below a page.
    fn too_small(&self) -> u64 {
        let small = |bytes: u64| if bytes < SMALLEST_HINTED_BYTES { bytes } else { 0 };
        self.messages * (small(self.request_bytes) + small(self.response_bytes))
    }
}

/// The counters of all namespaces that take part, before a run.
pub struct Proof {
    before: counters::All,
    server: u32,
}

impl Proof {
    /// Reads them; `server` is the process's number.
    pub fn begin(network: &Network, server: u32) -> Result<Proof, Failure> {
        Ok(Proof { before: network.counters(server)?, server })
    }

    /// Reads them again, when every response has come, and checks what was added. Gives the
    /// counters that rose.
    pub fn check(
        &self,
        network: &Network,
        mode: Mode,
        sent: Sent,
    ) -> Result<BTreeMap<String, u64>, Failure> {
        let mut added = counters::rose(&self.before, &network.counters(self.server)?)?;
        fits(&added, mode, sent).map_err(Failure::Counters)?;
        added.retain(|_, count| *count > 0);
        Ok(added)
    }
}

/// A plain send is counted nowhere, and of a hinted one every byte somewhere. An obeyed one is
/// never counted as one that fits the cache; but the head of a buffer is too small, as small
/// messages are, and a datagram of several packets is checksummed while it is copied: the kernel reads
/// it.
fn fits(added: &BTreeMap<String, u64>, mode: Mode, sent: Sent) -> Result<(), String> {
    let count = |name: &str| added.get(name).copied().unwrap_or(0);
    let (all, bytes): (u64, u64) = (added.values().sum(), sent.bytes());
    let (right, due) = match mode {
        Mode::Adaptive => (all == bytes, "all of them under some name"),
        Mode::Nt => {
            let [nontemporal, small, read] =
                [uapi::STAT_NONTEMPORAL, uapi::STAT_TOO_SMALL, uapi::STAT_READ_BY_KERNEL]
                    .map(count);
            let too_small = sent.too_small();
            let is_any = nontemporal + read > 0 || too_small == bytes;
            let right =
                all == bytes && nontemporal + small + read == bytes && small >= too_small && is_any;
            (right, "all of them as non-temporal, too small or read by the kernel")
        }
        Mode::Copy | Mode::Vmsplice | Mode::Idle => (all == 0, "none of them"),
    };
    if right {
        return Ok(());
    }
    let parts = added.iter().filter(|(_, count)| **count > 0);
    let parts: Vec<String> = parts.map(|(name, count)| format!("{name} rose by {count}")).collect();
    let parts = if parts.is_empty() { "no counter rose".to_owned() } else { parts.join(" and ") };
    Err(format!(
        "client and server sent {bytes} bytes in mode {mode}, and the kernel was to count {due}, \
         but {parts} (look at net.core.ntcopy, and whether another program sends in this network \
         namespace)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Sent = Sent { messages: 10, request_bytes: 8000, response_bytes: 2000 };

    fn check(mode: Mode, counts: &[(&str, u64)]) -> Result<(), String> {
        let added = counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        fits(&added, mode, SENT)
    }

    #[test]
    fn plain_sends_are_counted_nowhere() {
        assert_eq!(check(Mode::Copy, &[(uapi::STAT_NONTEMPORAL, 0)]), Ok(()));
        assert!(check(Mode::Copy, &[(uapi::STAT_TOO_SMALL, 1)]).unwrap_err().contains("none"));
    }

    #[test]
    fn of_hinted_sends_every_byte_is_counted() {
        let all = [(uapi::STAT_FITS_CACHE, 80_000), (uapi::STAT_TOO_SMALL, 20_000)];
        assert_eq!(check(Mode::Adaptive, &all), Ok(()));
        assert!(check(Mode::Nt, &all).is_err(), "an obeyed hint asks no cache");
        assert!(check(Mode::Adaptive, &all[..1]).is_err());
    }

    #[test]
    fn obeyed_sends_may_be_small_or_read_by_the_kernel() {
        let [nt, small, read] =
            [uapi::STAT_NONTEMPORAL, uapi::STAT_TOO_SMALL, uapi::STAT_READ_BY_KERNEL];
        assert_eq!(check(Mode::Nt, &[(nt, 70_000), (small, 30_000)]), Ok(()));
        assert_eq!(check(Mode::Nt, &[(read, 80_000), (small, 20_000)]), Ok(()));
        // Responses are below the least, and not all of them are counted as that.
        assert!(check(Mode::Nt, &[(nt, 90_000), (small, 10_000)]).is_err());
        assert!(check(Mode::Nt, &[(small, 100_000)]).is_err(), "nothing was done");
        assert!(check(Mode::Nt, &[]).unwrap_err().contains("no counter rose"));
    }
}
