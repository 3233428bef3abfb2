//! The plan of experiment `memcpy`.

use std::time::Duration;

use ntcopy_record::units::Bytes;

use super::{
    BulkCell, BulkPlan, BulkPlanError, LINE_BYTES, Room, budget_bytes, check_pairs, check_sizes,
    cpus, or, too_little_memory, ways,
};
use crate::experiment::bulk::{Heat, Task, Way};
use crate::experiment::memcpy::{Settings, defaults};
use crate::experiment::pages::PAGE_BYTES;

/// Makes the plan. `tuned_threshold_bytes` is the C library's corrected threshold, where there is
/// one.
///
/// # Errors
///
/// When the settings ask for something that cannot be; nothing has been measured then.
pub fn plan(
    settings: &Settings,
    room: &Room,
    tuned_threshold_bytes: Option<u64>,
) -> Result<BulkPlan, BulkPlanError> {
    let defaults = defaults();
    let (pairs, sample_ms, sizes, threads) = if settings.quick {
        let (sizes, threads) = (&defaults.quick_size_bytes, &defaults.quick_threads);
        (defaults.quick_pairs, defaults.quick_sample_ms, sizes, threads)
    } else {
        (defaults.pairs, defaults.sample_ms, &defaults.size_bytes, &defaults.threads)
    };
    let sizes = or(&settings.size_bytes, sizes);
    let mut threads = or(&settings.threads, threads);
    check_sizes(&sizes)?;
    if settings.source_offset_bytes >= PAGE_BYTES {
        return Err(BulkPlanError::BeyondPage(Bytes(settings.source_offset_bytes)));
    }
    let cpus = cpus(&settings.cpus, &mut threads, !settings.threads.is_empty(), room)?;
    let any = Task::Copy { source: Heat::Cold, destination: Heat::Cold };
    let ways = ways(&defaults.baseline, &or(&settings.peers, &defaults.peers), any)?;
    let region = settings.region_bytes.unwrap_or_else(|| {
        (defaults.region_llcs * room.llc_bytes).max(defaults.least_region_bytes)
    });
    if region == 0 {
        return Err(super::BulkPlanError::Zero("region"));
    }
    // The process with the corrected threshold has memory of its own.
    let processes = if ways.contains(&Way::LibcTuned) { 2 } else { 1 };
    let mut plan = BulkPlan {
        experiment: &defaults.name,
        cells: Vec::new(),
        ways,
        pairs: check_pairs(settings.pairs.unwrap_or(pairs))?,
        sample: Duration::from_millis(sample_ms),
        warm_up: Duration::from_millis(defaults.warm_up_ms),
        cold_warm_up_bytes: room.llc_bytes.min(defaults.most_warm_up_bytes).min(region),
        source_bytes: 0,
        destination_bytes: 0,
        source_offset_bytes: settings.source_offset_bytes,
        huge_pages: !settings.small_pages,
        cpus,
        tuned_threshold_bytes,
    };
    for threads in threads {
        for source in or(&settings.source, &[Heat::Hot, Heat::Cold]) {
            for destination in or(&settings.destination, &[Heat::Hot, Heat::Cold]) {
                for size_bytes in &sizes {
                    let task = Task::Copy { source, destination };
                    let cell = BulkCell { task, size_bytes: *size_bytes, threads, left_out: None };
                    add(&mut plan, cell, region, processes, room);
                }
            }
        }
    }
    Ok(plan)
}

/// Adds a cell, and the memory that it needs; without that memory, the reason.
fn add(plan: &mut BulkPlan, mut cell: BulkCell, region: u64, processes: u64, room: &Room) {
    let Task::Copy { source, destination } = cell.task else { return };
    let slots = u64::from(cell.threads) * cell.size_bytes.next_multiple_of(LINE_BYTES);
    let side = |heat| match heat {
        Heat::Hot => slots,
        Heat::Cold => slots.max(region),
    };
    let (source, destination) = (side(source), side(destination));
    if processes * (source + destination) > budget_bytes(room) {
        cell.left_out = Some(too_little_memory(processes * (source + destination), room));
    } else {
        plan.source_bytes = plan.source_bytes.max(source);
        plan.destination_bytes = plan.destination_bytes.max(destination);
    }
    plan.cells.push(cell);
}
