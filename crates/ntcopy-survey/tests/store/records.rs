//! Records as files, made by hand.

use std::fmt::Write as _;

use ntcopy_record::{
    Cache, Cell, End, ExperimentKind, FORMAT, Header, Line, Machine, Params, Sample,
};

/// A record's bytes; each number has an id, a time and figures of its own.
pub fn bytes(number: u32) -> Vec<u8> {
    let mut lines = vec![Line::Header(header(number)), Line::Machine(Box::new(machine()))];
    for (cell, size) in (0..).zip([65_536_u64, 1 << 20, 16 << 20]) {
        let params: Params = [("size_bytes".to_owned(), size.into())].into();
        lines.push(Line::Cell(Cell { cell, params }));
        for pair in 0..6 {
            lines.push(sample(cell, pair, "libc", 1_000_000 + u64::from(pair)));
            lines.push(sample(cell, pair, "ours", 700_000 + u64::from(number * 1000 + cell)));
        }
    }
    lines.push(Line::End(End { samples: 36, ended_unix_ns: 1 }));
    let mut text = String::new();
    for line in lines {
        writeln!(text, "{}", serde_json::to_string(&line).unwrap()).unwrap();
    }
    text.into_bytes()
}

fn header(number: u32) -> Header {
    Header {
        format: FORMAT,
        id: format!("20261121-{number:06}-memcpy-{number:08x}"),
        experiment: ExperimentKind::Memcpy,
        command: vec!["ntcopy".to_owned()],
        ntcopy: "0.1.0".to_owned(),
        started_unix_ns: 1_795_000_000_000_000_000 + u64::from(number),
        baseline: "libc".to_owned(),
        not_a_timing: None,
    }
}

fn machine() -> Machine {
    Machine {
        cpu_model: "A CPU".to_owned(),
        cpu_signature: "AuthenticAMD-26-2-1".to_owned(),
        cpus: 64,
        caches: vec![Cache {
            level: 3,
            kind: "unified".to_owned(),
            size_bytes: 32 << 20,
            shared_by_cpus: Some(16),
        }],
        topology: None,
        llc_bytes: 32 << 20,
        memory_bytes: 64 << 30,
        kernel_kind: "host".to_owned(),
        kernel_release: "6.12.0".to_owned(),
        kernel_key: None,
        kernel_cpus: 64,
        kernel_pin: None,
        kernel_huge_pages: false,
        kernel_own_cpus: Vec::new(),
        libc: "glibc 2.36".to_owned(),
        libc_nt_threshold_bytes: Some(1 << 24),
        libc_memset_nt_threshold_bytes: None,
        governor: None,
        hypervisor: None,
        tcp_congestion_control: None,
        hardware_counters: Vec::new(),
    }
}

fn sample(cell: u32, pair: u32, mode: &str, elapsed_ns: u64) -> Line {
    Line::Sample(Sample {
        cell,
        pair,
        position: u32::from(mode == "ours"),
        mode: mode.to_owned(),
        bytes: 1 << 30,
        elapsed_ns,
        phases_ns: [].into(),
        counters: [].into(),
        series: [].into(),
    })
}
