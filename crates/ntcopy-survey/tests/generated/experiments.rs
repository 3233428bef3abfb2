//! What the synthetic fleet was asked, and how its models answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use ntcopy_record::{Cell, ExperimentKind, FORMAT, Header, Machine, Params, Record, Sample};
use ntcopy_survey::summary::{MachineId, Question, Summary};
use serde_json::{Value, json};

use super::random::Random;
use super::{MIB, PAIRS};

/// What a baseline's sample takes, and moves.
const UNIT_NS: f64 = 1e12;
const UNIT_BYTES: u64 = 1 << 40;

/// How a CPU model behaves: curves that rise from a loss to a win where the bytes outgrow its
/// cache.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The last-level cache that one CPU sees.
    pub llc_bytes: u64,
    /// The level-2 cache.
    pub l2_bytes: u64,
    /// Logarithms of the ratio far below the cache's size and far above it, of copies, fills, sends.
    low: [f64; 3],
    high: [f64; 3],
    /// Where the curves cross, by the cache's size, and how steep they are, in octaves.
    at: [f64; 3],
    width: f64,
    /// What a victim is spared, as a logarithm, of a hot set of the level-2 cache's size.
    spared: f64,
}

impl Shape {
    /// What a family of models has in common.
    pub fn family(random: &mut Random) -> Shape {
        let mut three = |low, high| [(); 3].map(|()| random.between(low, high));
        let (low, high, at) = (three(-0.7, -0.1), three(0.08, 0.45), three(0.4, 1.6));
        Shape {
            llc_bytes: MIB << (3 + random.below(4)),
            l2_bytes: [MIB / 2, MIB, 2 * MIB][random.below(3)],
            low,
            high,
            at,
            width: random.between(0.5, 1.2),
            spared: random.between(0.05, 0.4),
        }
    }

    /// One of the family: a few per cent away, with another cache.
    pub fn sibling(&self, number: usize, random: &mut Random) -> Shape {
        let mut nearby = |values: [f64; 3], by: f64| values.map(|v| v + by * random.normal());
        Shape {
            low: nearby(self.low, 0.08),
            high: nearby(self.high, 0.06),
            at: nearby(self.at, 0.1).map(|at| at.max(0.2)),
            llc_bytes: self.llc_bytes * [2, 3, 4, 6][number] / 2,
            spared: self.spared + 0.05 * random.normal(),
            ..self.clone()
        }
    }

    /// The model's answer, its crossover shifted by `shift` octaves.
    pub fn log_ratio(&self, question: &Question, shift: f64) -> f64 {
        let size = question.size_bytes.unwrap_or(1) as f64;
        let of = |kind: usize, strength: f64| {
            let octaves = (size / (self.at[kind] * self.llc_bytes as f64)).log2() - shift;
            let rise = 1.0 / (1.0 + (-octaves / self.width).exp());
            strength * (self.low[kind] + (self.high[kind] - self.low[kind]) * rise)
        };
        match (question.experiment.trim_start_matches("booted "), question.mode.as_str()) {
            ("memcpy", "ours") => of(0, 1.0).max(0.0),
            ("memcpy", "libc-tuned") => of(0, 0.9),
            ("memcpy", _) => of(0, 1.1),
            ("memset", _) => of(1, 1.0),
            ("unix", "adaptive") => of(2, 0.95).max(-0.01),
            ("unix", _) => of(2, 1.0),
            _ => self.spared * (self.l2_bytes as f64 / size).min(1.0),
        }
    }
}

/// One experiment of the survey.
pub struct Experiment {
    /// Its place.
    pub number: usize,
    /// What it asks, in the order of a summary's findings.
    pub questions: Vec<Arc<Question>>,
    /// One deviation of a pair.
    pub noise: f64,
    template: Record,
    is_booted: bool,
    /// The cell and the mode of each question.
    places: Vec<(u32, String)>,
}

/// Copies, fills, sends in a booted kernel, and what a victim feels of copies.
pub fn experiments() -> Vec<Experiment> {
    let copies = |size: u64| {
        json!({
            "size_bytes": size, "source": "cold", "destination": "cold", "pages": "huge",
            "threads": 1, "libc_tuned_threshold_bytes": MIB / 16,
        })
    };
    let fills = |size: u64| json!({"size_bytes": size, "pages": "huge", "threads": 1, "value": 0});
    let sends = |size: u64| {
        json!({
            "in_flight_bytes": size, "object_bytes": MIB, "dataset_bytes": 256 * MIB,
            "sockets": size / MIB, "family": "unix", "form": "rounds",
        })
    };
    let hot = |size: u64| {
        json!({
            "hot_set_bytes": size, "pass_bytes": size, "object_bytes": MIB / 4, "form": "copies",
            "victim": "same-core",
        })
    };
    let sizes = |from: u64, factor: u64, count: u32| -> Vec<u64> {
        (0..count).map(|step| from * factor.pow(step)).collect()
    };
    let cells = |sizes: Vec<u64>, of: &dyn Fn(u64) -> Value| -> Vec<Value> {
        sizes.into_iter().map(of).collect()
    };
    let all: [(&str, &[&str], Vec<Value>, f64); 4] = [
        (
            "memcpy",
            &["libc", "ours", "movnti", "libc-tuned"],
            cells(sizes(MIB / 16, 4, 7), &copies),
            0.015,
        ),
        ("memset", &["libc", "ours"], cells(sizes(MIB / 4, 4, 6), &fills), 0.015),
        ("unix", &["copy", "nt", "adaptive"], cells(sizes(MIB, 2, 8), &sends), 0.03),
        ("retention", &["idle", "copy", "nt", "nt-both"], cells(sizes(MIB / 4, 2, 4), &hot), 0.02),
    ];
    all.into_iter()
        .enumerate()
        .map(|(number, (name, modes, cells, noise))| experiment(number, name, modes, &cells, noise))
        .collect()
}

fn experiment(
    number: usize,
    name: &str,
    modes: &[&str],
    cells: &[Value],
    noise: f64,
) -> Experiment {
    let mut template = template(name, modes, cells);
    let is_booted = name == "unix";
    if is_booted {
        template.machine.kernel_kind = "um".into();
    }
    let baseline = if name == "retention" { "copy" } else { modes[0] };
    let places: Vec<(u32, String)> = (0..cells.len() as u32)
        .flat_map(|cell| modes.iter().map(move |mode| (cell, (*mode).to_owned())))
        .filter(|(_, mode)| mode != baseline && mode != "idle")
        .collect();
    fill(&mut template, &places, &vec![[1.0; PAIRS]; places.len()]);
    let summary = Summary::of(&template, MachineId::of("node", "template"), None, None);
    let questions: Vec<Arc<Question>> =
        summary.findings.iter().map(|finding| Arc::clone(&finding.question)).collect();
    assert_eq!(questions.len(), places.len(), "{name}: a question a cell and mode");
    Experiment { number, questions, noise, template, is_booted, places }
}

impl Experiment {
    /// Its name.
    pub fn name(&self) -> &str {
        self.template.header.experiment.as_str()
    }

    /// The machine as its record describes it.
    pub fn kernel_of(&self, machine: &Machine) -> Machine {
        let mut machine = machine.clone();
        if self.is_booted {
            machine.kernel_kind = "um".into();
            machine.kernel_release = "7.3.4-ntcopy".into();
        }
        machine
    }

    /// A record with these ratios.
    pub fn record(&self, ratios: &[[f64; PAIRS]]) -> Record {
        let mut record = self.template.clone();
        record.samples.clear();
        fill(&mut record, &self.places, ratios);
        record
    }
}

/// Samples that come to these ratios: of each cell the baseline's, and those of its modes.
fn fill(record: &mut Record, places: &[(u32, String)], ratios: &[[f64; PAIRS]]) {
    let is_retention = record.header.experiment == ExperimentKind::Retention;
    for cell in 0..record.cells.len() as u32 {
        for pair in 0..PAIRS {
            let baseline = if is_retention { "copy" } else { record.header.baseline.as_str() };
            let mut modes = vec![(baseline.to_owned(), 1.0)];
            if is_retention {
                modes.insert(0, ("idle".to_owned(), 2.0));
            }
            let ours = places.iter().zip(ratios).filter(|((its, _), _)| *its == cell);
            modes.extend(ours.map(|((_, mode), ratios)| (mode.clone(), ratios[pair])));
            for (position, (mode, ratio)) in (0..).zip(modes) {
                let taken = (UNIT_NS / ratio).round() as u64;
                record.samples.push(sample(
                    (cell, pair as u32, position),
                    mode,
                    taken,
                    is_retention,
                ));
            }
        }
    }
}

fn sample(
    (cell, pair, position): (u32, u32, u32),
    mode: String,
    elapsed_ns: u64,
    is_walk: bool,
) -> Sample {
    let is_ours = mode == "ours";
    Sample {
        cell,
        pair,
        position,
        bytes: if is_walk { 0 } else { UNIT_BYTES },
        elapsed_ns,
        phases_ns: BTreeMap::new(),
        counters: if is_ours { [("nontemporal_bytes".to_owned(), 1)].into() } else { [].into() },
        series: if is_walk { [("walk_ns".to_owned(), vec![elapsed_ns])].into() } else { [].into() },
        mode,
    }
}

fn template(name: &str, modes: &[&str], cells: &[Value]) -> Record {
    let params = |cell: &Value| -> Params {
        cell.as_object().expect("an object").clone().into_iter().collect()
    };
    Record {
        header: Header {
            format: FORMAT,
            id: format!("synthetic-{name}"),
            experiment: name.into(),
            command: ["ntcopy", "bench", name].map(String::from).into(),
            ntcopy: "0.1.0".into(),
            started_unix_ns: 0,
            baseline: modes[0].into(),
            not_a_timing: None,
        },
        machine: Machine {
            cpu_model: "SYNTHETIC".into(),
            cpu_signature: "None-0-0-0".into(),
            cpus: 1,
            caches: Vec::new(),
            topology: None,
            llc_bytes: 0,
            memory_bytes: 0,
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
            hardware_counters: Vec::new(),
        },
        cells: (0..).zip(cells).map(|(cell, p)| Cell { cell, params: params(p) }).collect(),
        samples: Vec::new(),
        unavailable: Vec::new(),
        errors: Vec::new(),
        complete: true,
    }
}
