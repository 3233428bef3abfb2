//! The plan of experiment `memset`.

use std::time::Duration;

use ntcopy::arch;

use super::{
    BulkCell, BulkPlan, BulkPlanError, Room, budget_bytes, check_pairs, check_sizes, cpus,
    too_little_memory, ways,
};
use crate::experiment::bulk::{Heat, Task, Way};
use crate::experiment::memset::{Settings, defaults};

/// Makes the plan. `tuned_threshold_bytes` is the C library's other threshold, where it has one for
/// memset.
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
    let (pairs, sample_ms, sizes) = if settings.quick {
        (defaults.quick_pairs, defaults.quick_sample_ms, &defaults.quick_size_bytes)
    } else {
        (defaults.pairs, defaults.sample_ms, &defaults.size_bytes)
    };
    let sizes = if settings.size_bytes.is_empty() { sizes } else { &settings.size_bytes };
    check_sizes(sizes)?;
    let named = !settings.threads.is_empty();
    let mut threads = if named { &settings.threads } else { &defaults.threads }.clone();
    let cpus = cpus(&settings.cpus, &mut threads, named, room)?;
    let task =
        Task::Fill { value: settings.value.unwrap_or(defaults.value), destination: Heat::Hot };
    let mut ways = if settings.peers.is_empty() {
        ways(&defaults.baseline, &defaults.peers, task)?
    } else {
        ways(&defaults.baseline, &settings.peers, task)?
    };
    if settings.peers.is_empty() {
        ways.retain(|way| stores(*way, task));
    }
    let mut plan = BulkPlan {
        experiment: &defaults.name,
        cells: Vec::new(),
        ways,
        pairs: check_pairs(settings.pairs.unwrap_or(pairs))?,
        sample: Duration::from_millis(sample_ms),
        warm_up: Duration::from_millis(defaults.warm_up_ms),
        cold_warm_up_bytes: 0,
        source_bytes: 0,
        destination_bytes: 0,
        source_offset_bytes: 0,
        huge_pages: !settings.small_pages,
        cpus,
        tuned_threshold_bytes,
    };
    // The process with the other threshold has memory of its own.
    let processes = if plan.ways.contains(&Way::LibcTuned) { 2 } else { 1 };
    for threads in threads {
        for size_bytes in sizes {
            let needed = u64::from(threads) * size_bytes.next_multiple_of(super::LINE_BYTES);
            let fits = processes * needed <= budget_bytes(room);
            if fits {
                plan.destination_bytes = plan.destination_bytes.max(needed);
            }
            plan.cells.push(BulkCell {
                task,
                size_bytes: *size_bytes,
                threads,
                left_out: (!fits).then(|| too_little_memory(processes * needed, room)),
            });
        }
    }
    Ok(plan)
}

/// Whether a way stores this value on a CPU that has it: CLZERO and its like store zeros only.
fn stores(way: Way, task: Task) -> bool {
    match (way, task) {
        (Way::Fill(method), Task::Fill { value, .. }) => {
            arch::fill_backend(method).is_some_and(|row| row.can_fill_with(value))
        }
        _ => true,
    }
}
