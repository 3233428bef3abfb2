use serde_json::json;

use super::*;
use crate::record::testing::{params, proxied, rated};
use crate::record::{HardwareCounter, Record};

/// One cell of a hot set of ten lines: `idle`, `copy` and `nt`, in which a walk takes so many
/// nanoseconds, and every fiftieth ten times as long.
fn hot_set(walk_ns: [u64; 3]) -> Record {
    let modes = [IDLE, "copy", "nt"];
    let cell = (params(json!({"hot_set_bytes": 640})), [[1, 8_000_000_000, 9_000_000_000]; 5]);
    let mut record = rated(&modes, [cell]);
    record.header.baseline = "copy".into();
    for sample in &mut record.samples {
        let ns = walk_ns[modes.iter().position(|mode| *mode == sample.mode).unwrap()];
        let walks = [vec![ns; 98], vec![10 * ns; 2]].concat();
        sample.series.insert("walk_ns".into(), walks);
    }
    record
}

fn ratio(versus: Option<Versus>) -> f64 {
    versus.map_or(0.0, |versus| (versus.ratio * 1e6).round() / 1e6)
}

#[test]
fn a_closed_cell_tells_what_went_through_and_what_it_cost() {
    let mut record = proxied([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
    let name = "dram-read-bytes";
    record.machine.hardware_counters =
        vec![HardwareCounter { name: name.into(), source: String::new(), missing: None }];
    for sample in &mut record.samples {
        sample.counters.insert(name.into(), 1 << 30);
        sample.counters.insert(format!("{name}:counted_permille"), 900);
    }
    let all = Measured::all(&record, &record.cells[0]);
    let [copy, adaptive] = &all[..] else { panic!("two modes") };
    assert!(copy.is_baseline() && !adaptive.is_baseline());
    assert_eq!(adaptive.cpu_s_per_gb(&["proxy_cpu", "backend_cpu"]), Some(2.0));
    assert_eq!((adaptive.cpu_s_per_gb(&["other_cpu"]), adaptive.send_share()), (None, None));
    // What the hardware counted is no part of what the kernel copied.
    assert_eq!((copy.nontemporal_part(), adaptive.nontemporal_part()), (None, Some(0.75)));
    assert_eq!(ratio(adaptive.versus(THROUGHPUT)), 1.25);
    assert_eq!(ratio(adaptive.versus(PER_CPU)), 2.0);
    assert_eq!((copy.versus(THROUGHPUT), adaptive.quantile_ns(0.5)), (None, None));
    let scaled = adaptive.event(name, 1.0).unwrap();
    assert!(scaled.1 && scaled.0 > 0.0);
}

#[test]
fn an_open_cell_tells_how_long_it_took_and_no_throughput() {
    let record = proxied([(1_000_000, 2, 100), (1_250_000, 1, 50)]);
    let all = Measured::all(&record, &record.cells[1]);
    let copy = &all[0];
    // 490 and 10 of 500 answers; at 99.9 % not even one took longer.
    let told = [0.5, 0.9, 0.99, 0.999].map(|part| copy.quantile_ns(part));
    assert_eq!(told, [Some(100_000.0), Some(100_000.0), Some(500_000.0), None]);
    assert_eq!((copy.answers(), copy.unanswered(), copy.mean_ns()), (500, 0, Some(108_000.0)));
    assert_eq!(ratio(all[1].versus(P99)), 2.0, "half as long is twice as good");
    assert_eq!((copy.median(THROUGHPUT), copy.median(PER_CPU)), (None, None));
    assert!(copy.cpu_us_per_answer(&["client_cpu"]).is_some());
    let has = |cell, metric| versus(&record, cell, "adaptive", "copy", metric).is_some();
    let all = [has(0, THROUGHPUT), has(1, THROUGHPUT), has(0, P99), has(1, P99)];
    assert_eq!(all, [true, false, false, true]);
}

#[test]
fn a_slow_down_is_a_walk_by_one_that_was_left_alone() {
    let record = hot_set([100, 150, 120]);
    let all = Measured::all(&record, &record.cells[0]);
    let modes: Vec<&str> = all.iter().map(|one| one.mode).collect();
    assert_eq!(modes, [IDLE, "copy", "nt"]);
    assert_eq!((all[1].line_ns(0.5), all[1].line_ns(0.99)), (Some(15.0), Some(150.0)));
    assert_eq!([0, 1, 2].map(|at| ratio(all[at].slow_down())), [0.0, 1.5, 1.2]);
    assert_eq!(ratio(all[2].versus(WALKS)), 1.25);
    let mut tailed = record.clone();
    for sample in tailed.samples.iter_mut().filter(|sample| sample.mode == "nt") {
        let walks = sample.series.get_mut("walk_ns").unwrap();
        walks.iter_mut().skip(98).for_each(|ns| *ns *= 2);
    }
    let all = Measured::all(&tailed, &tailed.cells[0]);
    // At the median and at the 99th percentile a mode may do unlike.
    assert_eq!([WALKS, WALKS_P99].map(|metric| ratio(all[2].versus(metric))), [1.25, 0.625]);
}
