//! The plan of experiment `order`.

use std::time::Duration;

use super::{
    BulkCell, BulkPlan, BulkPlanError, Room, budget_bytes, check_pairs, check_sizes, cpus,
    too_little_memory, ways,
};
use crate::experiment::bulk::{MatrixTask, Task};
use crate::experiment::order::{ELEMENT_BYTES, Settings, defaults};

/// Makes the plan.
///
/// # Errors
///
/// When the settings ask for something that cannot be; nothing has been measured then.
pub fn plan(settings: &Settings, room: &Room) -> Result<BulkPlan, BulkPlanError> {
    let defaults = defaults();
    let (pairs, sample_ms, sides) = if settings.quick {
        (defaults.quick_pairs, defaults.quick_sample_ms, &defaults.quick_side)
    } else {
        (defaults.pairs, defaults.sample_ms, &defaults.side)
    };
    let sides = if settings.side.is_empty() { sides } else { &settings.side };
    if sides.contains(&0) {
        return Err(BulkPlanError::Zero("side"));
    }
    let bytes = |side: &u64| side.saturating_mul(*side).saturating_mul(ELEMENT_BYTES);
    check_sizes(&sides.iter().map(bytes).collect::<Vec<u64>>())?;
    let tasks = if settings.tasks.is_empty() { &defaults.tasks } else { &settings.tasks };
    let peers = if settings.peers.is_empty() { &defaults.peers } else { &settings.peers };
    let mut plan = BulkPlan {
        experiment: &defaults.name,
        cells: Vec::new(),
        ways: ways(&defaults.baseline, peers, Task::Matrix(MatrixTask::Sum))?,
        pairs: check_pairs(settings.pairs.unwrap_or(pairs))?,
        sample: Duration::from_millis(sample_ms),
        warm_up: Duration::ZERO,
        cold_warm_up_bytes: 0,
        source_bytes: 0,
        destination_bytes: 0,
        source_offset_bytes: 0,
        huge_pages: !settings.small_pages,
        cpus: cpus(&settings.cpus, &mut vec![1], true, room)?,
        tuned_threshold_bytes: None,
    };
    for side in sides {
        for task in tasks {
            let (size_bytes, matrices) = (bytes(side), 2);
            let fits = matrices * size_bytes <= budget_bytes(room);
            if fits {
                plan.source_bytes = plan.source_bytes.max(size_bytes);
                plan.destination_bytes = plan.destination_bytes.max(size_bytes);
            }
            plan.cells.push(BulkCell {
                task: Task::Matrix(*task),
                size_bytes,
                threads: 1,
                left_out: (!fits).then(|| too_little_memory(matrices * size_bytes, room)),
            });
        }
    }
    Ok(plan)
}
