//! What a measurement needs of the kernel that is booted for it.

use std::time::Duration;

use super::Experiment;
use crate::plan::Sysctl;

/// Time for everything but the samples, before a kernel counts as hung.
pub(crate) const OVERHEAD: Duration = Duration::from_secs(600);
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
    pub(crate) fn new(
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
