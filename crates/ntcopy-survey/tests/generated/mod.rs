//! A fleet that was not measured: SYNTHETIC, made here for tests and for the time that the report
//! takes. Its figures are plausible and mean nothing.
//!
//! Models come in families of four, whose curves differ by a few per cent and by their cache. Every
//! answer of a machine is its model's, with noise at four levels: of the machine, of the experiment
//! on it, of the answer and of each pair; some machines are busy, and some answers were disturbed.
//! An answer has five pairs: their median and span are exactly what the statistics make of five.

// Each program uses its own part of this.
#![allow(dead_code)]

pub mod experiments;
pub mod random;

use std::sync::Arc;

use experiments::{Experiment, Shape, experiments};
use ntcopy_record::{Cache, Machine, Record};
use ntcopy_survey::summary::{Dimms, Finding, MachineFacts, MachineId, RecordId, Summary};
use random::Random;

const MIB: u64 = 1 << 20;
/// Interleaved pairs of each answer.
const PAIRS: usize = 5;
/// When the first record was taken: 2026-11-21 01:29 UTC.
const BEGAN_UNIX_NS: u64 = 1_795_224_599_000_000_000;

/// How large a fleet.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// CPU models: a multiple of four.
    pub models: usize,
    /// Machines; each has four records.
    pub machines: usize,
    /// Machines that carry another model's behaviour.
    pub carriers: usize,
}

/// 10,000 records of 40 models, 12 carriers.
pub const WHOLE: Size = Size { models: 40, machines: 2500, carriers: 12 };

/// One CPU model.
pub struct Model {
    /// Its signature.
    pub signature: String,
    name: String,
    shape: Shape,
}

/// A machine that behaves like another model.
#[derive(Debug, Clone)]
pub struct Carrier {
    /// The machine.
    pub machine: MachineId,
    /// Its own model.
    pub signature: String,
    /// The model that it behaves like.
    pub carries: String,
    /// What its record says that differs; none: nothing.
    pub fact: Option<&'static str>,
}

/// One machine, before it is measured.
struct Unit {
    facts: Arc<MachineFacts>,
    node: String,
    /// The place of the model that it behaves like.
    behaves_like: usize,
    seed: u64,
}

/// The fleet.
pub struct Fleet {
    pub models: Vec<Model>,
    pub carriers: Vec<Carrier>,
    units: Vec<Unit>,
    experiments: Vec<Experiment>,
}

impl Fleet {
    /// Makes one; the same for a seed.
    pub fn new(size: Size, seed: u64) -> Fleet {
        let mut random = Random(seed);
        let models = models(size.models, &mut random);
        let mut units = Vec::new();
        for (model, count) in counts(size).into_iter().enumerate() {
            for _ in 0..count {
                units.push(unit(&models, model, units.len(), &mut random));
            }
        }
        let carriers = carry(size.carriers, &models, &mut units, &mut random);
        Fleet { models, carriers, units, experiments: experiments() }
    }

    /// How many records it has.
    pub fn records(&self) -> usize {
        self.units.len() * self.experiments.len()
    }

    /// The summary of one record, as the statistics would make it.
    pub fn summary(&self, number: usize) -> Summary {
        let (unit, experiment) = self.of(number);
        let ratios = self.ratios(unit, experiment);
        let findings = experiment.questions.iter().zip(&ratios).map(|(question, ratios)| {
            let mut sorted = *ratios;
            sorted.sort_by(f64::total_cmp);
            Finding {
                question: Arc::clone(question),
                ratio: sorted[PAIRS / 2],
                low: sorted[0],
                high: sorted[PAIRS - 1],
                pairs: PAIRS as u32,
            }
        });
        Summary {
            record: RecordId(self.id(number)),
            experiment: experiment.name().into(),
            taken_unix_ns: BEGAN_UNIX_NS + number as u64,
            machine: Arc::new(MachineFacts {
                machine: experiment.kernel_of(&unit.facts.machine),
                ..MachineFacts::clone(&unit.facts)
            }),
            node: Some(unit.node.clone()),
            not_counted: None,
            findings: findings.collect(),
        }
    }

    /// The record itself.
    pub fn record(&self, number: usize) -> Record {
        let (unit, experiment) = self.of(number);
        let mut record = experiment.record(&self.ratios(unit, experiment));
        record.header.id = self.id(number);
        record.header.started_unix_ns = BEGAN_UNIX_NS + number as u64;
        record.machine = experiment.kernel_of(&unit.facts.machine);
        record
    }

    /// The machine that a record is of.
    pub fn machine(&self, number: usize) -> &MachineFacts {
        &self.of(number).0.facts
    }

    /// Every summary.
    pub fn summaries(&self) -> Vec<Summary> {
        (0..self.records()).map(|number| self.summary(number)).collect()
    }

    fn of(&self, number: usize) -> (&Unit, &Experiment) {
        let of_each = self.experiments.len();
        (&self.units[number / of_each], &self.experiments[number % of_each])
    }

    /// The id of a record.
    pub fn id(&self, number: usize) -> String {
        let (unit, experiment) = self.of(number);
        format!("20261121-012959-{}-{:08x}", experiment.name(), unit.seed as u32 ^ number as u32)
    }

    /// The ratio of each pair of each answer.
    fn ratios(&self, unit: &Unit, experiment: &Experiment) -> Vec<[f64; PAIRS]> {
        let mut random = Random(unit.seed);
        let (of_machine, shift) = (0.008 * random.normal(), 0.06 * random.normal());
        let busy = if random.part() < 0.03 { 3.0 } else { 1.0 };
        // The numbers from here on are this experiment's own.
        let mut random = Random(unit.seed ^ (experiment.number as u64 + 1));
        let of_experiment = 0.012 * random.normal();
        let shape = &self.models[unit.behaves_like].shape;
        let one = |question: &Arc<ntcopy_survey::summary::Question>| {
            let usual = shape.log_ratio(question, shift) + of_machine + of_experiment;
            let disturbed = if random.part() < 0.015 { 0.3 * (random.part() - 0.5) } else { 0.0 };
            let own = usual + disturbed + 0.01 * random.normal();
            let noise = busy * experiment.noise;
            [(); PAIRS].map(|()| (own + noise * random.normal()).exp())
        };
        experiment.questions.iter().map(one).collect()
    }
}

/// Families of four: what one family has in common is drawn once.
fn models(count: usize, random: &mut Random) -> Vec<Model> {
    let mut models = Vec::new();
    for family in 0..count / 4 {
        let common = Shape::family(random);
        for sibling in 0..4 {
            let vendor = if family % 2 == 0 { "GenuineIntel" } else { "AuthenticAMD" };
            models.push(Model {
                signature: format!("{vendor}-{}-{}-{sibling}", 6 + family, 16 * family + 3),
                name: format!("SYNTHETIC CPU {family}.{sibling}"),
                shape: common.sibling(sibling, random),
            });
        }
    }
    models
}

/// Machines by model: one, two, three and five of the first four, the others by rank.
fn counts(size: Size) -> Vec<usize> {
    let few = [1, 2, 3, 5];
    let rest = size.models - few.len();
    let left = size.machines - few.iter().sum::<usize>();
    let weights: Vec<f64> = (0..rest).map(|rank| 1.0 / (rank as f64 + 6.0)).collect();
    let whole: f64 = weights.iter().sum();
    let least = 8;
    let free = (left - least * rest) as f64;
    let mut counts: Vec<usize> =
        weights.iter().map(|weight| least + (free * weight / whole) as usize).collect();
    let given: usize = counts.iter().sum();
    counts[0] += left - given;
    few.into_iter().chain(counts).collect()
}

fn unit(models: &[Model], model: usize, number: usize, random: &mut Random) -> Unit {
    let Model { signature, name, shape } = &models[model];
    let pick = random.part();
    let (libc, memcpy, memset) = match pick {
        pick if pick < 0.6 => ("glibc 2.36", 3 * shape.llc_bytes / 4, None),
        pick if pick < 0.9 => ("glibc 2.39", 3 * shape.llc_bytes / 8, None),
        _ => ("glibc 2.41", 3 * shape.llc_bytes / 8, Some(shape.llc_bytes / 4)),
    };
    let memory = [128_u64, 256, 512][random.below(3)] << 30;
    let mut machine = Machine {
        cpu_model: name.clone(),
        cpu_signature: signature.clone(),
        cpus: 64,
        caches: vec![
            cache(1, "data", 48 << 10, 2),
            cache(2, "unified", shape.l2_bytes, 2),
            cache(3, "unified", shape.llc_bytes, 64),
        ],
        topology: None,
        llc_bytes: shape.llc_bytes,
        // What the firmware keeps is another amount on every machine.
        memory_bytes: memory - (random.below(1024) as u64) * MIB,
        kernel_kind: "host".into(),
        kernel_release: if random.part() < 0.7 { "6.12.41".into() } else { "6.12.57".into() },
        kernel_key: None,
        kernel_cpus: 64,
        kernel_pin: None,
        kernel_huge_pages: false,
        kernel_own_cpus: Vec::new(),
        libc: libc.into(),
        libc_nt_threshold_bytes: Some(memcpy),
        libc_memset_nt_threshold_bytes: memset,
        governor: Some("performance".into()),
        hypervisor: None,
        tcp_congestion_control: None,
        hardware_counters: Vec::new(),
    };
    if random.part() < 0.01 {
        // A fact that stands out and does nothing.
        machine.governor = Some("schedutil".into());
    }
    let dimms = Dimms { slots: 16, populated: 16, speed_mt_per_s: Some(4800) };
    let id = MachineId::of("node", &format!("synthetic-{number}"));
    Unit {
        facts: Arc::new(MachineFacts { id, machine, dimms: Some(dimms) }),
        node: format!("n{number:04}"),
        behaves_like: model,
        seed: random.next(),
    }
}

fn cache(level: u8, kind: &str, size_bytes: u64, cpus: u32) -> Cache {
    Cache { level, kind: kind.into(), size_bytes, shared_by_cpus: Some(cpus) }
}

/// Gives some machines of models that have a few the behaviour of another model; of some the record
/// says why.
fn carry(count: usize, models: &[Model], units: &mut [Unit], random: &mut Random) -> Vec<Carrier> {
    let mut carriers: Vec<Carrier> = Vec::new();
    while carriers.len() < count {
        let at = random.below(units.len());
        let unit = &mut units[at];
        // The models of few machines lie at the beginning.
        if unit.behaves_like < 4 || carriers.iter().any(|one| one.machine == unit.facts.id) {
            continue;
        }
        let other = random.below(models.len());
        if other == unit.behaves_like {
            continue;
        }
        unit.behaves_like = other;
        let fact = [None, Some("cache"), Some("memory"), Some("hypervisor"), Some("libc"), None]
            [carriers.len() % 6];
        let mut facts = MachineFacts::clone(&unit.facts);
        match fact {
            Some("cache") => facts.machine.llc_bytes /= 2,
            Some("memory") => {
                facts.dimms = Some(Dimms { slots: 16, populated: 8, speed_mt_per_s: Some(4800) });
            }
            Some("hypervisor") => facts.machine.hypervisor = Some("KVMKVMKVM".into()),
            Some("libc") => facts.machine.libc = "musl 1.2.5".into(),
            _ => {}
        }
        carriers.push(Carrier {
            machine: facts.id.clone(),
            signature: facts.machine.cpu_signature.clone(),
            carries: models[other].signature.clone(),
            fact,
        });
        unit.facts = Arc::new(facts);
    }
    carriers
}
