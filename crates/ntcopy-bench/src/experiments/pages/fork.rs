//! The form with forks: a process forks in a loop, and one of the two writes to the buffer.

#[cfg(not(feature = "fake-lanes"))]
mod knob;
mod plan;
#[cfg(not(feature = "fake-lanes"))]
mod run;
#[cfg(feature = "fake-lanes")]
#[path = "fork/fake.rs"]
mod run;
mod sample;

use serde::{Deserialize, Serialize};

use crate::experiment::words;

pub use self::plan::{ForkCell, ForkPlan, plan};

/// Who uses the buffer after a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum User {
    /// The process that forked, while the child waits.
    Parent,
    /// The new one, while the parent waits.
    Child,
}

words!(User, Parent = "parent", Child = "child");

/// How much of the buffer is written after a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Use {
    /// One byte a page: the least that makes the kernel copy it.
    Byte,
    All,
}

words!(Use, Byte = "byte", All = "all");

/// How the kernel clears and copies pages while a loop of forks runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForkMode {
    Temporal,
    /// With non-temporal stores.
    Nt,
    /// Clears with normal ones, copies with non-temporal ones.
    NtCopy,
}

words!(ForkMode, Temporal = "temporal", Nt = "nt", NtCopy = "nt-copy");

impl ForkMode {
    /// Whether it clears, and whether it copies, non-temporally.
    #[must_use]
    pub fn nontemporal(self) -> (bool, bool) {
        match self {
            ForkMode::Temporal => (false, false),
            ForkMode::Nt => (true, true),
            ForkMode::NtCopy => (false, true),
        }
    }
}

/// The defaults of `--form fork`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkDefaults {
    /// The mode that the others are compared with.
    pub baseline: ForkMode,
    pub modes: Vec<ForkMode>,
    pub buffer_bytes: Vec<u64>,
    pub quick_buffer_bytes: Vec<u64>,
    pub users: Vec<User>,
    pub uses: Vec<Use>,
    /// How long a mode runs before each sample without being clocked, in milliseconds.
    pub warm_up_ms: u64,
    /// How long a sample lasts about, in milliseconds.
    pub sample_ms: u64,
    pub quick_sample_ms: u64,
}

/// What a user asks for of `--form fork`; what is left open comes from
/// [`defaults`](super::defaults).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForkSettings {
    /// The modes. Empty: the default ones.
    pub modes: Vec<ForkMode>,
    /// Sizes of the buffer. Empty: the default ones.
    pub buffer_bytes: Vec<u64>,
    pub pairs: Option<u32>,
    /// Fewer sizes and groups, shorter samples.
    pub quick: bool,
}
