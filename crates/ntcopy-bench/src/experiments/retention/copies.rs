//! The form with copies: a streamer copies by the library, a victim walks.

pub mod plan;
pub mod run;
mod sample;

use serde::Deserialize;

use super::{Settings, defaults};
use crate::experiment::{with_baseline, words};
use crate::plan::PlanError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyMode {
    /// No copy at all: what the victim does when left alone. Always measured; the baseline.
    Idle,
    /// A normal copy: temporal loads and stores.
    Copy,
    /// A non-temporal destination; the source is read as usual.
    Nt,
    /// A non-temporal destination and a non-temporal source.
    NtBoth,
}

words!(CopyMode, Idle = "idle", Copy = "copy", Nt = "nt", NtBoth = "nt-both");

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Victim {
    /// On the streamer's core: a pass of the victim and an object of the streamer take turns.
    SameCore,
    /// On another core with the same last-level cache, while the streamer copies.
    Neighbour,
}

words!(Victim, SameCore = "same-core", Neighbour = "neighbour");

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub modes: Vec<CopyMode>,
    pub victims: Vec<Victim>,
    pub object_bytes: u64,
    pub rate_bytes_per_s: u64,
    pub dataset_by_llc: u64,
    pub most_dataset_bytes: u64,
    pub pairs: u32,
    pub sample_ms: u64,
    pub warm_up_ms: u64,
}

impl Settings {
    /// The modes to measure of copies, each once: `idle`, and those asked for.
    fn modes_of_copies(&self) -> Result<Vec<CopyMode>, PlanError> {
        let hint = "to measure sends, name --sockets, --family or a --kernel";
        let asked = super::modes(&self.modes, &defaults(self.quick).copies.modes)
            .map_err(|error| PlanError::from(format!("{error}; {hint}")))?;
        Ok(with_baseline(CopyMode::Idle, &asked))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_comes_first_and_no_mode_twice() {
        let asked = ["nt", "nt"].map(str::to_owned).into();
        let settings = Settings { modes: asked, ..Settings::default() };
        assert_eq!(settings.modes_of_copies().unwrap(), [CopyMode::Idle, CopyMode::Nt]);
        assert_eq!(Settings::default().modes_of_copies().unwrap(), CopyMode::ALL);
        assert_eq!(defaults(false).copies.victims, Victim::ALL);
    }
}
