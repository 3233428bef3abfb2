//! Records made by hand, for the tests of what judges them.

use super::{Cell, FORMAT, Header, Machine, Params, Record, RunError, Sample, Unavailable};

/// Payload of every sample here: large, so that rates come out to many digits.
const BYTES: u64 = 1 << 40;

pub struct Sketch {
    modes: Vec<String>,
    record: Record,
}

impl Sketch {
    /// An empty record of one cell; the first mode is the baseline.
    pub fn new(modes: &[&str]) -> Sketch {
        Sketch {
            modes: modes.iter().map(|mode| (*mode).to_owned()).collect(),
            record: record(modes, &[&[("in_flight_bytes", 1 << 20)]]),
        }
    }

    /// A record that is there already, for samples of these modes.
    pub fn of(modes: &[&str], record: Record) -> Sketch {
        Sketch { modes: modes.iter().map(|mode| (*mode).to_owned()).collect(), record }
    }

    /// Adds one sample a mode, at these bytes per second.
    pub fn pair(&mut self, cell: u32, pair: u32, rates: &[u64]) {
        for ((position, mode), rate) in (0..).zip(&self.modes).zip(rates) {
            let elapsed_ns = (u128::from(BYTES) * 1_000_000_000 / u128::from(*rate)) as u64;
            let mut sample = sample((cell, pair, position), mode, BYTES, elapsed_ns);
            sample.phases_ns.insert("send".to_owned(), elapsed_ns / 2);
            self.record.samples.push(sample);
        }
    }

    pub fn record(&self) -> Record {
        self.record.clone()
    }
}

/// A record of one cell, with the same rates in each of this number of pairs.
pub fn pairs(modes: &[&str], pairs: u32, rates: &[u64]) -> Record {
    let mut sketch = Sketch::new(modes);
    (0..pairs).for_each(|pair| sketch.pair(0, pair, rates));
    sketch.record
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
    let params = |cell: &[(&str, u64)]| -> Params {
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
            not_a_timing: None,
        },
        machine: Machine {
            cpu_model: "made by hand".into(),
            cpu_signature: "None-0-0-0".into(),
            cpus: 2,
            caches: vec![],
            topology: None,
            llc_bytes: 32 << 20,
            memory_bytes: 1 << 30,
            kernel_kind: "host".into(),
            kernel_release: "0".into(),
            kernel_key: None,
            kernel_cpus: 1,
            kernel_pin: None,
            kernel_huge_pages: false,
            kernel_own_cpus: Vec::new(),
            libc: "none 0".into(),
            libc_nt_threshold_bytes: None,
            libc_memset_nt_threshold_bytes: None,
            governor: None,
            hypervisor: None,
            tcp_congestion_control: None,
            hardware_counters: vec![],
        },
        cells: (0..).zip(cells).map(|(cell, p)| Cell { cell, params: params(p) }).collect(),
        samples: vec![],
        looks: vec![],
        unavailable: vec![],
        errors: vec![],
        complete: true,
    }
}

/// A record with one cell for each of (bytes in flight, ratio of `nt` in percent).
pub fn crossover(points: &[(u64, u64)]) -> Record {
    let params: Vec<[(&str, u64); 2]> = points
        .iter()
        .map(|(bytes, _)| [("in_flight_bytes", *bytes), ("object_bytes", 1 << 20)])
        .collect();
    let cells: Vec<&[(&str, u64)]> = params.iter().map(|cell| &cell[..]).collect();
    let mut sketch = Sketch::new(&["copy", "nt"]);
    sketch.record = record(&["copy", "nt"], &cells);
    for (cell, (_, percent)) in (0..).zip(points) {
        for pair in 0..5 {
            // A spread of 2 % either way, so that 100 % is "no difference".
            let wobble = [98, 99, 100, 101, 102][pair as usize];
            sketch.pair(cell, pair, &[1_000_000, percent * wobble * 100]);
        }
    }
    sketch.record()
}

/// A mode that is not to be had.
pub fn unavailable(mode: &str, why: &str) -> Unavailable {
    Unavailable { mode: mode.into(), why: why.into(), cell: None }
}

pub fn error(mode: &str, wrong_byte: bool) -> RunError {
    RunError { cell: 0, mode: mode.into(), what: "it failed".into(), wrong_byte }
}
