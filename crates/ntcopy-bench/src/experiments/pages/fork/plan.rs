//! The plan of experiment `pages`, form `fork`.

use std::time::Duration;

use ntcopy_record::Params;

use super::super::defaults;
use super::{ForkMode, ForkSettings, Use, User};
use crate::experiment::bulk::PAGE_BYTES;
use crate::plan::bulk::{Room, check_pages};
use crate::plan::error::check_pairs;
use crate::plan::{PlanError, or};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForkPlan {
    /// The combinations of parameters, in order.
    pub cells: Vec<ForkCell>,
    /// The modes, the baseline first.
    pub modes: Vec<ForkMode>,
    /// Interleaved groups in each cell.
    pub pairs: u32,
    /// How long a sample lasts about.
    pub sample: Duration,
    /// How long a mode runs before each sample without being clocked.
    pub warm_up: Duration,
    pub cpu: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForkCell {
    /// Bytes of the buffer, whole pages.
    pub buffer_bytes: u64,
    /// Who uses it after the fork.
    pub user: User,
    pub usage: Use,
}

impl ForkCell {
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.buffer_bytes / PAGE_BYTES
    }

    /// The parameters as the record has them.
    #[must_use]
    pub fn params(&self, plan: &ForkPlan) -> Params {
        let mut params = Params::new();
        let mut put = |name: &str, value: serde_json::Value| params.insert(name.to_owned(), value);
        put("form", "fork".into());
        put("size_bytes", self.buffer_bytes.into());
        put("user", self.user.as_str().into());
        put("use", self.usage.as_str().into());
        put("cpus", plan.cpu.to_string().into());
        put("pages", "small".into());
        params
    }
}

impl ForkPlan {
    /// The mode that the others are compared with.
    #[must_use]
    pub fn baseline(&self) -> ForkMode {
        self.modes.first().copied().unwrap_or(ForkMode::Temporal)
    }

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

pub fn plan(settings: &ForkSettings, room: &Room) -> Result<ForkPlan, PlanError> {
    let all = defaults();
    let defaults = &all.fork;
    let (pairs, sample_ms, buffers) = if settings.quick {
        (all.quick_pairs, defaults.quick_sample_ms, &defaults.quick_buffer_bytes)
    } else {
        (all.pairs, defaults.sample_ms, &defaults.buffer_bytes)
    };
    let buffers = or(&settings.buffer_bytes, buffers);
    check_pages(&buffers)?;
    let mut modes = vec![defaults.baseline];
    for mode in or(&settings.modes, &defaults.modes) {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    let mut cells = Vec::new();
    for &user in &defaults.users {
        for &usage in &defaults.uses {
            let sizes = buffers.iter().copied();
            cells.extend(sizes.map(|buffer_bytes| ForkCell { buffer_bytes, user, usage }));
        }
    }
    Ok(ForkPlan {
        cells,
        modes,
        pairs: check_pairs(settings.pairs.unwrap_or(pairs))?,
        sample: Duration::from_millis(sample_ms),
        warm_up: Duration::from_millis(defaults.warm_up_ms),
        cpu: room.cpus.first().copied().unwrap_or(0),
    })
}
