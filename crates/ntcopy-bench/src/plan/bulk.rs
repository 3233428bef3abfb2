//! Plans of the experiments on copies in user space, and what making one of them takes.

use std::time::Duration;

use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Params};

use super::PlanError;
use crate::experiment::bulk::{ELEMENT_BYTES, Heat, PAGE_BYTES, PIECE_BYTES, Task, Way};

/// Buffers of one slot begin at multiples of this many bytes: a cache line.
pub const LINE_BYTES: u64 = 64;

/// What the plan has to know of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    /// CPUs that this process may run on, in order.
    pub cpus: Vec<u32>,
    /// Bytes of memory that are to be had without pushing anything out.
    pub available_bytes: u64,
    /// Bytes of the last-level cache that one CPU sees.
    pub llc_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkPlan {
    pub experiment: ExperimentKind,
    /// The combinations of parameters, in order.
    pub cells: Vec<BulkCell>,
    /// The ways, the baseline first.
    pub ways: Vec<Way>,
    /// Interleaved groups in each cell.
    pub pairs: u32,
    /// How long a sample lasts about.
    pub sample: Duration,
    /// How long a way runs before each sample without being clocked.
    pub warm_up: Duration,
    /// And how many bytes it moves in a cold cell, at least.
    pub cold_warm_up_bytes: u64,
    pub source_bytes: u64,
    pub destination_bytes: u64,
    /// Transparent huge pages, instead of pages of 4 KiB.
    pub huge_pages: bool,
    /// The CPUs, one a thread.
    pub cpus: Vec<u32>,
    /// The C library's threshold in the process with a corrected one.
    pub tuned_threshold_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkCell {
    pub task: Task,
    /// Bytes that one call of one thread writes, or reads where nothing is written.
    pub size_bytes: u64,
    pub threads: u32,
    /// Why the cell is not measured, if it is not.
    pub left_out: Option<String>,
}

impl BulkCell {
    /// The parameters as the record has them.
    #[must_use]
    pub fn params(&self, plan: &BulkPlan) -> Params {
        let mut params = Params::new();
        let mut put = |name: &str, value: serde_json::Value| params.insert(name.to_owned(), value);
        match self.task {
            Task::Copy { source, destination } => {
                put("source", source.as_str().into());
                put("destination", destination.as_str().into());
                put("region_bytes", plan.destination_bytes.into());
            }
            Task::Fill { value, .. } => {
                put("value", value.into());
            }
            Task::Matrix(task) => {
                put("task", task.as_str().into());
                put("side", side(self.size_bytes).into());
            }
            Task::Pages { action, read_back } => {
                put("form", "pages".into());
                put("action", action.as_str().into());
                put("read_back", read_back.as_str().into());
            }
        }
        put("size_bytes", self.size_bytes.into());
        put("threads", self.threads.into());
        let cpus: Vec<String> =
            plan.cpus.iter().take(self.threads as usize).map(ToString::to_string).collect();
        put("cpus", cpus.join(",").into());
        put("pages", if plan.huge_pages { "huge" } else { "small" }.into());
        if let Some(bytes) = plan.tuned_threshold_bytes {
            put("libc_tuned_threshold_bytes", bytes.into());
        }
        params
    }

    /// Why a way says nothing in this cell, if so.
    #[must_use]
    pub fn not_for(&self, way: Way) -> Option<String> {
        match (way, self.task) {
            (Way::Stream, _) if self.size_bytes <= PIECE_BYTES => {
                Some(format!("a call of {} is one piece of a stream", Bytes(self.size_bytes)))
            }
            (Way::Walk(walk), Task::Matrix(crate::experiment::bulk::MatrixTask::Sum))
                if walk.nontemporal =>
            {
                Some("a sum stores nothing, and loads have no non-temporal form here".to_owned())
            }
            (Way::Page(way), Task::Pages { action, .. }) => way.not_for(action).map(str::to_owned),
            _ => None,
        }
    }

    /// Whether a side of it is cold.
    #[must_use]
    pub fn is_cold(&self) -> bool {
        matches!(
            self.task,
            Task::Copy { source: Heat::Cold, .. }
                | Task::Copy { destination: Heat::Cold, .. }
                | Task::Fill { destination: Heat::Cold, .. }
        )
    }
}

/// Rows of a square matrix of this many bytes.
#[must_use]
pub fn side(matrix_bytes: u64) -> u64 {
    (matrix_bytes / ELEMENT_BYTES).isqrt()
}

impl BulkPlan {
    /// The mode that the others are compared with.
    #[must_use]
    pub fn baseline(&self) -> Way {
        self.ways.first().copied().unwrap_or(Way::Libc)
    }

    #[must_use]
    pub fn samples(&self) -> u64 {
        let measured = self.cells.iter().filter(|cell| cell.left_out.is_none()).count();
        measured as u64 * u64::from(self.pairs) * self.ways.len() as u64
    }
}

/// Larger than any call of interest.
const MOST_BYTES: u64 = 64 << 30;

pub(crate) fn check_sizes(sizes: &[u64]) -> Result<(), PlanError> {
    match sizes.iter().find(|size| **size == 0 || **size > MOST_BYTES) {
        None => Ok(()),
        Some(0) => Err(PlanError::zero("size")),
        Some(size) => Err(format!("--size {}: at most 64 GiB", Bytes(*size)).into()),
    }
}

pub(crate) fn check_pages(sizes: &[u64]) -> Result<(), PlanError> {
    if sizes.contains(&0) {
        return Err(PlanError::zero("buffer"));
    }
    if let Some(bytes) = sizes.iter().find(|bytes| !bytes.is_multiple_of(PAGE_BYTES)) {
        let bytes = Bytes(*bytes);
        return Err(format!("--buffer {bytes}: a whole number of pages of 4 KiB").into());
    }
    check_sizes(sizes)
}

/// The ways of these names, the baseline first, each once.
pub(crate) fn ways(baseline: &str, names: &[String], task: Task) -> Result<Vec<Way>, PlanError> {
    let mut ways = vec![task.way(baseline)?];
    for name in names {
        let way = task.way(name)?;
        if !ways.contains(&way) {
            ways.push(way);
        }
    }
    Ok(ways)
}

/// Numbers of threads for which there are CPUs: of others, those that were not asked for give way,
/// and those that were are refused.
pub(crate) fn check_threads(
    threads: &mut Vec<u32>,
    named: bool,
    resources: &Resources,
) -> Result<(), PlanError> {
    if threads.contains(&0) {
        return Err(PlanError::zero("threads"));
    }
    let too_many = |threads: &u32| *threads as usize > resources.cpus.len();
    if let Some(threads) = threads.iter().copied().find(|threads| named && too_many(threads)) {
        let cpus = resources.cpus.len();
        return Err(format!("--threads {threads}: this process may run on {cpus} CPUs").into());
    }
    threads.retain(|threads| !too_many(threads));
    Ok(())
}

/// What a measurement may take of the memory that is available: the rest of the system goes on.
pub(crate) fn budget_bytes(resources: &Resources) -> u64 {
    resources.available_bytes / 4 * 3
}

/// Why a cell that needs more memory than there is is left out.
pub(crate) fn too_little_memory(needed_bytes: u64, resources: &Resources) -> String {
    format!(
        "needs {} MiB of memory, and of the {} MiB that are available no more than three quarters \
         are taken",
        needed_bytes >> 20,
        resources.available_bytes >> 20
    )
}

/// A machine with this number of CPUs and this memory.
#[cfg(test)]
pub(crate) fn test_resources(cpus: u32, available_bytes: u64) -> Resources {
    Resources { cpus: (0..cpus).collect(), available_bytes, llc_bytes: 32 << 20 }
}
