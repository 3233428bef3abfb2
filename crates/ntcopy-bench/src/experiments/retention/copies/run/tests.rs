use super::*;
use crate::experiments::retention::copies::plan::{Here, plan};
use crate::experiments::retention::copies::{Settings, Victim};

/// A bench of next to nothing, both on the first CPU that this process may run on.
fn bench() -> Bench {
    let cpu = cpus::cpus().unwrap().allowed[0];
    let here = Here {
        allowed: vec![cpu],
        victim_cpu: cpu,
        sharing_llc: None,
        sharing_core: None,
        l2_bytes: 8 << 10,
        llc_bytes: 16 << 10,
    };
    let settings = Settings {
        victims: vec![Victim::SameCore],
        hot_set_bytes: vec![16 << 10],
        object_bytes: vec![4096],
        dataset_bytes: Some(256 << 10),
        ..Settings::default()
    };
    let plan = plan(&settings, &here).unwrap();
    Bench::open(&plan, &plan.cells[0], cpu, None, &Stop::default()).unwrap()
}

#[test]
fn in_turns_every_mode_has_the_same_passes_and_idle_no_bytes() {
    let mut bench = bench();
    assert_eq!(bench.passes_in_hot_set(), 4);
    for mode in CopyMode::ALL.iter().copied() {
        let felt = bench.run(mode, Length::Passes { warm_up: 3, clocked: 20 }).unwrap();
        assert_eq!(felt.passes.iter().map(|(_, count)| count).sum::<u64>(), 20, "{mode}");
        let bytes = if mode == CopyMode::Idle { 0 } else { 20 * 4096 };
        assert_eq!((felt.bytes, felt.offered_bytes), (bytes, bytes), "{mode}");
        assert_eq!(felt.phases_ns.contains_key("copy"), mode != CopyMode::Idle);
        assert!(felt.elapsed_ns >= felt.phases_ns["walk"]);
        bench.check().unwrap();
    }
}

#[test]
fn side_by_side_bytes_and_passes_are_of_the_window() {
    let mut bench = bench();
    for mode in [CopyMode::Idle, CopyMode::Nt] {
        let length = Length::Time {
            warm_up: Duration::from_millis(2),
            clocked: Duration::from_millis(20),
            rate_bytes_per_s: Some(40_960_000),
        };
        let felt = bench.run(mode, length).unwrap();
        assert_eq!(felt.elapsed_ns, 20_000_000);
        assert!(felt.phases_ns["walk"] <= felt.elapsed_ns);
        let offered = if mode == CopyMode::Idle { 0 } else { 200 * 4096 };
        assert!(felt.offered_bytes.abs_diff(offered) <= 4096, "{}", felt.offered_bytes);
        assert!(felt.bytes <= felt.offered_bytes);
        bench.check().unwrap();
    }
}

#[test]
fn the_median_pass_is_one_that_was_kept() {
    let felt = Felt {
        bytes: 0,
        offered_bytes: 0,
        elapsed_ns: 1,
        phases_ns: BTreeMap::new(),
        counters: BTreeMap::new(),
        passes: vec![(10, 3), (20, 2), (99, 1)],
    };
    assert_eq!(felt.median_pass_ns(), 10);
    let longer = Felt { passes: vec![(10, 3), (20, 4)], ..felt };
    assert_eq!(longer.median_pass_ns(), 20);
}
