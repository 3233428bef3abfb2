//! What is counted of requests.

use std::time::Duration;

use httpd::metrics::{Counter, Histogram};

use crate::send::{Mode, Reason};

/// Statuses that are answered; anything else would be a mistake, and is counted as the last.
pub const STATUSES: [u16; 23] = [
    200, 201, 204, 206, 304, 400, 404, 405, 408, 411, 412, 413, 414, 415, 416, 417, 431, 500, 501,
    503, 505, 507, 0,
];

httpd::counters! {
    /// What a worker counts of requests.
    pub struct Plain {
        received: "counter" "received_body_bytes_total" "Body bytes of PUTs.",
        aborted: "counter" "aborted_responses_total" "Responses cut off: peer gone, time out, bad disk.",
        timeouts: "counter" "timeouts_total" "Connections ended by a time-out while busy.",
        damaged: "counter" "damaged_total" "Requests answered 500 because a file was gone or too short.",
        hits: "counter" "open_hits_total" "GETs that found the object open.",
        misses: "counter" "open_misses_total" "GETs that had to open the object.",
    }
}

/// A worker's.
#[derive(Debug, Default)]
pub struct Counters {
    pub plain: Plain,
    pub statuses: [Counter; STATUSES.len()],
    pub sent: [Counter; Mode::ALL.len()],
    pub reasons: [Counter; Reason::ALL.len()],
    pub durations: Histogram,
}

impl Counters {
    pub fn answered(&self, status: u16, took: Duration) {
        let at = STATUSES.iter().position(|known| *known == status);
        self.statuses[at.unwrap_or(STATUSES.len() - 1)].up();
        self.durations.took(took);
    }

    /// A body went this way, for this reason.
    pub fn sent(&self, mode: Mode, reason: Reason, bytes: u64) {
        self.sent[mode as usize].add(bytes);
        self.reasons[reason as usize].up();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_and_reason_has_its_place() {
        assert!(Mode::ALL.into_iter().enumerate().all(|(at, mode)| mode as usize == at));
        assert!(Reason::ALL.into_iter().enumerate().all(|(at, reason)| reason as usize == at));
    }
}
