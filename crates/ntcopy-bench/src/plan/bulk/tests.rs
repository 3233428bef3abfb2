use super::*;
use crate::experiment::pages::{self, Action, ForkMode, User};
use crate::experiment::{memcpy, memset, order};

const GIB: u64 = 1 << 30;

fn room(cpus: u32, available_bytes: u64) -> Room {
    Room { cpus: (0..cpus).collect(), available_bytes, llc_bytes: 32 << 20 }
}

#[test]
fn memcpy_takes_every_combination_that_the_issue_names() {
    let plan = plan_memcpy(&memcpy::Settings::default(), &room(2, 64 * GIB), None).unwrap();
    assert_eq!(plan.cells.len(), 10 * 2 * 2 * 2);
    assert_eq!(plan.baseline(), Way::Libc);
    assert!(plan.cells.iter().all(|cell| cell.left_out.is_none()));
    // Two threads of 1 GiB each; the region, 4 x 32 MiB raised to 256 MiB, is less.
    assert_eq!((plan.source_bytes, plan.destination_bytes), (2 * GIB, 2 * GIB));
}

#[test]
fn what_does_not_fit_the_memory_is_left_out_and_says_why() {
    let plan = plan_memcpy(&memcpy::Settings::default(), &room(1, 4 * GIB), None).unwrap();
    let left_out: Vec<&BulkCell> = plan.cells.iter().filter(|c| c.left_out.is_some()).collect();
    assert!(left_out.len() == 4 && left_out.iter().all(|cell| cell.size_bytes == GIB));
    assert!(left_out[0].left_out.as_ref().unwrap().contains("4096 MiB"), "{left_out:?}");
    assert!(2 * (plan.source_bytes + plan.destination_bytes) <= 3 * GIB);
    assert!(plan.cells.iter().all(|cell| cell.threads == 1), "there is one CPU");
}

#[test]
fn threads_that_were_asked_for_are_not_dropped_without_a_word() {
    let settings = memcpy::Settings { threads: vec![2], ..memcpy::Settings::default() };
    let error = plan_memcpy(&settings, &room(1, GIB), None).unwrap_err();
    assert_eq!(error, BulkPlanError::TooManyThreads { threads: 2, cpus: 1 });
}

#[test]
fn zeros_and_strangers_are_refused() {
    let refused = |settings| plan_memcpy(&settings, &room(2, GIB), None).unwrap_err().to_string();
    let settings = memcpy::Settings::default;
    for (settings, words) in [
        (memcpy::Settings { size_bytes: vec![0], ..settings() }, "--size 0"),
        (memcpy::Settings { pairs: Some(4), ..settings() }, "at least 5"),
        (memcpy::Settings { cpus: vec![9], ..settings() }, "--cpus 9"),
        (memcpy::Settings { peers: vec!["memcopy".into()], ..settings() }, "--modes memcopy"),
        (memcpy::Settings { region_bytes: Some(0), ..settings() }, "--region 0"),
    ] {
        let error = refused(settings);
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_value_other_than_zero_leaves_out_what_stores_zeros_only() {
    let settings = memset::Settings { value: Some(7), ..memset::Settings::default() };
    let plan = plan_memset(&settings, &room(1, 64 * GIB), None).unwrap();
    assert!(plan.ways.iter().all(|way| way.to_string() != "clzero"));
    assert!(plan.ways.contains(&Way::Ours));
}

#[test]
fn a_sum_has_no_non_temporal_form() {
    let plan = plan_order(&order::Settings::default(), &room(1, 64 * GIB)).unwrap();
    let task = Task::Matrix(crate::experiment::bulk::MatrixTask::Sum);
    let sum = plan.cells.iter().find(|cell| cell.task == task).unwrap();
    let measured = plan.ways.iter().filter(|way| sum.not_for(**way).is_none()).count();
    assert_eq!(measured, 2);
    assert_eq!(side(sum.size_bytes), 1000);
}

#[test]
fn one_piece_is_no_stream() {
    let settings = memcpy::Settings { size_bytes: vec![4096, 1 << 20], ..Default::default() };
    let plan = plan_memcpy(&settings, &room(1, 8 * GIB), None).unwrap();
    let streams: Vec<u64> = plan
        .cells
        .iter()
        .filter(|cell| cell.not_for(Way::Stream).is_none())
        .map(|cell| cell.size_bytes)
        .collect();
    assert!(streams.iter().all(|size| *size == 1 << 20) && streams.len() == 4);
}

#[test]
fn pages_are_asked_about_within_l1_within_l2_and_beyond_the_last_level_cache() {
    let plan = plan_pages(&pages::Settings::default(), &room(1, 64 * GIB)).unwrap();
    // Two actions, three ways to read back; three sizes and twice the 32 MiB of the cache.
    assert_eq!(plan.cells.len(), 2 * 3 * 4);
    assert_eq!(plan.baseline().to_string(), "rep-b");
    assert_eq!((plan.source_bytes, plan.destination_bytes), (64 << 20, 64 << 20));
    let measured = |action| {
        let task =
            |cell: &&BulkCell| matches!(cell.task, Task::Pages { action: a, .. } if a == action);
        let cell = plan.cells.iter().find(task).unwrap();
        plan.ways.iter().filter(|way| cell.not_for(**way).is_none()).count()
    };
    assert_eq!((plan.ways.len(), measured(Action::Clear), measured(Action::Copy)), (9, 7, 8));
}

#[test]
fn a_copy_that_does_not_fit_is_left_out_and_the_clear_is_not() {
    let settings = pages::Settings { buffer_bytes: vec![512 << 20], ..Default::default() };
    let plan = plan_pages(&settings, &room(1, GIB)).unwrap();
    let (kept, left): (Vec<&BulkCell>, Vec<&BulkCell>) =
        plan.cells.iter().partition(|cell| cell.left_out.is_none());
    assert_eq!((kept.len(), left.len()), (3, 3));
    assert_eq!((plan.source_bytes, plan.destination_bytes), (0, 512 << 20));
}

#[test]
fn forks_have_the_sizes_of_2004_and_every_mode_beside_the_baseline() {
    let plan = plan_fork(&pages::ForkSettings::default(), &room(2, GIB)).unwrap();
    assert_eq!(plan.modes, [ForkMode::Temporal, ForkMode::Nt, ForkMode::NtCopy]);
    assert_eq!(plan.cells.len(), 8 * 2 * 2);
    let sizes = |user| plan.cells.iter().filter(move |cell| cell.user == user);
    assert_eq!(sizes(User::Parent).map(|cell| cell.pages()).max(), Some(80));
    assert_eq!(sizes(User::Child).map(|cell| cell.pages()).min(), Some(1));
    assert_eq!(plan.samples(), 32 * 3 * 15);
    assert_eq!(plan.memory_bytes(), 2 * 327_680);
}

#[test]
fn half_a_page_is_no_buffer() {
    for bytes in [0, 6000] {
        let forks = pages::ForkSettings { buffer_bytes: vec![bytes], ..Default::default() };
        let error = plan_fork(&forks, &room(1, GIB)).unwrap_err().to_string();
        assert!(error.contains("--buffer"), "{error}");
        let settings = pages::Settings { buffer_bytes: vec![bytes], ..Default::default() };
        assert_eq!(plan_pages(&settings, &room(1, GIB)).unwrap_err().to_string(), error);
    }
}
