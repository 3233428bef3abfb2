//! How many bytes all nodes together may send.
//!
//! Each record has a bound of its own, which a fleet multiplies: what is being received is held in
//! memory, and what was received is in the store. One number bounds the sum of both.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Shared by all that receive.
#[derive(Debug, Clone)]
pub struct Budget {
    most_bytes: u64,
    used_bytes: Arc<AtomicU64>,
}

impl Budget {
    #[must_use]
    pub fn new(most_bytes: u64) -> Budget {
        Budget { most_bytes, used_bytes: Arc::default() }
    }

    /// Takes room for a record before its bytes come.
    ///
    /// # Errors
    ///
    /// Says what the bound is, and which option raises it.
    pub fn take(&self, bytes: u64) -> Result<Room, String> {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.most_bytes);
        match self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
            Ok(_) => Ok(Room { budget: self.clone(), bytes }),
            Err(used) => Err(format!(
                "{bytes} bytes are too many: all nodes together may send {} bytes, and {used} are \
                 taken; what is stored stays, --max-bytes raises the bound",
                self.most_bytes
            )),
        }
    }
}

/// Bytes that are taken until this is dropped.
#[derive(Debug)]
pub struct Room {
    budget: Budget,
    bytes: u64,
}

impl Room {
    /// Leaves some of the bytes taken for good: they are in the store.
    pub fn keep(mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.budget.used_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_taken_and_the_rest_comes_back() {
        let budget = Budget::new(100);
        let first = budget.take(60).unwrap();
        assert!(budget.take(41).unwrap_err().contains("--max-bytes"));
        drop(budget.take(40).unwrap());
        first.keep(50);
        assert!(budget.take(51).is_err());
        assert!(budget.take(50).is_ok());
        assert!(budget.take(u64::MAX).is_err());
    }
}
