//! Records of `net` and `pingpong` as tables, JSON and a page. The records are SYNTHETIC.

mod common;

use std::collections::BTreeMap;

use common::{params, synthetic_empty, with_hardware};
use ntcopy_record::verdict;
use ntcopy_record::{Cell, Record, Sample};
use ntcopy_report::{json, page, table};
use serde_json::json;

const MODES: [(&str, f64); 3] = [("copy", 1.0), ("adaptive", 1.25), ("nocache", 0.8)];

fn synthetic() -> Record {
    let mut record = synthetic_empty("net");
    record.header.experiment = "net".into();
    for (index, (connections, form)) in
        [(16, "closed"), (16, "open"), (128, "closed"), (128, "open")].into_iter().enumerate()
    {
        let mut cell = json!({
            "form": form, "family": "tcp", "request_bytes": 14_000, "response_bytes": 14_000,
            "connections": connections, "between": "veth", "mtu_bytes": 1500,
        });
        if form == "open" {
            cell["offered_requests_per_1000_s"] = 35_000_000.into();
        }
        let cell = Cell { cell: index as u32, params: params(cell) };
        for pair in 0..5 {
            record.samples.extend(MODES.iter().enumerate().map(|(position, (mode, factor))| {
                sample((cell.cell, pair, position as u32), form, mode, *factor)
            }));
        }
        record.cells.push(cell);
    }
    record
}

fn sample((cell, pair, position): (u32, u32, u32), form: &str, mode: &str, factor: f64) -> Sample {
    let answered = (50_000.0 * factor) as u64;
    let name = if form == "open" { "latency_ns" } else { "round_trip_ns" };
    let ns = |us: f64| (us * 1000.0 / factor) as u64;
    let cpu = |us: f64| (us * 1000.0 / factor * answered as f64) as u64;
    let counters = [("nontemporal_bytes", 80), ("fits_cache_bytes", 20)];
    let is_hinted = mode == "adaptive";
    Sample {
        cell,
        pair,
        position,
        mode: mode.to_owned(),
        bytes: answered * 28_000,
        elapsed_ns: 1_000_000_000,
        phases_ns: [("client_cpu", cpu(8.0)), ("server_cpu", cpu(6.0))]
            .map(|(name, ns)| (name.to_owned(), ns))
            .into(),
        counters: if is_hinted {
            counters.map(|(name, count)| (name.to_owned(), count)).into()
        } else {
            BTreeMap::new()
        },
        series: [
            ("answered", vec![answered]),
            (name, vec![ns(20.0), ns(1584.0)]),
            ("answers", vec![48_000, 2_000]),
        ]
        .map(|(name, list)| (name.to_owned(), list))
        .into(),
    }
}

fn pingpong() -> Record {
    let mut record = synthetic_empty("pingpong");
    record.header.experiment = "pingpong".into();
    let cell = json!({"form": "pingpong", "family": "udp", "message_bytes": 256});
    record.cells.push(Cell { cell: 0, params: params(cell) });
    for pair in 0..5 {
        for (position, (mode, extra)) in [("copy", 0), ("nt", 100)].into_iter().enumerate() {
            record.samples.push(Sample {
                cell: 0,
                pair,
                position: position as u32,
                mode: mode.to_owned(),
                bytes: 512 * 10_000,
                elapsed_ns: 60_000_000,
                phases_ns: BTreeMap::new(),
                counters: BTreeMap::new(),
                series: [
                    ("answered", vec![10_000]),
                    ("latency_ns", vec![2572 + extra, 2653 + extra, 5960]),
                    ("answers", vec![100, 9_890, 10]),
                ]
                .map(|(name, list)| (name.to_owned(), list))
                .into(),
            });
        }
    }
    record
}

#[test]
fn the_terminal_has_transactions_round_trips_and_a_schedule() {
    let text = table::terminal(&synthetic());
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    for heading in ["Without a pause, tcp", "Round trips without a pause", "On a schedule, tcp"] {
        assert_eq!(text.matches(heading).count(), 1, "{heading}: {text}");
    }
    let adaptive: Vec<&str> = text.lines().filter(|line| line.contains("adaptive")).collect();
    assert_eq!(adaptive.len(), 6, "{text}");
    // 50,000 x 1.25; 8 and 6 us a transaction by 1.25; 20 and 1584 us by 1.25.
    for words in ["62,500", "1.25x (1.25-1.25)", "win", "80 %", "6.40", "4.80"] {
        assert!(adaptive[0].contains(words), "{words}: {text}");
    }
    for words in ["16.0", "1,267", "1.25x"] {
        assert!(adaptive[2].contains(words), "{words}: {text}");
    }
    let text = text.replace('\n', " ");
    assert!(text.contains("128, 35,000/s") && text.contains("packets of 1500 bytes"), "{text}");
}

#[test]
fn a_message_has_the_lines_of_sockperf_and_a_comparison() {
    let text = table::terminal(&pingpong());
    assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    for line in [
        "========= udp, 256-byte messages, mode copy",
        "Total 50000 observations; each percentile contains 500.00 observations",
        "---> <MAX> observation =    5.960",
        "---> percentile 99.999 =    5.960",
        "---> percentile 50.000 =    2.653",
        "---> <MIN> observation =    2.572",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert!(text.contains("0.96x") && text.contains("loss"), "{text}");
}

#[test]
fn json_has_all_that_the_tables_have() {
    let object = json::object(&synthetic());
    let cells = object["net"].as_array().expect("cells");
    assert_eq!(cells.len(), 4);
    let adaptive = &cells[0]["modes"][1];
    assert_eq!(
        (&adaptive["mode"], &adaptive["transactions_per_s"]),
        (&json!("adaptive"), &62_500.0.into())
    );
    assert_eq!(adaptive["latency_ns"]["p50"], 16_000);
    assert_eq!(adaptive["nontemporal_part"], 0.8);
    let results = object["results"].as_array().expect("results");
    let metrics = |metric: &str| results.iter().filter(|r| r["metric"] == metric).count();
    assert_eq!(
        ["throughput", "bytes_per_cpu_s", "p50_rate", "p99_rate"].map(metrics),
        [4, 8, 8, 8]
    );
    assert!(object.get("sweep").is_none());
    let object = json::object(&pingpong());
    let nt = &object["pingpong"][0]["modes"][1];
    assert_eq!((&nt["latency_ns"]["p50"], &nt["min_ns"]), (&2753.into(), &2672.into()));
    assert_eq!(object["results"].as_array().expect("results").len(), 2);
}

/// The figures whose captions have these words, each with its legend, drawings and data.
fn figures<'a>(html: &'a str, words: &str) -> Vec<&'a str> {
    let all = html.split("<figure>").skip(1).filter_map(|rest| rest.split("</figure>").next());
    all.filter(|figure| figure.contains(words)).collect()
}

#[test]
fn every_chart_has_what_others_published_of_it() {
    let html = page::html(&[synthetic(), pingpong()], &["ntcopy".to_owned()]);
    let rates = figures(&html, "Transactions per second");
    assert_eq!(rates.len(), 1, "{html}");
    assert!(rates[0].contains("79,571 became 83,856 per second, 1.05x"), "{}", rates[0]);
    assert!(!rates[0].contains("class=\"published m"), "no line on another machine's scale");
    // One level step from 16 to 128 connections: nothing of what came on a schedule.
    let path = rates[0].split("class=\"line m0\" d=\"").nth(1).expect("copy's line");
    let path = path.split('"').next().expect("its steps");
    let numbers: Vec<&str> = path.split(['M', 'L', ' ']).filter(|part| !part.is_empty()).collect();
    assert_eq!((numbers.len(), numbers[1]), (4, numbers[3]), "{path}");
    let cpu = figures(&html, "CPU time of client and server");
    assert!(cpu[0].contains("34.34 %") && cpu[0].contains("0.96x for a transaction"), "{}", cpu[0]);
    assert!(!cpu[0].contains("class=\"published"), "no such time can be computed");
    let half = figures(&html, "Half a round trip over udp");
    assert!(!half[0].contains("class=\"published m"), "{}", half[0]);
    let panels = figures(&html, "Published latencies by percentile");
    assert_eq!(panels.len(), 2, "one for each record, with others' lines alone");
    assert!(panels[0].contains("published: nocache") && !panels[0].contains("class=\"line m"));
    // p75, p90 and p99.99 with DDIO off.
    for us in ["2.658", "2.687", "4.146"] {
        assert!(panels[1].contains(us), "{us}: {}", panels[1]);
    }
    for (place, us) in [("p25", "2.556"), ("p75", "2.579"), ("p90", "2.598"), ("p99.99", "3.915")] {
        assert!(html.contains(&format!("<th scope=\"col\">{place}")), "{place}");
        assert!(html.contains(&format!("<td>{us}")), "{us}");
    }
}

#[test]
fn datagrams_have_no_published_transactions() {
    let mut record = synthetic();
    for cell in &mut record.cells {
        cell.params.insert("family".into(), "udp".into());
    }
    let html = page::html(&[record], &["ntcopy".to_owned()]);
    let rates = figures(&html, "Transactions per second");
    assert!(!rates[0].contains("published:"), "{}", rates[0]);
}

#[test]
fn the_page_has_the_tables_and_what_others_published() {
    let command = ["ntcopy".to_owned()];
    let html = page::html(&[synthetic(), pingpong()], &command);
    for words in ["Round trips without a pause", "Half a round trip over udp", "79,571", "5.152"] {
        assert!(html.contains(words), "{words} is missing");
    }
    assert!(!html.contains("The reader never looks"));
    assert!(html.contains("Client and server are on one machine"));
    let said = verdict::sentences(&synthetic()).join(" ");
    assert!(said.contains("nocache makes more transactions than copy in 0"), "{said}");
    let markdown = table::markdown(&synthetic());
    assert_eq!(markdown.lines().filter(|line| line.starts_with('|')).count(), 3 * (2 + 6));
}

#[test]
fn what_the_hardware_counted_of_client_and_server_has_columns() {
    let counted = ["cycles", "instructions", "l3-load-misses", "dram-read-bytes"];
    for (record, labels) in [
        (synthetic(), &["tcp, 14000 bytes for 14000 bytes, 16", "128, 35,000/s"][..]),
        (pingpong(), &["udp, 256 bytes"]),
    ] {
        let (modes, cells) = (record.samples.len() / record.cells.len() / 5, record.cells.len());
        let record = with_hardware(record, &counted, "no PMU in this guest");
        let text = table::terminal(&record);
        assert!(text.lines().all(|line| line.is_ascii() && line.len() <= 100), "{text}");
        for words in ["Hardware events per line of 64 bytes", "memory traffic, bytes a byte"] {
            assert!(text.contains(words), "{words}: {text}");
        }
        assert!(text.contains("llc-misses") && text.contains("n/a (no PMU in this guest)"));
        let markdown = table::markdown(&record);
        let at = markdown.find("Hardware events").expect("a table");
        let rows: Vec<&str> =
            markdown[at..].lines().skip(2).take_while(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 2 + modes * cells, "{markdown}");
        assert!(rows[2].contains("128.00") && rows[2].contains("n/a"), "{markdown}");
        for label in labels {
            assert!(rows.iter().any(|row| row.contains(label)), "{label}: {markdown}");
        }
        let html = page::html(&[record], &["ntcopy".to_owned()]);
        assert!(html.contains("L3 misses") && html.contains("DRAM read"));
    }
}

#[test]
fn the_part_that_went_past_the_caches_is_of_the_kernel_s_counters_alone() {
    let record = with_hardware(synthetic(), &["cycles", "dram-read-bytes"], "");
    assert_eq!(json::object(&record)["net"][0]["modes"][1]["nontemporal_part"], 0.8);
}
