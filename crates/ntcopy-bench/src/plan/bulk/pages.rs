//! The plan of experiment `pages`, form `pages`.

use std::time::Duration;

use super::{
    BulkCell, BulkPlan, BulkPlanError, Room, budget_bytes, check_pages, check_pairs, cpus, or,
    too_little_memory, ways,
};
use crate::experiment::bulk::Task;
use crate::experiment::pages::{Action, PAGE_BYTES, ReadBack, Settings, defaults};

/// Makes the plan.
///
/// # Errors
///
/// When the settings ask for something that cannot be; nothing has been measured then.
pub fn plan(settings: &Settings, room: &Room) -> Result<BulkPlan, BulkPlanError> {
    let all = defaults();
    let defaults = &all.pages;
    let (pairs, sample_ms) = if settings.quick {
        (all.quick_pairs, defaults.quick_sample_ms)
    } else {
        (all.pairs, defaults.sample_ms)
    };
    let buffers = buffers(settings, room)?;
    let any = Task::Pages { action: Action::Copy, read_back: ReadBack::None };
    let mut plan = BulkPlan {
        experiment: &all.name,
        cells: Vec::new(),
        ways: ways(&defaults.baseline, &or(&settings.peers, &defaults.peers), any)?,
        pairs: check_pairs(settings.pairs.unwrap_or(pairs))?,
        sample: Duration::from_millis(sample_ms),
        warm_up: Duration::from_millis(defaults.warm_up_ms),
        cold_warm_up_bytes: 0,
        source_bytes: 0,
        destination_bytes: 0,
        source_offset_bytes: 0,
        huge_pages: true,
        cpus: cpus(&settings.cpus, &mut vec![1], true, room)?,
        tuned_threshold_bytes: None,
    };
    for action in or(&settings.actions, &defaults.actions) {
        for read_back in or(&settings.read_back, &defaults.read_back) {
            for size_bytes in &buffers {
                add(&mut plan, Task::Pages { action, read_back }, *size_bytes, room);
            }
        }
    }
    Ok(plan)
}

/// The sizes of the buffer: those that were asked for; or the default ones, and one beyond the
/// last-level cache.
fn buffers(settings: &Settings, room: &Room) -> Result<Vec<u64>, BulkPlanError> {
    let defaults = &defaults().pages;
    let mut buffers = match (settings.buffer_bytes.is_empty(), settings.quick) {
        (false, _) => settings.buffer_bytes.clone(),
        (true, true) => defaults.quick_buffer_bytes.clone(),
        (true, false) => defaults.buffer_bytes.clone(),
    };
    if settings.buffer_bytes.is_empty() && !settings.quick {
        let beyond = (defaults.beyond_llcs * room.llc_bytes).min(defaults.most_beyond_bytes);
        let beyond = beyond.next_multiple_of(PAGE_BYTES);
        if !buffers.contains(&beyond) && beyond > 0 {
            buffers.push(beyond);
        }
    }
    check_pages(&buffers)?;
    Ok(buffers)
}

/// Adds a cell, and the memory that it needs; without that memory, the reason.
fn add(plan: &mut BulkPlan, task: Task, size_bytes: u64, room: &Room) {
    let is_copy = matches!(task, Task::Pages { action: Action::Copy, .. });
    let source_bytes = if is_copy { size_bytes } else { 0 };
    let needed = source_bytes + size_bytes;
    let left_out = (needed > budget_bytes(room)).then(|| too_little_memory(needed, room));
    if left_out.is_none() {
        plan.source_bytes = plan.source_bytes.max(source_bytes);
        plan.destination_bytes = plan.destination_bytes.max(size_bytes);
    }
    plan.cells.push(BulkCell { task, size_bytes, threads: 1, left_out });
}
