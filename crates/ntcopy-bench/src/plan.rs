//! From settings to a plan: which cells, which modes, in which order. Pure.

mod order;

use std::time::Duration;

use serde_json::Value;

use crate::experiment::unix::{Settings, defaults};
use crate::experiment::{Mode, published};
use crate::record::Params;
use crate::units::Bytes;

pub use order::group_order;

/// CPUs of the two processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuPair {
    /// Where the parent sends.
    pub sender: u32,
    /// Where the child reads.
    pub reader: u32,
}

/// How bytes are put in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Form {
    /// Fill every socket with one object, then drain them all.
    Rounds {
        /// Sockets filled before one is drained.
        sockets: u32,
    },
    /// One socket; sender and reader run freely.
    FreeRunning {
        /// Exactly this many sends, or as many as fill the sample's time.
        iterations: Option<u64>,
        /// At most this many.
        most_iterations: u64,
    },
}

/// One combination of parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellPlan {
    /// How bytes are put in flight.
    pub form: Form,
    /// Size of an object in bytes.
    pub object_bytes: u64,
    /// Size of the data set in bytes: a whole number of objects, at least one.
    pub dataset_bytes: u64,
    /// The reader's pipe in bytes; none: one object, as far as the system allows.
    pub pipe_bytes: Option<u64>,
    /// The send buffer asked for in bytes; none: so that a whole object fits.
    pub sndbuf_bytes: Option<u64>,
    /// CPUs of the two processes.
    pub cpus: CpuPair,
    /// The published configuration that this cell repeats.
    pub published: Option<String>,
    /// What is different here from that configuration.
    pub note: Option<String>,
}

impl CellPlan {
    /// Sockets in use.
    #[must_use]
    pub fn sockets(&self) -> u32 {
        match self.form {
            Form::Rounds { sockets } => sockets,
            Form::FreeRunning { .. } => 1,
        }
    }

    /// Bytes in flight when every socket is full; none in the free-running
    /// form, where the send buffer bounds them and nobody sets them.
    #[must_use]
    pub fn in_flight_bytes(&self) -> Option<u64> {
        match self.form {
            Form::Rounds { sockets } => Some(u64::from(sockets) * self.object_bytes),
            Form::FreeRunning { .. } => None,
        }
    }

    /// The parameters as the record has them. `iterations` is the number of
    /// sends that a free-running sample makes, once that is known.
    #[must_use]
    pub fn params(&self, iterations: Option<u64>) -> Params {
        let mut params = Params::new();
        let mut put = |name: &str, value: Value| params.insert(name.to_owned(), value);
        put("family", "unix".into());
        put("object_bytes", self.object_bytes.into());
        put("dataset_bytes", self.dataset_bytes.into());
        put("sockets", self.sockets().into());
        put("sender_cpu", self.cpus.sender.into());
        put("reader_cpu", self.cpus.reader.into());
        let (form, iterations) = match self.form {
            Form::Rounds { .. } => ("rounds", None),
            Form::FreeRunning { .. } => ("free-running", iterations),
        };
        put("form", form.into());
        let numbers = [
            ("iterations", iterations),
            ("in_flight_bytes", self.in_flight_bytes()),
            ("pipe_bytes", self.pipe_bytes),
            ("sndbuf_bytes", self.sndbuf_bytes),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                put(name, value.into());
            }
        }
        for (name, value) in [("published", &self.published), ("note", &self.note)] {
            if let Some(value) = value {
                put(name, value.as_str().into());
            }
        }
        params
    }
}

/// What will be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The combinations of parameters, in order.
    pub cells: Vec<CellPlan>,
    /// The modes, the baseline first.
    pub modes: Vec<Mode>,
    /// Interleaved groups in each cell.
    pub pairs: u32,
    /// How long the clocked part of a sample of rounds lasts at least.
    pub round_sample: Duration,
    /// How long a free-running sample lasts about.
    pub free_sample: Duration,
}

impl Plan {
    /// Timed runs, if all goes well.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.cells.len() as u64 * u64::from(self.pairs) * self.modes.len() as u64
    }

    /// Memory in bytes that the largest cell needs: its data set, what lies in
    /// the sockets with the kernel's own part, and as much again for the
    /// pattern that is sent before timing.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let cell = |cell: &CellPlan| {
            // A unix stream skb of 32 KiB payload and its head take up to half as much again.
            let in_flight = u64::from(cell.sockets()) * cell.object_bytes;
            cell.dataset_bytes + in_flight + in_flight / 2 + in_flight.max(4 * cell.object_bytes)
        };
        self.cells.iter().map(cell).max().unwrap_or(0)
    }
}

/// What the plan has to know of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cpus {
    /// CPUs that this process may run on, in order.
    pub allowed: Vec<u32>,
    /// Two of them that share their L2 cache, if any do and the kernel tells.
    pub sharing_l2: Option<CpuPair>,
}

/// Why a plan could not be made. Each says what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Too few groups for an interval.
    #[error("--pairs {0}: a 95 % interval needs at least 5 pairs")]
    TooFewPairs(u32),
    /// A size or count of nothing.
    #[error("--{0} 0: must be at least 1")]
    Zero(&'static str),
    /// A CPU that is not there, or that the process may not use.
    #[error("--cpus {cpu}: this process may run on {}", list(allowed))]
    NoSuchCpu {
        /// The CPU asked for.
        cpu: u32,
        /// The CPUs that it may use.
        allowed: Vec<u32>,
    },
    /// Neither one nor two CPUs.
    #[error("--cpus takes one CPU for both processes, or the sender's and the reader's; got {0}")]
    CpuCount(usize),
    /// More sockets than a process can hold.
    #[error("--sockets {0}: at most {MOST_SOCKETS}")]
    TooManySockets(u32),
    /// A data set with no room for an object.
    #[error("--dataset {dataset}: smaller than one object of {object}")]
    DatasetTooSmall {
        /// The data set.
        dataset: Bytes,
        /// The object.
        object: Bytes,
    },
    /// An object that one send cannot take.
    #[error("--object {0}: at most 1 GiB")]
    ObjectTooLarge(Bytes),
}

/// More would only measure the file-descriptor table.
const MOST_SOCKETS: u32 = 8192;
/// One send takes at most 2 GiB less a page; stay well below.
const MOST_OBJECT_BYTES: u64 = 1 << 30;

fn list(cpus: &[u32]) -> String {
    let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
    format!("CPU {}", cpus.join(", "))
}

/// Makes the plan.
///
/// # Errors
///
/// When the settings ask for something that cannot be; nothing has been measured then.
pub fn plan(settings: &Settings, cpus: &Cpus) -> Result<Plan, PlanError> {
    check(settings)?;
    let pair = pin(settings, cpus)?;
    let cells = if settings.published {
        published().iter().map(|config| published_cell(settings, config, cpus, pair)).collect()
    } else {
        grid(settings, pair)?
    };
    let defaults = defaults();
    let (rounds, free) = if settings.quick {
        (defaults.rounds.quick_sample_ms, defaults.free_running.quick_sample_ms)
    } else {
        (defaults.rounds.sample_ms, defaults.free_running.sample_ms)
    };
    Ok(Plan {
        cells,
        modes: settings.modes(),
        pairs: settings.pairs(),
        round_sample: Duration::from_millis(rounds),
        free_sample: Duration::from_millis(free),
    })
}

fn check(settings: &Settings) -> Result<(), PlanError> {
    if settings.pairs() < 5 {
        return Err(PlanError::TooFewPairs(settings.pairs()));
    }
    let zero = [
        ("object", settings.object_bytes.contains(&0)),
        ("dataset", settings.dataset_bytes.contains(&0)),
        ("sockets", settings.sockets.contains(&0)),
        ("pipe", settings.pipe_bytes == Some(0)),
        ("sndbuf", settings.sndbuf_bytes == Some(0)),
        ("iterations", settings.iterations == Some(0)),
    ];
    if let Some((name, _)) = zero.iter().find(|(_, zero)| *zero) {
        return Err(PlanError::Zero(name));
    }
    if let Some(sockets) = settings.sockets.iter().find(|sockets| **sockets > MOST_SOCKETS) {
        return Err(PlanError::TooManySockets(*sockets));
    }
    if let Some(object) = settings.object_bytes.iter().find(|size| **size > MOST_OBJECT_BYTES) {
        return Err(PlanError::ObjectTooLarge(Bytes(*object)));
    }
    Ok(())
}

/// The CPUs asked for, or the first two that the process may use.
fn pin(settings: &Settings, cpus: &Cpus) -> Result<CpuPair, PlanError> {
    if let Some(cpu) = settings.cpus.iter().find(|cpu| !cpus.allowed.contains(cpu)) {
        return Err(PlanError::NoSuchCpu { cpu: *cpu, allowed: cpus.allowed.clone() });
    }
    let asked = if settings.cpus.is_empty() {
        cpus.allowed.get(..2).unwrap_or(&cpus.allowed)
    } else {
        &settings.cpus
    };
    match *asked {
        [both] => Ok(CpuPair { sender: both, reader: both }),
        [sender, reader] => Ok(CpuPair { sender, reader }),
        _ => Err(PlanError::CpuCount(asked.len())),
    }
}

/// Every combination of objects, data sets and sockets.
fn grid(settings: &Settings, cpus: CpuPair) -> Result<Vec<CellPlan>, PlanError> {
    let defaults = defaults();
    let or = |asked: &[u64], default: Option<u64>| -> Vec<Option<u64>> {
        if asked.is_empty() { vec![default] } else { asked.iter().copied().map(Some).collect() }
    };
    let free = settings.sockets.is_empty();
    let forms: Vec<Form> = if free {
        vec![free_running(settings, defaults.free_running.iterations)]
    } else {
        settings.sockets.iter().map(|&sockets| Form::Rounds { sockets }).collect()
    };
    let dataset_default = (!free).then_some(defaults.rounds.dataset_bytes);
    let mut cells = Vec::new();
    for object in or(&settings.object_bytes, Some(defaults.object_bytes)).into_iter().flatten() {
        for dataset in or(&settings.dataset_bytes, dataset_default) {
            let dataset_bytes = whole_objects(settings, dataset, object)?;
            for form in &forms {
                cells.push(CellPlan {
                    form: form.clone(),
                    object_bytes: object,
                    dataset_bytes,
                    pipe_bytes: buffer(settings.pipe_bytes, free, defaults.free_running.pipe_bytes),
                    sndbuf_bytes: buffer(
                        settings.sndbuf_bytes,
                        free,
                        defaults.free_running.sndbuf_bytes,
                    ),
                    cpus,
                    published: None,
                    note: None,
                });
            }
        }
    }
    Ok(cells)
}

fn free_running(settings: &Settings, most: u64) -> Form {
    Form::FreeRunning {
        iterations: settings.iterations,
        most_iterations: settings.iterations.unwrap_or(most),
    }
}

fn buffer(asked: Option<u64>, free: bool, default: u64) -> Option<u64> {
    asked.or(free.then_some(default))
}

/// The data set cut to a whole number of objects.
fn whole_objects(settings: &Settings, dataset: Option<u64>, object: u64) -> Result<u64, PlanError> {
    let dataset = dataset.unwrap_or(object);
    if dataset < object {
        if !settings.dataset_bytes.is_empty() {
            let (dataset, object) = (Bytes(dataset), Bytes(object));
            return Err(PlanError::DatasetTooSmall { dataset, object });
        }
        return Ok(object);
    }
    Ok(dataset / object * object)
}

/// A published configuration, on the CPUs that are here.
fn published_cell(
    settings: &Settings,
    config: &crate::experiment::Published,
    cpus: &Cpus,
    pinned: CpuPair,
) -> CellPlan {
    let (pair, note) = match (config.shares_l2(), cpus.sharing_l2) {
        _ if !settings.cpus.is_empty() => (pinned, Some("on the CPUs that --cpus names")),
        (true, Some(pair)) => (pair, None),
        (true, None) => (pinned, Some("no two CPUs are known to share an L2 cache here")),
        (false, Some(pair)) if pair == pinned => {
            (pinned, Some("the two CPUs share their L2 cache here"))
        }
        (false, _) => (pinned, None),
    };
    let note = note.map(|note| format!("{note}: ran on CPUs {} and {}", pair.sender, pair.reader));
    CellPlan {
        form: free_running(settings, config.iterations),
        object_bytes: config.object_bytes,
        dataset_bytes: config.object_bytes,
        pipe_bytes: Some(config.pipe_bytes),
        sndbuf_bytes: Some(config.sndbuf_bytes),
        cpus: pair,
        published: Some(config.label.clone()),
        note,
    }
}

#[cfg(test)]
#[path = "plan/tests.rs"]
mod tests;
