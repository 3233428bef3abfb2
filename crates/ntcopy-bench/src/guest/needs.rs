//! What a measurement needs of the kernel that is booted for it.

use std::time::Duration;

use crate::experiment::Times;
use crate::experiments::app;
use crate::experiments::http::plan::HttpPlan;
use crate::experiments::net::NetPlan;
use crate::experiments::pages::fork::ForkPlan;
use crate::experiments::pingpong::PingPongPlan;
use crate::plan::{self, Plan, Sysctl};
use crate::sample::Experiment;

/// Time for everything but the samples, before a kernel counts as hung.
const OVERHEAD: Duration = Duration::from_secs(600);
/// A sample may take this many times its planned length, checks and warm-up included.
const SAMPLE_FACTOR: u32 = 30;

/// What the plan of an experiment needs of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Timed runs, if all goes well.
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
    #[must_use]
    pub fn with_budget(self, budget: Option<Duration>) -> Needs {
        let budget = budget.unwrap_or_default() * SAMPLE_FACTOR;
        Needs { longest: self.longest.map(|longest| longest + budget), ..self }
    }
}

/// An experiment that can be measured in a booted kernel.
pub trait Bootable: Experiment {
    fn needs(&self) -> Needs;
}

impl Bootable for Plan {
    fn needs(&self) -> Needs {
        Needs {
            samples: self.samples(),
            memory_bytes: self.memory_bytes(),
            sysctls: plan::sysctls(self),
            longest: longest(self),
        }
    }
}

impl Bootable for HttpPlan {
    fn needs(&self) -> Needs {
        let forms = self.cells.iter().map(|cell| self.times(cell.form));
        Needs {
            samples: self.samples(),
            memory_bytes: self.memory_bytes(),
            sysctls: self.sysctls(),
            longest: Some(of_load(forms, self.pairs, self.ways.len())),
        }
    }
}

impl Bootable for NetPlan {
    fn needs(&self) -> Needs {
        let forms = self.cells.iter().map(|cell| self.times(cell.form));
        Needs {
            samples: self.samples(),
            memory_bytes: self.memory_bytes(),
            sysctls: self.sysctls(),
            longest: Some(of_load(forms, self.pairs, self.modes.len())),
        }
    }
}

impl Bootable for PingPongPlan {
    fn needs(&self) -> Needs {
        Needs {
            samples: self.samples(),
            memory_bytes: self.memory_bytes(),
            sysctls: Vec::new(),
            longest: Some(of_samples(self.samples(), self.sample + self.warm_up)),
        }
    }
}

impl Bootable for ForkPlan {
    fn needs(&self) -> Needs {
        Needs {
            samples: self.samples(),
            memory_bytes: self.memory_bytes(),
            sysctls: Vec::new(),
            longest: Some(of_samples(self.samples(), self.sample + self.warm_up)),
        }
    }
}

impl Bootable for app::Plan {
    fn needs(&self) -> Needs {
        Needs {
            samples: self.samples(),
            memory_bytes: self.memory_bytes(),
            sysctls: Vec::new(),
            longest: Some(of_samples(self.samples(), self.sample_time())),
        }
    }
}

/// How long samples of one length may take.
fn of_samples(samples: u64, sample: Duration) -> Duration {
    let samples = u32::try_from(samples).unwrap_or(u32::MAX);
    OVERHEAD + sample.saturating_mul(samples).saturating_mul(SAMPLE_FACTOR)
}

/// How long the samples of clients may take: in each cell, `pairs` groups of `modes` samples.
fn of_load(cells: impl Iterator<Item = Times>, pairs: u32, modes: usize) -> Duration {
    let samples = pairs.saturating_mul(u32::try_from(modes).unwrap_or(1));
    let sample = |times: Times| times.sample + times.warm_up;
    cells.fold(OVERHEAD, |longest, times| {
        longest + sample(times).saturating_mul(samples).saturating_mul(SAMPLE_FACTOR)
    })
}

fn longest(plan: &Plan) -> Option<Duration> {
    let mut longest = OVERHEAD;
    for cell in &plan.cells {
        let sample = plan.sample_time(cell)?;
        let samples = plan.pairs.saturating_mul(u32::try_from(plan.modes.len()).unwrap_or(1));
        longest += sample.saturating_mul(samples).saturating_mul(SAMPLE_FACTOR);
    }
    Some(longest)
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
        assert!(longest(&plan(&rounds)).is_some_and(|limit| limit > OVERHEAD));
        let free = Settings { iterations: Some(100_000), ..Settings::default() };
        assert_eq!(longest(&plan(&free)), None);
    }
}
