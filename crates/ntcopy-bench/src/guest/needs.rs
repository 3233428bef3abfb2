//! What a measurement needs of the kernel that is booted for it.

use std::time::Duration;

use crate::plan::bulk::ForkPlan;
use crate::plan::http::{HttpPlan, Times};
use crate::plan::net::NetPlan;
use crate::plan::pingpong::PingPongPlan;
use crate::plan::{self, Plan, Sysctl};

/// Time for everything but the samples, before a kernel counts as hung.
const OVERHEAD: Duration = Duration::from_secs(600);
/// So many times its planned length a sample may take, checks and warm-up included.
const SAMPLE_FACTOR: u32 = 30;

/// What the plan of an experiment needs of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// Timed runs, if all goes well.
    pub samples: u64,
    /// Bytes of memory beside the kernel and the programs.
    pub memory_bytes: u64,
    /// Limits to set.
    pub sysctls: Vec<Sysctl>,
    /// How long the kernel may run before it counts as hung; none when the user has set how much
    /// is done, which may take as long as it likes.
    pub longest: Option<Duration>,
}

impl Needs {
    /// Those of an experiment with sends.
    #[must_use]
    pub fn of(plan: &Plan) -> Needs {
        Needs {
            samples: plan.samples(),
            memory_bytes: plan.memory_bytes(),
            sysctls: plan::sysctls(plan),
            longest: longest(plan),
        }
    }

    /// Those of clients, proxies and backends.
    #[must_use]
    pub fn of_http(plan: &HttpPlan) -> Needs {
        let forms = plan.cells.iter().map(|cell| plan.times(cell.form));
        let width = usize::try_from(plan.width(plan.ways.len())).unwrap_or(usize::MAX);
        let longest = of_load(forms, plan.pairs, width);
        Needs {
            samples: plan.samples(),
            memory_bytes: plan.memory_bytes(),
            sysctls: plan.sysctls(),
            longest: Some(longest),
        }
    }

    /// Those of a client and a server with requests and responses.
    #[must_use]
    pub fn of_net(plan: &NetPlan) -> Needs {
        let forms = plan.cells.iter().map(|cell| plan.times(cell.form));
        let longest = of_load(forms, plan.pairs, plan.modes.len());
        Needs {
            samples: plan.samples(),
            memory_bytes: plan.memory_bytes(),
            sysctls: plan.sysctls(),
            longest: Some(longest),
        }
    }

    /// Those of a client and a server with one message.
    #[must_use]
    pub fn of_pingpong(plan: &PingPongPlan) -> Needs {
        let samples = u32::try_from(plan.samples()).unwrap_or(u32::MAX);
        let sample = plan.sample + plan.warm_up;
        Needs {
            samples: plan.samples(),
            memory_bytes: plan.memory_bytes(),
            sysctls: Vec::new(),
            longest: Some(OVERHEAD + sample.saturating_mul(samples).saturating_mul(SAMPLE_FACTOR)),
        }
    }

    /// Those of loops of forks.
    #[must_use]
    pub fn of_forks(plan: &ForkPlan) -> Needs {
        let samples = u32::try_from(plan.samples()).unwrap_or(u32::MAX);
        let sample = plan.sample + plan.warm_up;
        Needs {
            samples: plan.samples(),
            memory_bytes: plan.memory_bytes(),
            sysctls: Vec::new(),
            longest: Some(OVERHEAD + sample.saturating_mul(samples).saturating_mul(SAMPLE_FACTOR)),
        }
    }
}

/// How long the samples of clients may take: in each cell so many groups of so many modes.
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
    use crate::experiment::unix::Settings;
    use crate::plan::Cpus;

    #[test]
    fn only_a_run_whose_length_is_known_has_a_limit() {
        let plan = |settings: &Settings| {
            plan::plan(settings, &Cpus { allowed: vec![0], sharing_l2: None }).unwrap()
        };
        let rounds = Settings { sockets: vec![1, 128], ..Settings::default() };
        assert!(longest(&plan(&rounds)).is_some_and(|limit| limit > OVERHEAD));
        let free = Settings { iterations: Some(100_000), ..Settings::default() };
        assert_eq!(longest(&plan(&free)), None);
    }
}
