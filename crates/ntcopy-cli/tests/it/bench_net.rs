//! `ntcopy bench net` and `bench pingpong`, end to end on the kernel that runs the tests, at sizes
//! that take no time. No test looks at a time.

use std::fs;

use ntcopy_record::Record;

use crate::common::{bench, counted, good, is_not_available, kernel_built, measured, tried};

fn total(list: Option<&Vec<u64>>) -> u64 {
    list.into_iter().flatten().sum()
}

#[test]
fn requests_and_responses_go_both_ways_and_every_sample_has_what_it_cost() {
    let sizes = ["--request", "14000", "--response", "300,100KiB", "--connections", "1,5"];
    let args = [&["net", "--family", "tcp", "--modes", "plain"], &sizes[..]].concat();
    let (record, text) = measured(&args);
    // Two responses, two numbers of connections, two forms; one mode, five pairs.
    assert_eq!((record.cells.len(), record.samples.len()), (8, 8 * 5));
    for sample in &record.samples {
        let params = &record.cells[sample.cell as usize].params;
        let size = |name: &str| params[name].as_u64().unwrap();
        let answered = total(sample.series.get("answered"));
        let each = size("request_bytes") + size("response_bytes");
        assert_eq!(sample.bytes, answered * each, "{sample:?}");
        assert!(sample.phases_ns["client_cpu"] > 0 && sample.phases_ns["server_cpu"] > 0);
        let name = if params["form"] == "open" { "latency_ns" } else { "round_trip_ns" };
        assert!(sample.series[name].is_sorted() && total(sample.series.get("answers")) > 0);
    }
    counted::every_sample_or_why_not(&record, &text);
    for words in ["without a pause", "Tcp, ", "per second", "over loopback"] {
        assert!(text.replace('\n', " ").contains(words), "{words}: {text}");
    }
}

#[test]
fn datagrams_and_ipv6_carry_the_same_bytes() {
    let args = ["--request", "14000", "--response", "60000", "--connections", "3", "--rate", "off"];
    for family in ["udp", "tcp6", "udp6", "udp-gso"] {
        let args = [&["net", "--family", family, "--modes", "plain"], &args[..]].concat();
        let (output, record) = tried(&args);
        if family != "udp" && !record.errors.is_empty() {
            println!("not run: {family}: {}", record.errors[0].what);
            continue;
        }
        good(&output);
        assert_eq!(record.samples.len(), 5);
    }
}

#[test]
fn between_namespaces_the_devices_own_way_is_switched_and_nothing_is_left() {
    let namespace = || fs::read_link("/proc/self/ns/net").unwrap();
    let (before, devices) = (namespace(), devices());
    let place = tempfile::tempdir().unwrap();
    let sizes = ["--connections", "4", "--family", "tcp,udp", "--modes", "nocache"];
    let args = [&["net", "--veth", "--rate", "off"], &sizes[..]].concat();
    let output = bench(&args, &place.path().join("record")).output().unwrap();
    assert_eq!((namespace(), self::devices()), (before, devices), "this namespace is as it was");
    if is_not_available(&output, "not available") {
        return;
    }
    good(&output);
    let record = Record::read(place.path().join("record")).unwrap();
    assert!(record.complete && record.errors.is_empty(), "{:?}", record.errors);
    assert!(record.cells.iter().all(|cell| cell.params["between"] == "veth"));
    let modes = |cell: u32| {
        let samples = record.samples.iter().filter(move |sample| sample.cell == cell);
        samples.filter(|sample| sample.mode == "nocache").count()
    };
    assert_eq!((modes(0), modes(1)), (5, 0), "TCP alone looks at the feature");
    assert_eq!(record.unavailable.len(), 1);
}

fn devices() -> Vec<String> {
    let text = fs::read_to_string("/proc/net/dev").unwrap();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

#[test]
fn a_message_is_told_by_half_of_its_round_trip() {
    let args = ["pingpong", "--message", "256,20000", "--modes", "plain", "--duration", "0.1"];
    let (record, text) = measured(&args);
    assert_eq!((record.cells.len(), record.samples.len()), (6, 6 * 5));
    for sample in &record.samples {
        let bytes = record.cells[sample.cell as usize].params["message_bytes"].as_u64().unwrap();
        let messages = total(sample.series.get("answers"));
        assert_eq!(sample.bytes, 2 * messages * bytes, "{sample:?}");
        assert!(messages > 0);
    }
    counted::every_sample_or_why_not(&record, &text);
    for words in ["half a round trip", "Udp", "Unix", "mean us", "p99.9 us"] {
        assert!(text.replace('\n', " ").contains(words), "{words}: {text}");
    }
}

#[test]
fn in_the_kernel_with_the_flag_hinted_messages_are_counted_and_others_are_not() {
    kernel_built();
    // Between namespaces each side has counters of its own.
    let sizes = ["--connections", "3", "--rate", "off", "--family", "tcp,udp"];
    let (record, text) = measured(&[&["net", "--kernel", "um", "--veth"], &sizes[..]].concat());
    assert_eq!(record.machine.kernel_kind, "um");
    for sample in &record.samples {
        let counted = sample.counters.get("NtcopyHintedBytes").copied().unwrap_or(0);
        let sent = total(sample.series.get("counted_bytes"));
        match sample.mode.as_str() {
            "plain" | "nocache" => assert_eq!(counted, 0, "{sample:?}"),
            _ => assert!(counted == sent && sent >= sample.bytes, "{sample:?}"),
        }
    }
    let hinted = record.samples.iter().filter(|sample| !sample.counters.is_empty()).count();
    assert_eq!(hinted, 2 * 5, "two families, five pairs: {text}");
    let (record, _) =
        measured(&["pingpong", "--kernel", "um", "--family", "unix,udp", "--duration", "0.1"]);
    let large = |cell: u32| record.cells[cell as usize].params["message_bytes"] == 14_000;
    let obeyed = record.samples.iter().filter(|s| s.mode == "hinted" && large(s.cell));
    assert!(obeyed.clone().count() > 0);
    for sample in obeyed {
        assert!(sample.counters["NtcopyBypassedBytes"] > 0, "{sample:?}");
    }
}
