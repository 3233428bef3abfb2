//! What a measurement needs of the kernel that is booted for it.

use std::time::Duration;

use crate::experiments::app;
use crate::experiments::http::HttpPlan;
use crate::experiments::net::NetPlan;
use crate::experiments::pages::fork::ForkPlan;
use crate::experiments::pingpong::PingPongPlan;
use crate::plan::{self, SendsPlan, Sysctl};
use crate::sample::Experiment;

/// Time for everything but the samples, before a kernel counts as hung.
const OVERHEAD: Duration = Duration::from_secs(600);
/// A sample may take this many times its planned length, checks and warm-up included.
const SAMPLE_FACTOR: u32 = 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    pub samples: u64,
    /// Bytes of memory beside the kernel and the programs.
    pub memory_bytes: u64,
    pub sysctls: Vec<Sysctl>,
    /// How long the kernel may run before it counts as hung; none when the user has set how much
    /// is done, which may take as long as it likes.
    pub longest: Option<Duration>,
}

impl Needs {
    /// The same where cells are sampled until they are resolved, for this time at most.
    pub fn with_budget(self, budget: Option<Duration>) -> Needs {
        let budget = budget.unwrap_or_default() * SAMPLE_FACTOR;
        Needs { longest: self.longest.map(|longest| longest + budget), ..self }
    }
}

pub trait Bootable: Experiment {
    fn needs(&self) -> Needs;
}

impl Needs {
    /// With a sample of each of these lengths as often as all come to `samples`.
    fn new(
        samples: u64,
        memory_bytes: u64,
        lengths: impl ExactSizeIterator<Item = Duration>,
    ) -> Needs {
        let each = samples / lengths.len().max(1) as u64;
        let each = u32::try_from(each).unwrap_or(u32::MAX).saturating_mul(SAMPLE_FACTOR);
        let longest = lengths
            .fold(OVERHEAD, |longest, length| longest.saturating_add(length.saturating_mul(each)));
        Needs { samples, memory_bytes, sysctls: Vec::new(), longest: Some(longest) }
    }
}

impl Bootable for SendsPlan {
    fn needs(&self) -> Needs {
        let length = |cell| self.sample_time(cell).unwrap_or_default();
        let needs = Needs::new(self.samples(), self.memory_bytes(), self.cells.iter().map(length));
        let is_known = self.cells.iter().all(|cell| self.sample_time(cell).is_some());
        let longest = needs.longest.filter(|_| is_known);
        Needs { sysctls: plan::sysctls(self), longest, ..needs }
    }
}

impl Bootable for HttpPlan {
    fn needs(&self) -> Needs {
        let lengths = self.cells.iter().map(|cell| self.lengths.of(cell.form).whole());
        let needs = Needs::new(self.samples(), self.memory_bytes(), lengths);
        Needs { sysctls: self.sysctls(), ..needs }
    }
}

impl Bootable for NetPlan {
    fn needs(&self) -> Needs {
        let lengths = self.cells.iter().map(|cell| self.lengths.of(cell.form).whole());
        let needs = Needs::new(self.samples(), self.memory_bytes(), lengths);
        Needs { sysctls: self.sysctls(), ..needs }
    }
}

impl Bootable for PingPongPlan {
    fn needs(&self) -> Needs {
        let length = [self.sample + self.warm_up].into_iter();
        Needs::new(self.samples(), self.memory_bytes(), length)
    }
}

impl Bootable for ForkPlan {
    fn needs(&self) -> Needs {
        let length = [self.sample + self.warm_up].into_iter();
        Needs::new(self.samples(), self.memory_bytes(), length)
    }
}

impl Bootable for app::AppPlan {
    fn needs(&self) -> Needs {
        Needs::new(self.samples(), self.memory_bytes(), [self.sample + self.warm_up].into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::unix::{self, Settings};
    use crate::plan::Cpus;

    #[test]
    fn only_a_run_whose_length_is_known_has_a_limit() {
        let plan = |settings: &Settings| {
            unix::plan(settings, &Cpus { allowed: vec![0], sharing_l2: None }).unwrap()
        };
        let rounds = Settings { sockets: vec![1, 128], ..Settings::default() };
        assert!(plan(&rounds).needs().longest.is_some_and(|limit| limit > OVERHEAD));
        let free = Settings { iterations: Some(100_000), ..Settings::default() };
        assert_eq!(plan(&free).needs().longest, None);
    }
}
