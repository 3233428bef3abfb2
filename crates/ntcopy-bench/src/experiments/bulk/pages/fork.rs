//! The form with forks: a process forks in a loop, and one of the two writes to the buffer. It runs
//! in a um kernel, which can be told how to clear and copy its pages.

mod knob;
mod run;

use std::time::Duration;

use ntcopy_judge::stats::{THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Mode, Params, Sample};
use serde::Deserialize;

use self::run::ForkLoop;
use super::{Settings, defaults};
use crate::experiment::{with_baseline, words};
use crate::experiments::bulk::plan::check_pages;
use crate::experiments::bulk::task::PAGE_BYTES;
use crate::plan::error::check_pairs;
use crate::plan::{PlanError, or, params};
use crate::run::{Failure, ns};
use crate::sample::driver::{At, Context, Experiment, Groups, Halt, Lanes, Recording, index};
use crate::sample::{Bootable, MeasureError, Needs, Outcome, named};

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

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkDefaults {
    pub modes: Vec<ForkMode>,
    pub buffer_bytes: Vec<u64>,
    pub warm_up_ms: u64,
    pub sample_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPlan {
    pub cells: Vec<ForkCell>,
    /// The modes, the baseline first.
    pub modes: Vec<ForkMode>,
    pub pairs: u32,
    pub sample: Duration,
    pub warm_up: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkCell {
    /// Bytes of the buffer, whole pages.
    pub buffer_bytes: u64,
    pub user: User,
    pub usage: Use,
}

impl ForkCell {
    fn params(&self) -> Params {
        params([
            ("form", "fork".into()),
            ("user", self.user.to_string().into()),
            ("use", self.usage.to_string().into()),
            // The one that the kernel has.
            ("cpus", "0".into()),
            ("pages", "small".into()),
            ("size_bytes", self.buffer_bytes.into()),
        ])
    }
}

impl ForkPlan {
    pub fn samples(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.pairs) * self.modes.len() as u64
    }

    /// Memory in bytes that the largest cell needs: the buffer and its copy.
    pub fn memory_bytes(&self) -> u64 {
        2 * self.cells.iter().map(|cell| cell.buffer_bytes).max().unwrap_or(0)
    }
}

pub fn plan(settings: &Settings) -> Result<ForkPlan, PlanError> {
    let all = defaults(settings.quick);
    let defaults = &all.fork;
    let buffers = or(&settings.buffer_bytes, &defaults.buffer_bytes);
    check_pages(&buffers)?;
    let mode = |name: &String| name.parse().map_err(|why| format!("--modes {why}"));
    let asked = settings.modes.iter().map(mode).collect::<Result<Vec<ForkMode>, String>>()?;
    let mut cells = Vec::new();
    for &user in User::ALL {
        for &usage in Use::ALL {
            let sizes = buffers.iter().copied();
            cells.extend(sizes.map(|buffer_bytes| ForkCell { buffer_bytes, user, usage }));
        }
    }
    Ok(ForkPlan {
        cells,
        modes: with_baseline(ForkMode::Temporal, &or(&asked, &defaults.modes)),
        pairs: check_pairs(settings.pairs.unwrap_or(all.pairs))?,
        sample: Duration::from_millis(defaults.sample_ms),
        warm_up: Duration::from_millis(defaults.warm_up_ms),
    })
}

impl Experiment for ForkPlan {
    fn identity(&self) -> (ExperimentKind, Vec<Mode>) {
        (ExperimentKind::Pages, named(&self.modes))
    }

    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        let mut recording = Recording::begin(self, context)?;
        recording.expect(self.samples());
        recording.cells(0..self.cells.len(), |recording, number| {
            measure_cell(self, index(number), recording)
        })?;
        recording.end()
    }
}

impl Bootable for ForkPlan {
    fn needs(&self) -> Needs {
        Needs::new(self.samples(), self.memory_bytes(), [self.sample + self.warm_up].into_iter())
    }
}

fn measure_cell(plan: &ForkPlan, number: u32, recording: &mut Recording<'_>) -> Result<(), Halt> {
    let stop = recording.stop;
    stop.check()?;
    let cell = plan.cells[number as usize];
    recording.cell(number, cell.params())?;
    let forks = ForkLoop::new(cell, stop)?;
    let mut lanes = ForkLanes { plan, cell, forks };
    let what = format!("{}, {} writes", Bytes(cell.buffer_bytes), cell.user);
    let ForkPlan { modes, pairs, .. } = plan;
    let (alive, cells) = (modes.clone(), &[(number, &*what)]);
    recording.groups(&mut lanes, Groups { modes, alive, cells, pairs: *pairs })
}

struct ForkLanes<'a> {
    plan: &'a ForkPlan,
    cell: ForkCell,
    forks: ForkLoop,
}

impl Lanes for ForkLanes<'_> {
    type Mode = ForkMode;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&ExperimentKind::Pages, sample, THROUGHPUT)
    }

    /// Switches, warms up, clocks, holds the kernel's counters against the mode, and compares
    /// every byte.
    fn sample(&mut self, mode: ForkMode, at: At) -> Result<Sample, Failure> {
        knob::set(mode)?;
        let count = self.forks.warm_up(self.plan.warm_up, self.plan.sample)?;
        let before = knob::counts()?;
        let elapsed = self.forks.run(count)?;
        let pages = count * (self.cell.buffer_bytes / PAGE_BYTES);
        let counters = knob::check(mode, pages, before, knob::counts()?)?;
        self.forks.check()?;
        let elapsed_ns = ns(elapsed).max(1);
        Ok(Sample { counters, ..at.sample(mode, count * self.cell.buffer_bytes, elapsed_ns) })
    }
}
