use super::*;
use crate::judge;
use crate::stats::footprint as stats_footprint;
use crate::stats::{DISPLACED, TURNS, Verdict};
use ntcopy_record::testing;

/// One cell, five pairs; `hinted` at these rates beside 100.
fn nt_at(rates: [u64; 5]) -> Judged {
    judge(&testing::sends(&["plain", "hinted"], rates.map(|rate| [100, rate])))
}

fn crossover(points: &[(u64, u64)]) -> Judged {
    judge(&testing::crossover(points))
}

fn one<'r>(a: &'r Judged, b: &'r Judged) -> Comparison<'r> {
    compare(std::slice::from_ref(a), std::slice::from_ref(b))
}

#[test]
fn the_ratio_of_the_ratios_has_an_interval() {
    let [a, b] = [80, 120].map(|rate| nt_at([rate; 5]));
    let comparison = one(&a, &b);
    let [cell] = comparison.cells.as_slice() else { panic!("{comparison:?}") };
    assert!(
        (cell.versus.ratio - 1.5).abs() < 1e-6 && cell.versus.verdict() == Verdict::Win,
        "{cell:?}"
    );
}

#[test]
fn noise_on_both_sides_is_unresolved() {
    let noisy = nt_at([80, 120, 100, 90, 110]);
    let other = nt_at([90, 110, 105, 80, 120]);
    let comparison = one(&noisy, &other);
    assert_eq!(comparison.cells[0].versus.verdict(), Verdict::Unresolved);
}

#[test]
fn cells_are_the_same_by_what_was_asked_and_not_by_where_it_ran() {
    let mut a = nt_at([80; 5]);
    let mut b = a.clone();
    a.cells[0].params.insert("sender_cpu".into(), 0.into());
    b.cells[0].params.insert("sender_cpu".into(), 7.into());
    b.cells[0].params.insert("ours_path".into(), "libc".into());
    assert_eq!(one(&a, &b).cells.len(), 1);
    b.cells[0].params.insert("object_bytes".into(), 7.into());
    let comparison = one(&a, &b);
    assert_eq!((comparison.cells.len(), comparison.only_a, comparison.only_b), (0, 1, 1));
}

#[test]
fn cells_of_a_mode_are_counted_and_their_mean_is_taken() {
    let a = crossover(&[(1 << 20, 80), (64 << 20, 120)]);
    let b = crossover(&[(1 << 20, 100), (64 << 20, 120), (128 << 20, 120)]);
    let comparison = one(&a, &b);
    assert_eq!((comparison.cells.len(), comparison.only_b), (2, 1));
}

#[test]
fn of_two_records_of_a_side_the_newer_one_counts_and_no_timing_counts_nothing() {
    let (mut old, mut new) = (nt_at([80; 5]), nt_at([120; 5]));
    (old.header.started_unix_ns, new.header.started_unix_ns) = (1, 2);
    let (alone, side) = ([old.clone()], [old.clone(), new]);
    let ratio = |comparison: &Comparison<'_>| comparison.cells[0].versus.ratio;
    let comparison = compare(&alone, &side);
    assert!((ratio(&comparison) - 1.5).abs() < 1e-6);
    assert_eq!(comparison.cells.len(), 1);
    let mut emulated = old.clone();
    emulated.header.not_a_timing = Some("an emulated CPU".into());
    assert!(compare(&[emulated], &side).cells.is_empty());
}

#[test]
fn the_hosts_cells_are_not_held_against_a_booted_kernels_where_there_are_better_ones() {
    let host = nt_at([80; 5]);
    let mut booted = nt_at([120; 5]);
    booted.machine.kernel_kind = "um".into();
    let ratios = |a: &[Judged], b: &[Judged]| -> Vec<f64> {
        compare(a, b).cells.iter().map(|one| (one.versus.ratio * 1e6).round() / 1e6).collect()
    };
    let both = [host.clone(), booted.clone()];
    assert_eq!(ratios(&both, &both), [1.0, 1.0]);
    assert_eq!(ratios(&[host], &[booted]), [1.5], "with nothing else, across kernels");
}

#[test]
fn differences_are_named_the_cpu_first() {
    let a = nt_at([80; 5]);
    let mut b = a.clone();
    assert_eq!(differences(&a, &b), []);
    b.machine.libc = "glibc 2.41".into();
    b.machine.llc_bytes = 64 << 20;
    b.machine.cpu_model = "another".into();
    b.header.ntcopy = "0.9.0".into();
    let what: Vec<&str> = differences(&a, &b).iter().map(|one| one.what).collect();
    assert_eq!(what, ["CPU", "last-level cache that one CPU sees", "C library", "ntcopy"]);
    let why = is_same_machine(&b.machine, &a.machine).unwrap_err();
    assert!(why.contains("CPU: another") && why.contains("64 MiB, not 32 MiB"), "{why}");
    assert!(!why.contains("glibc"), "one machine may have several: {why}");
}

#[test]
fn turns_of_a_program_are_compared_by_its_own_figure() {
    // Plain turns of 100 ns, hinted ones of 100 and of 50.
    let [a, b] = [100, 50].map(|hinted| judge(&testing::turns(&[(100, hinted); 6])));
    let comparison = one(&a, &b);
    let [cell] = comparison.cells.as_slice() else { panic!("{comparison:?}") };
    assert_eq!(
        (cell.a.question.metric, cell.versus.ratio, cell.versus.verdict()),
        (TURNS, 2.0, Verdict::Win)
    );
    let mut other = b.clone();
    other.cells[0].params.insert("program".into(), serde_json::json!(["dog"]));
    assert!(compare(&[a], &[other]).cells.is_empty(), "another program");
}

#[test]
fn calls_are_compared_by_what_they_displace() {
    let of = |copy: u64, primed: u64| {
        let calls = [("copy:4KiB", None, 10 + copy), ("check-read", Some(300), 310)];
        let mut record = stats_footprint::tests::record(&calls);
        for cell in &mut record.cells {
            cell.params.insert("threshold_cycles".into(), primed.into());
        }
        judge(&record)
    };
    let (a, b) = (of(400, 90), of(200, 80));
    let comparison = one(&a, &b);
    let [cell] = comparison.cells.as_slice() else { panic!("{comparison:?}") };
    let Question { mode, metric, .. } = cell.a.question;
    assert_eq!((metric, mode, cell.versus.ratio), (DISPLACED, "copy:4KiB", 2.0));
    assert_eq!(cell.a.versus.ratio, 64.0 / 400.0);
}
