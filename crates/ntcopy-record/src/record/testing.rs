//! Records made by hand, for the tests of what judges them.

use serde_json::json;

use super::{Cell, FORMAT, Header, Machine, Mode, Params, Record, RunError, Sample, Unavailable};

/// Payload of every sample here: large, so that rates come out to many digits.
const BYTES: u64 = 1 << 40;

/// A record with cells of these parameters, and in each pair of a cell one sample a mode, at these
/// bytes per second; the first mode is the baseline.
pub fn rated<R: AsRef<[u64]>>(
    modes: &[&str],
    cells: impl IntoIterator<Item = (Params, impl IntoIterator<Item = R>)>,
) -> Record {
    let mut record = record(modes, &[]);
    for (cell, (params, pairs)) in (0..).zip(cells) {
        record.cells.push(Cell { cell, params });
        for (pair, rates) in (0..).zip(pairs) {
            for ((position, mode), rate) in (0..).zip(modes).zip(rates.as_ref()) {
                let elapsed_ns = (u128::from(BYTES) * 1_000_000_000 / u128::from(*rate)) as u64;
                let mut sample = sample((cell, pair, position), mode, BYTES, elapsed_ns);
                sample.phases_ns.insert("send".to_owned(), elapsed_ns / 2);
                record.samples.push(sample);
            }
        }
    }
    record
}

/// A record of one cell with pairs of these rates.
pub fn sends<R: AsRef<[u64]>>(modes: &[&str], pairs: impl IntoIterator<Item = R>) -> Record {
    rated(modes, [(params(json!({"in_flight_bytes": 1 << 20})), pairs)])
}

/// A record of one cell, with the same rates in each of this number of pairs.
pub fn pairs(modes: &[&str], pairs: usize, rates: &[u64]) -> Record {
    sends(modes, std::iter::repeat_n(rates, pairs))
}

/// A sample of nothing but bytes and time: cell, pair and position.
pub fn sample(
    (cell, pair, position): (u32, u32, u32),
    mode: &str,
    bytes: u64,
    elapsed_ns: u64,
) -> Sample {
    let mode = mode.to_owned();
    let (phases_ns, counters, series) = ([].into(), [].into(), [].into());
    Sample { cell, pair, position, mode, bytes, elapsed_ns, phases_ns, counters, series }
}

/// A record without samples, with cells of these parameters.
pub fn record(modes: &[&str], cells: &[&[(&str, u64)]]) -> Record {
    let of = |cell: &[(&str, u64)]| -> Params {
        cell.iter().map(|(name, value)| ((*name).to_owned(), (*value).into())).collect()
    };
    Record {
        header: Header {
            format: FORMAT,
            id: "20261121-000000-unix-00000000".into(),
            experiment: "unix".into(),
            command: vec!["ntcopy".into(), "bench".into(), "unix".into()],
            ntcopy: "0.0.0".into(),
            started_unix_ns: 1,
            baseline: modes[0].into(),
            modes: modes.iter().map(|mode| Mode::named(*mode).measured_in("host")).collect(),
            not_a_timing: None,
        },
        machine: Machine {
            cpu_model: "made by hand".into(),
            cpu_signature: "None-0-0-0".into(),
            cpus: 2,
            llc_bytes: 32 << 20,
            memory_bytes: 1 << 30,
            kernel_kind: "host".into(),
            kernel_release: "0".into(),
            kernel_cpus: 1,
            libc: "none 0".into(),
            ..Machine::default()
        },
        cells: (0..).zip(cells).map(|(cell, p)| Cell { cell, params: of(p) }).collect(),
        samples: vec![],
        looks: vec![],
        unavailable: vec![],
        errors: vec![],
        complete: true,
        beside: [].into(),
    }
}

/// A record with one cell for each of (bytes in flight, ratio of `hinted` in percent).
pub fn crossover(points: &[(u64, u64)]) -> Record {
    let cell = |(bytes, percent): &(u64, u64)| {
        (params(json!({"in_flight_bytes": bytes, "object_bytes": 1 << 20})), [*percent])
    };
    measured(&["plain", "hinted"], points.iter().map(cell))
}

/// A record with cells of these parameters, and in each five pairs of the other modes in percent of
/// the first, with a spread of 2 % either way, so that 100 % is "no difference".
pub fn measured<R: AsRef<[u64]>>(
    modes: &[&str],
    cells: impl Iterator<Item = (Params, R)>,
) -> Record {
    let pairs = |(params, percents): (Params, R)| {
        let pair = |wobble: u64| -> Vec<u64> {
            let others = percents.as_ref().iter().map(|percent| percent * wobble * 100);
            std::iter::once(1_000_000).chain(others).collect()
        };
        (params, [98, 99, 100, 101, 102].map(pair))
    };
    rated(modes, cells.map(pairs))
}

/// A closed and an open cell of two modes: (bytes per second, CPU nanoseconds a byte of each
/// process, latency in us).
pub fn proxied(figures: [(u64, u64, u64); 2]) -> Record {
    let of = |form: &str| {
        params(json!({
            "form": form, "connections": 64, "object_bytes": 1 << 20, "dataset_bytes": 256 << 20,
        }))
    };
    let rates = figures.map(|(rate, ..)| rate);
    let cells = [(of("closed"), [rates; 5]), (of("open"), [[1000; 2]; 5])];
    let mut record = rated(&["plain", "hinted"], cells);
    record.header.experiment = "http".into();
    for sample in &mut record.samples {
        let (_, cpu_ns, us) = figures[usize::from(sample.mode == "hinted")];
        let processes = ["client_cpu", "proxy_cpu", "backend_cpu"];
        sample.phases_ns = processes.map(|name| (name.to_owned(), cpu_ns * sample.bytes)).into();
        if sample.cell == 1 {
            sample.series.insert("latency_ns".into(), vec![us * 1000, us * 5000]);
            sample.series.insert("answers".into(), vec![98, 2]);
            sample.series.insert("answered".into(), vec![100]);
        } else if sample.mode == "hinted" {
            let counts =
                [("nontemporal_bytes", 75), ("fits_cache_bytes", 25), ("not_supported_bytes", 90)];
            sample.counters = counts.map(|(name, n)| (name.to_owned(), n)).into();
        }
    }
    record
}

/// Pairs of a program's turns, plain and hinted, in nanoseconds.
pub fn turns(figures: &[(u64, u64)]) -> Record {
    let mut record = record(&["plain", "hinted"], &[&[]]);
    record.header.experiment = "try".into();
    record.cells[0].params =
        params(json!({"metric": "time", "better": "less", "program": ["./sender", "a|b"]}));
    for (pair, (plain, hinted)) in (0..).zip(figures) {
        for (position, (mode, ns)) in (0..).zip([("plain", plain), ("hinted", hinted)]) {
            record.samples.push(sample((0, pair, position), mode, 0, *ns));
        }
    }
    record
}

/// The parameters of a cell from an object.
pub fn params(object: serde_json::Value) -> Params {
    serde_json::from_value(object).expect("an object")
}

/// A mode that is not to be had.
pub fn unavailable(mode: &str, why: &str) -> Unavailable {
    Unavailable { mode: mode.into(), why: why.into(), cell: None }
}

pub fn error(mode: &str, wrong_byte: bool) -> RunError {
    RunError { cell: 0, mode: mode.into(), what: "it failed".into(), wrong_byte }
}
