//! Records that were not measured: SYNTHETIC, made here for the tests alone. Their figures are
//! plausible and mean nothing.

// Each test program uses its own part of this.
#![allow(dead_code)]

use ntcopy_judge::Judged;
use ntcopy_record::{
    Cache, HardwareCounter, Header, Machine, Record, RunError, Unavailable,
    testing::{self, params, rated},
};
use ntcopy_report::{page, summary};
use serde_json::json;

const MIB: u64 = 1 << 20;

pub fn page(records: &[Judged], command: &[String]) -> String {
    page::html(records, &summary::summaries(records), command)
}

/// Whole throughput of `copy` in Mbit/s, of `nt` and of `vmsplice` by it, at 1 to 128 MiB.
const ROUNDS: [(u32, f64, f64, f64); 8] = [
    (1, 77_500.0, 0.76, 1.62),
    (2, 77_000.0, 0.77, 1.60),
    (4, 76_200.0, 0.79, 1.55),
    (8, 75_500.0, 0.81, 1.49),
    (16, 60_700.0, 1.001, 1.55),
    (32, 42_000.0, 1.33, 1.73),
    (64, 39_900.0, 1.31, 1.71),
    (128, 39_100.0, 1.26, 1.70),
];

/// 1 to 128 sockets of 1 MiB, three modes, fifteen pairs.
pub fn synthetic_rounds() -> Record {
    let cell = |(cell, (sockets, copy, nt, vmsplice)): (u32, &(u32, f64, f64, f64))| {
        let params = params(json!({
            "family": "unix", "form": "rounds", "object_bytes": MIB, "dataset_bytes": 256 * MIB,
            "sockets": sockets, "in_flight_bytes": u64::from(*sockets) * MIB,
            "sender_cpu": 0, "reader_cpu": 0,
        }));
        let noise = |pair, position| jitter(cell, pair, position);
        (params, pairs(copy * 1e6 / 8.0, &[1.0, *nt, *vmsplice], noise))
    };
    let cells = (0..).zip(&ROUNDS).map(cell);
    synthetic("rounds", rated(&["plain", "hinted", "vmsplice"], cells))
}

/// The three published configurations, as if repeated here.
pub fn synthetic_published() -> Record {
    let labels = [
        ("CPUs 1,2: no shared L2, shared L3", 524_288, 64_000.0, 0.86),
        ("CPUs 1,65: shared L2 and L3", 524_288, 61_000.0, 0.90),
        ("CPUs 1,65: shared L2 and L3, 128 KiB buffers", 131_072, 58_000.0, 0.88),
    ];
    let cells = (0..).zip(labels).map(|(cell, (label, buffer, copy, nt))| {
        let params = params(json!({
            "family": "unix", "form": "free-running", "object_bytes": MIB,
            "dataset_bytes": MIB, "sockets": 1, "iterations": 4000, "pipe_bytes": buffer,
            "sndbuf_bytes": buffer, "sender_cpu": 0, "reader_cpu": 1, "published": label,
            "note": "no two CPUs here share an L2 cache: ran on CPUs 0 and 1",
        }));
        let noise = |pair, position| jitter(cell, pair, position);
        (params, pairs(copy * 1e6 / 8.0, &[1.0, nt], noise))
    });
    let mut record = synthetic("published", rated(&["plain", "hinted"], cells));
    record.samples.iter_mut().for_each(|sample| sample.phases_ns.clear());
    record
}

/// A sweep of 30 cells without noise: five numbers of sockets, three data sets, two objects.
pub fn synthetic_sweep() -> Record {
    let mut cells = Vec::new();
    for dataset in [MIB, 64 * MIB, 256 * MIB] {
        for object in [64 << 10, MIB] {
            for sockets in [1, 8, 32, 64, 128] {
                let in_flight = sockets * object;
                let params = params(json!({
                    "family": "unix", "form": "rounds", "object_bytes": object,
                    "dataset_bytes": dataset, "sockets": sockets, "in_flight_bytes": in_flight,
                    "sender_cpu": 0, "reader_cpu": 0,
                }));
                let nt = if object == MIB { 1.25 } else { 0.8 };
                cells.push((params, pairs(5e9, &[1.0, nt], |_, _| 1.0)));
            }
        }
    }
    synthetic("sweep", rated(&["plain", "hinted"], cells))
}

/// Fifteen pairs of modes that do so many times this rate.
fn pairs(bytes_per_s: f64, modes: &[f64], noise: impl Fn(u32, u32) -> f64) -> Vec<Vec<u64>> {
    let rate = |pair, (position, factor)| (bytes_per_s * factor * noise(pair, position)) as u64;
    let pair = |pair| (0..).zip(modes).map(|one| rate(pair, one)).collect();
    (0..15).map(pair).collect()
}

/// A victim of 100 lines: 5 ns when idle, 10 beside `copy`, 8 beside `nt`.
pub fn synthetic_retention() -> Record {
    let params = params(json!({
        "family": "unix", "form": "victim", "object_bytes": MIB, "dataset_bytes": 256 * MIB,
        "sockets": 64, "in_flight_bytes": 64 * MIB, "hot_set_bytes": 6400,
    }));
    let walks_ns = [("plain", 1000), ("idle", 500), ("hinted", 800)];
    let cell = (params, [[5_000_000_000_u64; 3]; 5]);
    let mut record = synthetic("retention", rated(&walks_ns.map(|(mode, _)| mode), [cell]));
    record.header.experiment = "retention".into();
    for sample in &mut record.samples {
        let (mode, walk_ns) = walks_ns[sample.position as usize];
        sample.bytes = if mode == "idle" { 0 } else { sample.bytes };
        sample.series.insert("walk_ns".to_owned(), vec![walk_ns; 100]);
    }
    record
}

/// A record with a header and a machine, and nothing measured.
pub fn synthetic_empty(name: &str) -> Record {
    synthetic(name, testing::record(&["plain"], &[]))
}

fn synthetic(name: &str, record: Record) -> Record {
    let words = ["ntcopy", "bench", "unix", "--sockets", "1,2,4,8,16,32,64,128", "--kernel", "um"];
    Record {
        header: Header {
            id: format!("synthetic-{name}"),
            command: words.map(String::from).to_vec(),
            ntcopy: "0.1.0".into(),
            started_unix_ns: 1_795_224_599_000_000_000,
            ..record.header
        },
        machine: machine(record.machine),
        ..record
    }
}

/// The record as of a kernel without the flag: no samples of `nt`, a line that says why.
pub fn without_nt(mut record: Record) -> Record {
    record.samples.retain(|sample| sample.mode != "hinted");
    let why = "this kernel has no MSG_NTCOPY; try --kernel um";
    record.unavailable.push(Unavailable { mode: "hinted".into(), why: why.into(), cell: None });
    record
}

/// An error row in place of the samples of a mode in a cell.
pub fn with_error(mut record: Record, cell: u32, mode: &str, what: &str, wrong: bool) -> Record {
    record.samples.retain(|sample| sample.cell != cell || sample.mode != mode);
    let error = RunError { cell, mode: mode.into(), what: what.into(), wrong_byte: wrong };
    record.errors.push(error);
    record
}

/// The core events, and a machine's memory traffic.
pub const EVENTS: [&str; 7] = [
    "cycles",
    "instructions",
    "l1d-replacements",
    "llc-loads",
    "llc-misses",
    "l2-load-misses",
    "l3-load-misses",
];
pub const TRAFFIC: [&str; 3] = ["dram-read-bytes", "dram-write-bytes", "mbm-total-bytes"];

/// The record as if the machine had these counters; the others are missing for that reason.
pub fn with_hardware(mut record: Record, counted: &[&str], why: &str) -> Record {
    let counter = |name: &&str| HardwareCounter {
        name: (*name).to_owned(),
        source: "SYNTHETIC".to_owned(),
        missing: (!counted.contains(name)).then(|| why.to_owned()),
    };
    record.machine.hardware_counters = EVENTS.iter().chain(&TRAFFIC).map(counter).collect();
    for sample in &mut record.samples {
        for name in counted {
            // A non-temporal copy reads no line of what it writes to.
            let times = if sample.mode == "hinted" { 1 } else { 2 };
            sample.counters.insert((*name).to_owned(), sample.bytes * times);
        }
    }
    record
}

fn machine(machine: Machine) -> Machine {
    let cache = |level, kind: &str, size_bytes, cpus| Cache {
        level,
        kind: kind.into(),
        size_bytes,
        shared_by_cpus: Some(cpus),
    };
    Machine {
        cpu_model: "SYNTHETIC CPU 9000".into(),
        cpu_signature: "AuthenticAMD-26-2-1".into(),
        cpus: 2,
        caches: vec![
            cache(1, "data", 48 << 10, 2),
            cache(1, "instruction", 32 << 10, 2),
            cache(2, "unified", MIB, 2),
            cache(3, "unified", 32 * MIB, 16),
        ],
        llc_bytes: 32 * MIB,
        memory_bytes: 8_323_072_000,
        kernel_kind: "um".into(),
        kernel_release: "7.3.4".into(),
        kernel_key: Some("um-7.3.4-0123456789ab".into()),
        libc: "glibc 2.36".into(),
        libc_nt_threshold_bytes: Some(288 * MIB),
        hypervisor: Some("KVMKVMKVM".into()),
        ..machine
    }
}

/// Within 2 % of 1, the same every time.
fn jitter(cell: u32, pair: u32, position: u32) -> f64 {
    let mut mixed = u64::from(cell * 1000 + pair * 10 + position) + 1;
    for factor in [0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb_u64] {
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(factor);
    }
    0.98 + 0.04 * (mixed >> 40) as f64 / f64::from(1u32 << 24)
}

/// The elements of a page in order: name and attributes.
pub fn elements(html: &str) -> Vec<(&str, &str)> {
    let all = html.split('<').skip(1).filter_map(|rest| rest.split('>').next());
    let all = all.filter(|element| element.starts_with(|c: char| c.is_ascii_alphabetic()));
    all.map(|element| element.split_once(' ').unwrap_or((element, ""))).collect()
}
