//! `ntcopy bench app` end to end, with programs as they come, at sizes that take no time: on the
//! kernel that runs the tests, and in a booted one that knows the flag. No test looks at a time.

use ntcopy_bench::experiments::app;
use ntcopy_record::{Record, Sample};

use crate::common::{json, kernel_built, measured, preload};

/// Little of it, but for how much is fetched of the large values.
pub const APP: &str = "app --dataset 4MiB --large 300KiB --connections 3 --rate 300";

fn run(more: &str) -> (Record, String) {
    let words: Vec<&str> = [APP, more].iter().flat_map(|line| line.split(' ')).collect();
    measured(&[&words[..], &["--library", preload::library()]].concat())
}

/// Whether the program that is measured is here.
pub fn is_installed() -> bool {
    let is_here = app::find().is_ok();
    if !is_here {
        println!("not run: memcached is not installed (scripts/setup.sh programs)");
    }
    is_here
}

fn of<'a>(record: &'a Record, mode: &'a str) -> impl Iterator<Item = &'a Sample> {
    record.samples.iter().filter(move |sample| sample.mode == mode)
}

fn sum(sample: &Sample, name: &str) -> u64 {
    sample.series.get(name).map_or(0, |list| list.iter().sum())
}

#[test]
fn every_mode_answers_the_same_multigets_and_only_idle_fetches_nothing() {
    if !is_installed() {
        return;
    }
    // Two cells: at an offered rate, and without a pause.
    let (record, text) = run("--modes idle --large-rate 60MB/s,max --json");
    let modes = ["plain", "idle"];
    assert_eq!((record.cells.len(), record.samples.len()), (2, 2 * 5 * modes.len()));
    let version = record.cells[0].params["app_version"].as_str().unwrap();
    assert!(version.starts_with("memcached "), "{version}");
    for mode in modes {
        for sample in of(&record, mode) {
            let same =
                of(&record, "plain").find(|s| (s.cell, s.pair) == (sample.cell, sample.pair));
            assert_eq!(sum(sample, "answers"), sum(same.unwrap(), "answers"), "{sample:?}");
            assert!(sum(sample, "answers") > 0, "{sample:?}");
            assert!(sample.bytes == 0 || mode != "idle", "{sample:?}");
            assert!(sample.counters.is_empty(), "nothing was hinted: {sample:?}");
        }
        // On a busy machine a program may not get to any in the time of one sample.
        let has_large = of(&record, mode).any(|sample| sample.bytes > 0);
        assert_eq!(has_large, mode != "idle", "{mode}");
    }
    let mut offered = of(&record, "plain").filter(|sample| sample.cell == 0);
    assert!(offered.all(|sample| sum(sample, "offered_bytes") > 0));
    let object = json(&text);
    let told = object["figures"].as_array().unwrap();
    assert_eq!(told.len(), 2 * modes.len());
    let copy = told.iter().rfind(|told| told["mode"] == "plain").unwrap();
    assert!(copy["p50_us"].as_f64() > Some(0.0) && copy.get("cpu_s_per_gb").is_some());
    let results = object["results"].as_array().unwrap();
    let of = |metric: &str| results.iter().any(|r| r["mode"] == "idle" && r["metric"] == metric);
    assert!(of("p50_rate") && of("p99_rate"), "{object}");
}

#[test]
#[ignore = "make test-programs"]
fn in_the_kernel_with_the_flag_the_hinted_modes_alone_are_counted() {
    kernel_built();
    // A system call is dear there.
    let (record, text) = run("--kernel um --modes hinted --rate 30 --large-rate 60MB/s");
    assert_eq!(record.machine.kernel_kind, "um");
    for sample in &record.samples {
        let is_hinted = sample.mode == "hinted";
        // Where requests were given up, nothing is held against the counters.
        let is_counted = !sample.counters.is_empty();
        let hinted = sample.counters.get("NtcopyHintedBytes");
        assert!(hinted.is_none() || is_hinted, "{sample:?}");
        assert!(is_counted || !is_hinted || sum(sample, "unanswered") > 0, "{sample:?}");
    }
    let nontemporal = |sample: &Sample| sample.counters.get("NtcopyBypassedBytes").copied();
    assert!(of(&record, "hinted").any(|sample| nontemporal(sample) > Some(0)));
    let text = text.replace('\n', " ");
    assert!(text.contains("multigets of 100 keys, values of 1 KiB and 300 KiB"), "{text}");
}
