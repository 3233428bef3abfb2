//! Plans of copies and fills, and what making one of them takes.

use std::time::Duration;

use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Params};

use super::task::{ELEMENT_BYTES, Heat, PAGE_BYTES, PIECE_BYTES, Pages, ReadBack, Task, Way};
use crate::experiment::with_baseline;
use crate::plan::{PlanError, or, params};

/// What the plan has to know of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resources {
    pub cpus: Vec<u32>,
    /// Bytes of memory that are to be had without pushing anything out.
    pub available_bytes: u64,
    /// Bytes of the last-level cache that one CPU sees.
    pub llc_bytes: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkPlan {
    pub experiment: ExperimentKind,
    pub cells: Vec<BulkCell>,
    /// The ways, the baseline first.
    pub ways: Vec<Way>,
    pub pairs: u32,
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
    pub left_out: Option<String>,
}

impl BulkCell {
    pub(crate) fn new(task: Task, size_bytes: u64, threads: u32) -> BulkCell {
        BulkCell { task, size_bytes, threads, left_out: None }
    }

    pub fn params(&self, plan: &BulkPlan) -> Params {
        let cpus: Vec<String> =
            plan.cpus.iter().take(self.threads as usize).map(ToString::to_string).collect();
        let mut all = params([
            ("size_bytes", self.size_bytes.into()),
            ("threads", self.threads.into()),
            ("cpus", cpus.join(",").into()),
            ("pages", if plan.huge_pages { "huge" } else { "small" }.into()),
            ("libc_tuned_threshold_bytes", plan.tuned_threshold_bytes.into()),
        ]);
        all.extend(match self.task {
            Task::Copy { source, destination, offset_bytes, read_back } => params([
                ("source", source.as_str().into()),
                ("destination", destination.as_str().into()),
                ("region_bytes", plan.destination_bytes.into()),
                ("offset_bytes", Some(offset_bytes).filter(|bytes| *bytes > 0).into()),
                (
                    "read_back",
                    Some(read_back.as_str()).filter(|_| read_back != ReadBack::None).into(),
                ),
            ]),
            Task::Fill { value, .. } => params([("value", value.into())]),
            Task::Matrix(task) => {
                params([("task", task.as_str().into()), ("side", side(self.size_bytes).into())])
            }
            Task::Pages { action, read_back } => params([
                ("form", "pages".into()),
                ("action", action.as_str().into()),
                ("read_back", read_back.as_str().into()),
            ]),
        });
        all
    }

    /// Why a way says nothing in this cell, if so.
    pub fn not_for(&self, way: Way) -> Option<String> {
        match (way, self.task) {
            (Way::Stream, Task::Copy { destination: Heat::Hot, .. })
                if self.size_bytes <= PIECE_BYTES =>
            {
                Some(format!("a call of {} is one piece of a stream", Bytes(self.size_bytes)))
            }
            (Way::Walk(walk), Task::Matrix(crate::experiments::bulk::task::MatrixTask::Sum))
                if walk.nontemporal =>
            {
                Some("a sum stores nothing, and loads have no non-temporal form here".to_owned())
            }
            (Way::Page(way), Task::Pages { action, .. }) => way.not_for(action).map(str::to_owned),
            _ => None,
        }
    }

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
pub fn side(matrix_bytes: u64) -> u64 {
    (matrix_bytes / ELEMENT_BYTES).isqrt()
}

impl BulkPlan {
    /// A plan that has no cells yet, no samples and no warm-up.
    pub(crate) fn new(
        experiment: ExperimentKind,
        ways: Vec<Way>,
        pages: Pages,
        resources: &Resources,
    ) -> BulkPlan {
        BulkPlan {
            experiment,
            cells: Vec::new(),
            ways,
            pairs: 0,
            sample: Duration::ZERO,
            warm_up: Duration::ZERO,
            cold_warm_up_bytes: 0,
            source_bytes: 0,
            destination_bytes: 0,
            huge_pages: pages == Pages::Huge,
            cpus: resources.cpus.clone(),
            tuned_threshold_bytes: None,
        }
    }

    /// Adds a cell, and the memory of its two sides; where that is not there beside what other cells
    /// need, the reason.
    pub(crate) fn add(
        &mut self,
        mut cell: BulkCell,
        source_bytes: u64,
        destination_bytes: u64,
        resources: &Resources,
    ) {
        // What was made for one cell stays for the next.
        let source_bytes = self.source_bytes.max(source_bytes);
        let destination_bytes = self.destination_bytes.max(destination_bytes);
        // The process with another threshold has memory of its own.
        let processes = if self.ways.contains(&Way::LibcTuned) { 2 } else { 1 };
        let needed = processes * (source_bytes + destination_bytes);
        let available = resources.available_bytes;
        // The rest of the system goes on.
        let is_too_much = needed > available / 4 * 3;
        cell.left_out = is_too_much.then(|| {
            format!(
                "needs {} MiB of memory, and of the {} MiB that are available no more than three \
                 quarters are taken",
                needed >> 20,
                available >> 20
            )
        });
        if !is_too_much {
            self.source_bytes = source_bytes;
            self.destination_bytes = destination_bytes;
        }
        self.cells.push(cell);
    }

    pub fn samples(&self) -> u64 {
        let measured = self.cells.iter().filter(|cell| cell.left_out.is_none()).count();
        measured as u64 * u64::from(self.pairs) * self.ways.len() as u64
    }
}

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
    let asked = names.iter().map(|name| task.way(name)).collect::<Result<Vec<Way>, String>>()?;
    Ok(with_baseline(task.way(baseline)?, &asked))
}

/// Numbers of threads for which there are CPUs: of others, those that were not asked for give way,
/// and those that were are refused.
pub(crate) fn threads(
    asked: &[u32],
    defaults: &[u32],
    resources: &Resources,
) -> Result<Vec<u32>, PlanError> {
    let mut threads = or(asked, defaults);
    if threads.contains(&0) {
        return Err(PlanError::zero("threads"));
    }
    let too_many = |threads: &u32| *threads as usize > resources.cpus.len();
    if let Some(threads) = asked.iter().find(|threads| too_many(threads)) {
        let cpus = resources.cpus.len();
        return Err(format!("--threads {threads}: this process may run on {cpus} CPUs").into());
    }
    threads.retain(|threads| !too_many(threads));
    Ok(threads)
}

#[cfg(test)]
pub(crate) fn test_resources(cpus: u32, available_bytes: u64) -> Resources {
    Resources { cpus: (0..cpus).collect(), available_bytes, llc_bytes: 32 << 20 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_share_the_memory_that_each_alone_would_have() {
        const MIB: u64 = 1 << 20;
        let resources = test_resources(1, 400 * MIB);
        let ways = vec![Way::Libc];
        let mut plan = BulkPlan::new(ExperimentKind::Memcpy, ways, Pages::Huge, &resources);
        for (source, destination) in [(256 * MIB, MIB), (MIB, 256 * MIB), (200 * MIB, 44 * MIB)] {
            let cell = BulkCell::new(Task::copy(Heat::Cold, Heat::Cold), MIB, 1);
            plan.add(cell, source, destination, &resources);
        }
        let left_out = plan.cells.iter().map(|cell| cell.left_out.is_some());
        assert_eq!(left_out.collect::<Vec<bool>>(), [false, true, false]);
        assert_eq!((plan.source_bytes, plan.destination_bytes), (256 * MIB, 44 * MIB));
    }
}
