//! The form with forks: a process forks in a loop, and one of the two writes to the buffer.

mod knob;
mod run;

use std::time::Duration;

use ntcopy_record::stats::{THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Machine, Params, Sample};
use serde::Deserialize;

use self::run::{ForkLoop, check, counts, set, why_fixed};
use super::{Settings, defaults};
use crate::experiment::bulk::PAGE_BYTES;
use crate::experiment::{with_baseline, words};
use crate::plan::bulk::check_pages;
use crate::plan::error::check_pairs;
use crate::plan::{Cpus, PlanError, or};
use crate::run::{Failure, Stop};
use crate::sample::driver::{At, Experiment, Halt, Lanes, Options, Recording, index};
use crate::sample::{MeasureError, Outcome, Progress};

/// Who writes to the buffer after a fork, while the other process waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    Parent,
    Child,
}

words!(User, Parent = "parent", Child = "child");

/// How much of the buffer is written after a fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// One byte a page: the least that makes the kernel copy it.
    Byte,
    All,
}

words!(Use, Byte = "byte", All = "all");

/// How the kernel clears and copies pages while a loop of forks runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    fn nontemporal(self) -> [bool; 2] {
        [self == ForkMode::Nt, self != ForkMode::Temporal]
    }
}

/// The defaults of `--form fork`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkDefaults {
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPlan {
    pub cells: Vec<ForkCell>,
    /// The modes, the baseline first.
    pub modes: Vec<ForkMode>,
    /// Interleaved groups in each cell.
    pub pairs: u32,
    pub sample: Duration,
    pub warm_up: Duration,
    pub cpu: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkCell {
    /// Bytes of the buffer, whole pages.
    pub buffer_bytes: u64,
    pub user: User,
    pub usage: Use,
}

impl ForkCell {
    fn params(&self, plan: &ForkPlan) -> Params {
        let words = [
            ("form", "fork".to_owned()),
            ("user", self.user.to_string()),
            ("use", self.usage.to_string()),
            ("cpus", plan.cpu.to_string()),
            ("pages", "small".to_owned()),
        ];
        let words = words.map(|(name, word)| (name.to_owned(), word.into()));
        let size = ("size_bytes".to_owned(), self.buffer_bytes.into());
        words.into_iter().chain([size]).collect()
    }
}

impl ForkPlan {
    /// Timed runs, if all goes well.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.pairs) * self.modes.len() as u64
    }

    /// Memory in bytes that the largest cell needs: the buffer and its copy.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        2 * self.cells.iter().map(|cell| cell.buffer_bytes).max().unwrap_or(0)
    }
}

pub fn plan(settings: &Settings, cpus: &Cpus) -> Result<ForkPlan, PlanError> {
    let (all, defaults) = (defaults(), &defaults().fork);
    let (pairs, sample_ms, buffers) = if settings.quick {
        (all.quick_pairs, defaults.quick_sample_ms, &defaults.quick_buffer_bytes)
    } else {
        (all.pairs, defaults.sample_ms, &defaults.buffer_bytes)
    };
    let buffers = or(&settings.buffer_bytes, buffers);
    check_pages(&buffers)?;
    let parsed = |mode: &String| mode.parse().map_err(|why| format!("--modes {why}").into());
    let asked = settings.modes.iter().map(parsed).collect::<Result<Vec<ForkMode>, PlanError>>()?;
    let mut cells = Vec::new();
    for &user in &defaults.users {
        for &usage in &defaults.uses {
            let sizes = buffers.iter().copied();
            cells.extend(sizes.map(|buffer_bytes| ForkCell { buffer_bytes, user, usage }));
        }
    }
    Ok(ForkPlan {
        cells,
        modes: with_baseline(ForkMode::Temporal, &or(&asked, &defaults.modes)),
        pairs: check_pairs(settings.pairs.unwrap_or(pairs))?,
        sample: Duration::from_millis(sample_ms),
        warm_up: Duration::from_millis(defaults.warm_up_ms),
        cpu: cpus.allowed.first().copied().unwrap_or(0),
    })
}

impl Experiment for ForkPlan {
    fn experiment(&self) -> ExperimentKind {
        ExperimentKind::Pages
    }

    fn baseline(&self) -> String {
        ForkMode::Temporal.to_string()
    }

    fn measure(
        &self,
        machine: Machine,
        options: &Options,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Outcome, MeasureError> {
        let why_fixed = why_fixed(&machine.kernel_kind);
        let mut recording = Recording::begin(self, machine, options, stop, progress)?;
        let mut plan = self.clone();
        if let Some(why) = &why_fixed {
            // Whatever this kernel does is the baseline.
            for mode in plan.modes.drain(1..) {
                recording.unavailable(mode, why.as_str(), None)?;
            }
        }
        recording.expect(plan.samples());
        let is_fixed = why_fixed.is_some();
        recording.cells(0..plan.cells.len(), |recording, number| {
            measure_cell(&plan, index(number), (is_fixed, options.spoil), recording)
        })?;
        recording.end(stop.signal())
    }
}

fn measure_cell(
    plan: &ForkPlan,
    number: u32,
    (is_fixed, spoil): (bool, bool),
    recording: &mut Recording<'_>,
) -> Result<(), Halt> {
    let stop = recording.stop();
    stop.check()?;
    let cell = plan.cells[number as usize];
    recording.cell(number, cell.params(plan))?;
    let forks = match ForkLoop::new(cell, plan.cpu, stop) {
        Ok(forks) => forks,
        Err(failure) => {
            for mode in &plan.modes {
                recording.error(number, mode, &failure)?;
            }
            return Ok(());
        }
    };
    let mut lanes = ForkLanes { plan, cell, forks, is_fixed, spoil, alive: plan.modes.clone() };
    let what = format!("{}, {} writes", Bytes(cell.buffer_bytes), cell.user);
    let before = u64::from(number) * u64::from(plan.pairs) * plan.modes.len() as u64;
    recording.groups(&mut lanes, &plan.modes, (number, plan.pairs), (&what, before))
}

/// The modes of one cell, which share a buffer.
struct ForkLanes<'a> {
    plan: &'a ForkPlan,
    cell: ForkCell,
    forks: ForkLoop,
    /// Whether this kernel clears and copies in one way only.
    is_fixed: bool,
    spoil: bool,
    alive: Vec<ForkMode>,
}

impl Lanes for ForkLanes<'_> {
    type Mode = ForkMode;
    type Trouble = Failure;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&ExperimentKind::Pages, sample, THROUGHPUT)
    }

    fn is_alive(&self, mode: ForkMode) -> bool {
        self.alive.contains(&mode)
    }

    /// Switches, warms up, clocks, holds the kernel's counters against the mode, and compares
    /// every byte.
    fn sample(&mut self, mode: ForkMode, at: At) -> Result<Sample, Failure> {
        if !self.is_fixed {
            set(mode)?;
        }
        let count = self.forks.warm_up(self.plan.warm_up, self.plan.sample)?;
        let before = counts()?;
        let (elapsed, mut counters) = self.forks.run(count)?;
        let after = counts()?;
        if !self.is_fixed {
            let pages = count * (self.cell.buffer_bytes / PAGE_BYTES);
            counters.extend(check(mode, pages, before, after)?);
        }
        self.forks.check(self.spoil)?;
        let elapsed_ns = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX).max(1);
        Ok(Sample { counters, ..at.sample(mode, count * self.cell.buffer_bytes, elapsed_ns) })
    }

    /// One error row, and the mode is not tried again in this cell: nothing here fails by chance.
    fn failed(
        &mut self,
        mode: ForkMode,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        recording.give_up(&mut self.alive, (at.cell, mode), &failure)
    }
}
