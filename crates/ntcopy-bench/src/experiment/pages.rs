//! Experiment `pages`: its defaults and what a user may set.

use serde::{Deserialize, Serialize};

/// The experiment's name.
pub const NAME: &str = "pages";

/// The defaults as they ship, with their comments.
pub const DEFAULTS_TOML: &str = include_str!("../../../../bench/experiments/pages.toml");

/// Bytes of a page, on every machine that this program runs on.
pub const PAGE_BYTES: u64 = 4096;

/// What is done to a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It is filled with zeros.
    Clear,
    /// Another page is copied to it.
    Copy,
}

words!(Action, Clear = "clear", Copy = "copy");

/// What is read of the pages afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadBack {
    /// Nothing.
    None,
    /// 100 bytes of each, in five places.
    Some,
    /// Every byte.
    All,
}

words!(ReadBack, None = "none", Some = "some", All = "all");

/// A way to clear a page, and to copy one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PageWay {
    /// `rep stosb`, `rep movsb`.
    RepB,
    /// `rep stosq`, `rep movsq`.
    RepQ,
    /// SSE, normal stores, PREFETCHT0 on the source.
    SseT0,
    /// SSE, normal stores, PREFETCHNTA on the source.
    SseNta,
    /// SSE, non-temporal stores, PREFETCHT0 on the source.
    SseNtT0,
    /// SSE, non-temporal stores, PREFETCHNTA on the source.
    SseNtNta,
    /// MOVNTI, by the kernel series' own assembly.
    Movnti,
    /// MOVDIR64B; a copy by the kernel series' own assembly.
    Movdir64b,
    /// CLZERO, by the kernel series' own assembly.
    Clzero,
}

words!(
    PageWay,
    RepB = "rep-b",
    RepQ = "rep-q",
    SseT0 = "sse-t0",
    SseNta = "sse-nta",
    SseNtT0 = "sse-nt-t0",
    SseNtNta = "sse-nt-nta",
    Movnti = "movnti",
    Movdir64b = "movdir64b",
    Clzero = "clzero"
);

impl PageWay {
    /// Why it says nothing about an action, if so.
    #[must_use]
    pub fn not_for(self, action: Action) -> Option<&'static str> {
        match (self, action) {
            (PageWay::SseNta | PageWay::SseNtNta, Action::Clear) => {
                Some("a clear has no source to prefetch: it would be the same as with t0")
            }
            (PageWay::Clzero, Action::Copy) => Some("CLZERO stores zeros, and copies nothing"),
            _ => None,
        }
    }
}

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
    /// Every byte.
    All,
}

words!(Use, Byte = "byte", All = "all");

/// How the kernel clears and copies pages while a loop of forks runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ForkMode {
    /// With normal stores.
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

/// The defaults.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    /// The experiment's name.
    pub name: String,
    /// What it does, in a line.
    pub about: String,
    /// Interleaved groups.
    pub pairs: u32,
    /// The same with `--quick`.
    pub quick_pairs: u32,
    /// Those of `--form pages`.
    pub pages: PagesDefaults,
    /// Those of `--form fork`.
    pub fork: ForkDefaults,
}

/// The defaults of `--form pages`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PagesDefaults {
    /// The way that the others are compared with.
    pub baseline: String,
    /// The others.
    pub peers: Vec<String>,
    /// What is done.
    pub actions: Vec<Action>,
    /// What is read afterwards.
    pub read_back: Vec<ReadBack>,
    /// Sizes of the buffer.
    pub buffer_bytes: Vec<u64>,
    /// The same with `--quick`.
    pub quick_buffer_bytes: Vec<u64>,
    /// Times the last-level cache that one more buffer is large.
    pub beyond_llcs: u64,
    /// And how large it is at most.
    pub most_beyond_bytes: u64,
    /// How long a way runs before each sample without being clocked, in milliseconds.
    pub warm_up_ms: u64,
    /// How long a sample lasts about, in milliseconds.
    pub sample_ms: u64,
    /// The same with `--quick`.
    pub quick_sample_ms: u64,
}

/// The defaults of `--form fork`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkDefaults {
    /// The mode that the others are compared with.
    pub baseline: ForkMode,
    /// The others.
    pub modes: Vec<ForkMode>,
    /// Sizes of the buffer.
    pub buffer_bytes: Vec<u64>,
    /// The same with `--quick`.
    pub quick_buffer_bytes: Vec<u64>,
    /// Who uses it.
    pub users: Vec<User>,
    /// And how.
    pub uses: Vec<Use>,
    /// How long a mode runs before each sample without being clocked, in milliseconds.
    pub warm_up_ms: u64,
    /// How long a sample lasts about, in milliseconds.
    pub sample_ms: u64,
    /// The same with `--quick`.
    pub quick_sample_ms: u64,
}

super::reads_defaults!("pages");

/// What a user asks for of `--form pages`; what is left open comes from [`defaults`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Names of the ways. Empty: the default ones.
    pub peers: Vec<String>,
    /// What is done. Empty: both.
    pub actions: Vec<Action>,
    /// What is read afterwards. Empty: all three.
    pub read_back: Vec<ReadBack>,
    /// Sizes of the buffer. Empty: the default ones.
    pub buffer_bytes: Vec<u64>,
    /// The CPU. Empty: the first.
    pub cpus: Vec<u32>,
    /// Interleaved groups.
    pub pairs: Option<u32>,
    /// Fewer sizes and groups, shorter samples.
    pub quick: bool,
}

/// What a user asks for of `--form fork`; what is left open comes from [`defaults`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForkSettings {
    /// The modes. Empty: the default ones.
    pub modes: Vec<ForkMode>,
    /// Sizes of the buffer. Empty: the default ones.
    pub buffer_bytes: Vec<u64>,
    /// Who uses it. Empty: both, one cell each.
    pub users: Vec<User>,
    /// And how. Empty: both, one cell each.
    pub uses: Vec<Use>,
    /// The CPU. Empty: the first.
    pub cpus: Vec<u32>,
    /// Interleaved groups.
    pub pairs: Option<u32>,
    /// Fewer sizes and groups, shorter samples.
    pub quick: bool,
}

#[cfg(test)]
mod tests {
    use super::super::bulk::Task;
    use super::*;

    #[test]
    fn defaults_parse_and_every_way_exists() {
        let defaults = defaults();
        assert_eq!(defaults.name, NAME);
        let task = Task::Pages { action: Action::Copy, read_back: ReadBack::None };
        for way in defaults.pages.peers.iter().chain([&defaults.pages.baseline]) {
            assert!(task.way(way).is_ok(), "{way}");
        }
        assert_eq!(defaults.fork.baseline.nontemporal(), (false, false));
        let sizes = [&defaults.pages.buffer_bytes, &defaults.fork.buffer_bytes];
        assert!(sizes.into_iter().flatten().all(|bytes| bytes.is_multiple_of(PAGE_BYTES)));
    }

    #[test]
    fn a_word_that_is_none_names_those_that_are() {
        assert_eq!("all".parse(), Ok(ReadBack::All));
        let error = "every".parse::<ReadBack>().unwrap_err();
        assert!(error.contains("none, some, all"), "{error}");
    }
}
