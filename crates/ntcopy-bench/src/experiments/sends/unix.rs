//! Experiment `unix`: its defaults, what a user may set, and the plan of it.

mod published;

use std::time::Duration;

use ntcopy_record::ExperimentKind;
use serde::Deserialize;

use self::published::{Published, published};
use super::{CellPlan, Form, SendsPlan, Small};
use crate::experiment::{Family, Mode, reads_defaults, size, with_baseline};
use crate::plan::error::{check_pairs, check_sizes, check_zeros, pin};
use crate::plan::{CpuPair, Cpus, PlanError, or};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: Mode,
    pub modes: Vec<Mode>,
    pub object_bytes: u64,
    pub pairs: u32,
    pub rounds: RoundDefaults,
    pub sweep: SweepDefaults,
    pub free_running: FreeDefaults,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundDefaults {
    pub dataset_bytes: u64,
    pub two_senders_sockets: u32,
    pub small_per_object: Vec<u32>,
    pub sample_ms: u64,
    pub warm_up_ms: u64,
}

/// The sweep: every combination of these, in rounds.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepDefaults {
    pub modes: Vec<Mode>,
    pub sockets: Vec<u32>,
    pub dataset_bytes: Vec<u64>,
    pub object_bytes: Vec<u64>,
    pub pairs: u32,
    pub sample_ms: u64,
    pub warm_up_ms: u64,
    pub verified_sockets: u32,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FreeDefaults {
    pub pipe_bytes: u64,
    pub sndbuf_bytes: u64,
    pub iterations: u64,
    pub sample_ms: u64,
}

reads_defaults!("unix.toml");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Modes to compare with plain
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<Mode>,
    /// Rounds over these numbers of sockets in flight
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub sockets: Vec<u32>,
    /// A bulk sender and a small one on one CPU: between the sends of the rounds [default: on 64
    /// sockets] it makes sends of these sizes, each drained at once, at random moments
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size,
          conflicts_with_all = ["published", "sweep"])]
    pub beside: Vec<u64>,
    /// The three published configurations, on the CPUs that are here
    #[arg(long, conflicts_with_all = [
        "sockets", "object_bytes", "dataset_bytes", "pipe_bytes", "sndbuf_bytes", "against"
    ])]
    pub published: bool,
    /// Object sizes
    #[arg(long = "object", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub object_bytes: Vec<u64>,
    /// Sizes of the data set that objects are taken from [default: 256MiB with --sockets, else
    /// one object]
    #[arg(long = "dataset", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub dataset_bytes: Vec<u64>,
    /// Size of the reader's pipe [default: 512KiB; with --sockets one object, as far as allowed]
    #[arg(long = "pipe", value_name = "SIZE", value_parser = size)]
    pub pipe_bytes: Option<u64>,
    /// Send buffer [default: 512KiB; with --sockets what takes a whole object]
    #[arg(long = "sndbuf", value_name = "SIZE", value_parser = size)]
    pub sndbuf_bytes: Option<u64>,
    /// Sends in a free-running sample [default: as many as fill its time, at most 100000]
    #[arg(long, hide = true, value_name = "N", conflicts_with = "sockets")]
    pub iterations: Option<u64>,
    /// CPU of the sender and CPU of the reader, or one for both [default: the first two]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cpus: Vec<u32>,
    /// Address families, over the loopback [default: unix]
    #[arg(
        long = "family",
        value_name = "LIST",
        value_delimiter = ',',
        conflicts_with = "published"
    )]
    pub families: Vec<Family>,
    /// Every combination of the sweep's sockets, data sets and objects (see --list)
    #[arg(long, conflicts_with_all = ["published", "iterations"])]
    pub sweep: bool,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}

impl Settings {
    pub fn families(&self) -> Vec<Family> {
        let mut families = self.families.clone();
        families.sort_unstable();
        families.dedup();
        if families.is_empty() { vec![Family::Unix] } else { families }
    }

    /// The modes to measure, the baseline first, each once.
    pub fn modes(&self) -> Vec<Mode> {
        let defaults = defaults(self.quick);
        let usual = if self.sweep { &defaults.sweep.modes } else { &defaults.modes };
        // Pages cannot be spliced into datagrams of a size that one chooses.
        let has_no_pages =
            !self.beside.is_empty() || self.families().iter().any(|family| family.is_datagram());
        let mut asked = or(&self.modes, usual);
        asked.retain(|mode| !self.modes.is_empty() || !has_no_pages || *mode != Mode::Vmsplice);
        with_baseline(Mode::Plain, &asked)
    }

    /// What one boot measures of two that are compared, briefly.
    pub fn one_boot(mut self, modes: Vec<Mode>, is_module: bool) -> Settings {
        let (sockets, object_bytes) = match is_module {
            true => (vec![1, 32, 128], vec![1 << 20]),
            false => (vec![1, 16], vec![4 << 10, 64 << 10, 1 << 20]),
        };
        (self.modes, self.quick, self.pairs) = (modes, true, Some(5));
        if self.beside.is_empty() {
            if self.sockets.is_empty() && !self.sweep {
                self.sockets = sockets;
            }
            if self.object_bytes.is_empty() {
                self.object_bytes = object_bytes;
            }
            if self.dataset_bytes.is_empty() {
                self.dataset_bytes = vec![1 << 20];
            }
        }
        self
    }

    /// Whether sender and reader take turns.
    pub fn is_in_rounds(&self) -> bool {
        self.sweep || !self.sockets.is_empty() || !self.beside.is_empty()
    }

    pub fn pairs(&self) -> u32 {
        let defaults = defaults(self.quick);
        self.pairs.unwrap_or(if self.sweep { defaults.sweep.pairs } else { defaults.pairs })
    }
}

pub fn plan(settings: &Settings, cpus: &Cpus) -> Result<SendsPlan, PlanError> {
    check(settings)?;
    let pair = pin(&settings.cpus, cpus)?;
    let cells = if settings.published {
        published().iter().map(|config| published_cell(settings, config, cpus, pair)).collect()
    } else {
        grid(settings, pair)?
    };
    let defaults = defaults(settings.quick);
    let (rounds, sweep) = (&defaults.rounds, &defaults.sweep);
    let ms = Duration::from_millis;
    let of = |rounds, of_sweep| ms(if settings.sweep { of_sweep } else { rounds });
    Ok(SendsPlan {
        experiment: ExperimentKind::Unix,
        cells,
        modes: settings.modes(),
        pairs: settings.pairs(),
        round_sample: of(rounds.sample_ms, sweep.sample_ms),
        warm_up: of(rounds.warm_up_ms, sweep.warm_up_ms),
        free_sample: ms(defaults.free_running.sample_ms),
        verified_sockets: if settings.sweep { sweep.verified_sockets } else { u32::MAX },
    })
}

fn check(settings: &Settings) -> Result<(), PlanError> {
    check_pairs(settings.pairs())?;
    check_zeros(&[
        ("object", settings.object_bytes.contains(&0)),
        ("dataset", settings.dataset_bytes.contains(&0)),
        ("sockets", settings.sockets.contains(&0)),
        ("beside", settings.beside.contains(&0)),
        ("pipe", settings.pipe_bytes == Some(0)),
        ("sndbuf", settings.sndbuf_bytes == Some(0)),
        ("iterations", settings.iterations == Some(0)),
    ])?;
    check_family(settings)?;
    check_sizes(&settings.sockets, &settings.object_bytes)?;
    check_sizes(&[], &settings.beside)
}

/// What only some families do.
fn check_family(settings: &Settings) -> Result<(), PlanError> {
    for family in settings.families() {
        let what = if !settings.is_in_rounds() && family != Family::Unix {
            "measured in rounds only: say --sockets LIST or --sweep"
        } else if family.is_datagram() && settings.modes.contains(&Mode::Vmsplice) {
            "pages cannot be spliced into datagrams of a size that one chooses: leave vmsplice out"
        } else {
            continue;
        };
        return Err(PlanError::family(family, what));
    }
    Ok(())
}

/// Every combination of families, objects, data sets and sockets.
fn grid(settings: &Settings, cpus: CpuPair) -> Result<Vec<CellPlan>, PlanError> {
    let settings = &filled(settings);
    let defaults = defaults(settings.quick);
    let or = |asked: &[u64], default: Option<u64>| -> Vec<Option<u64>> {
        if asked.is_empty() { vec![default] } else { asked.iter().copied().map(Some).collect() }
    };
    let free = settings.sockets.is_empty();
    let forms: Vec<Form> = if free {
        vec![free_running(settings, defaults.free_running.iterations)]
    } else {
        settings.sockets.iter().flat_map(|&sockets| rounds(settings, sockets)).collect()
    };
    let dataset_default = (!free).then_some(defaults.rounds.dataset_bytes);
    let buffers = &defaults.free_running;
    let mut cells = Vec::new();
    for family in settings.families() {
        let objects = or(&settings.object_bytes, Some(defaults.object_bytes));
        for object in objects.into_iter().flatten() {
            for dataset in or(&settings.dataset_bytes, dataset_default) {
                let dataset_bytes = whole_objects(settings, dataset, object)?;
                cells.extend(forms.iter().map(|form| CellPlan {
                    family,
                    form: form.clone(),
                    object_bytes: object,
                    dataset_bytes,
                    pipe_bytes: buffer(settings.pipe_bytes, free, buffers.pipe_bytes),
                    sndbuf_bytes: buffer(settings.sndbuf_bytes, free, buffers.sndbuf_bytes),
                    cpus,
                    published: None,
                    note: None,
                }));
            }
        }
    }
    if settings.sweep {
        // A data set is filled once for all the cells that use it.
        cells.sort_by_key(|cell| (cell.family, cell.dataset_bytes));
    }
    Ok(cells)
}

/// Rounds over these sockets, with a small sender between them if one is asked for.
fn rounds(settings: &Settings, sockets: u32) -> Vec<Form> {
    let mut forms = Vec::new();
    for &bytes in &settings.beside {
        for &per_object in &defaults(settings.quick).rounds.small_per_object {
            forms.extend([true, false].map(|is_clocked| Form::TwoSenders {
                sockets,
                small: Small { bytes, per_object, is_clocked },
            }));
        }
    }
    if forms.is_empty() { vec![Form::Rounds { sockets }] } else { forms }
}

/// The settings with the sizes of sweep and two senders where none are asked for.
fn filled(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    if !settings.beside.is_empty() && settings.sockets.is_empty() {
        settings.sockets = vec![defaults(settings.quick).rounds.two_senders_sockets];
    }
    if settings.sweep {
        let sweep = &defaults(settings.quick).sweep;
        if settings.sockets.is_empty() {
            settings.sockets.clone_from(&sweep.sockets);
        }
        if settings.object_bytes.is_empty() {
            settings.object_bytes.clone_from(&sweep.object_bytes);
        }
        if settings.dataset_bytes.is_empty() {
            settings.dataset_bytes.clone_from(&sweep.dataset_bytes);
        }
    }
    settings
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
            return Err(PlanError::small_dataset(dataset, object));
        }
        return Ok(object);
    }
    Ok(dataset / object * object)
}

/// A published configuration, on the CPUs that are here.
fn published_cell(
    settings: &Settings,
    config: &Published,
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
        family: Family::Unix,
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
mod tests;
