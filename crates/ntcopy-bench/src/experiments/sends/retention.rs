//! Experiment `retention`: its defaults, what a user may set, and the plan that follows: a victim
//! walks through its hot set between sends.

use std::time::Duration;

use ntcopy_record::ExperimentKind;
use serde::Deserialize;

use super::{CellPlan, Form, SendsPlan};
use crate::experiment::{Family, LINE_BYTES, Mode, reads_defaults, size, with_baseline};
use crate::plan::error::{check_pairs, check_sizes, pin};
use crate::plan::{CpuPair, Cpus, PlanError, or};

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Defaults {
    pub baseline: Mode,
    pub modes: Vec<Mode>,
    pub hot_set_bytes: u64,
    pub cells: Vec<(u32, u64)>,
    pub dataset_bytes: Vec<u64>,
    pub pairs: u32,
    pub sample_ms: u64,
}

reads_defaults!("retention.toml");

/// What a user asks for; what is left open comes from [`defaults`].
#[derive(clap::Args, Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    /// Modes to measure beside idle
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub modes: Vec<Mode>,
    /// Sizes of the other program's hot set
    #[arg(long = "hot-set", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub hot_set_bytes: Vec<u64>,
    /// Sockets that are filled before all are drained [default: 1 and 64]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub sockets: Vec<u32>,
    /// Sizes of one send [default: 256KiB on one socket, 1MiB on 64; 1MiB if --sockets is given]
    #[arg(long = "object", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub object_bytes: Vec<u64>,
    /// Sizes of the data set that sends are taken from; 1MiB is hot
    #[arg(long = "dataset", value_name = "LIST", value_delimiter = ',', value_parser = size)]
    pub dataset_bytes: Vec<u64>,
    /// The address family of the sends [default: unix]
    #[arg(long, value_name = "FAMILY")]
    pub family: Option<Family>,
    #[arg(from_global)]
    pub pairs: Option<u32>,
    #[arg(from_global)]
    pub quick: bool,
}

impl Settings {
    /// The modes to measure: the baseline, `idle`, and those asked for.
    fn all_modes(&self) -> Vec<Mode> {
        let asked = or(&self.modes, &defaults(self.quick).modes);
        let mut modes = with_baseline(Mode::Plain, &asked);
        modes.insert(1, Mode::Idle);
        modes
    }

    /// What one boot measures of two that are compared, briefly.
    pub fn one_boot(self, modes: Vec<Mode>, _is_module: bool) -> Settings {
        Settings { modes, quick: true, pairs: Some(defaults(true).pairs), ..self }
    }

    pub fn cells(&self) -> Vec<(u32, u64)> {
        if self.sockets.is_empty() && self.object_bytes.is_empty() {
            return defaults(self.quick).cells.clone();
        }
        let (sockets, objects) = (or(&self.sockets, &[1]), or(&self.object_bytes, &[1 << 20]));
        let pairs = |object: u64| sockets.iter().map(move |sockets| (*sockets, object));
        objects.into_iter().flat_map(pairs).collect()
    }
}

/// Makes the plan: victim, sender and reader all on one CPU.
pub fn plan(settings: &Settings, cpus: &Cpus) -> Result<SendsPlan, PlanError> {
    let defaults = defaults(settings.quick);
    let pairs = check_pairs(settings.pairs.unwrap_or(defaults.pairs))?;
    let modes = settings.all_modes();
    if modes.contains(&Mode::Vmsplice) {
        let what = "vmsplice copies nothing that could push a hot set out: leave it out of --modes";
        return Err(PlanError::family(settings.family.unwrap_or(Family::Unix), what));
    }
    let cpu = cpus.allowed.first().copied().unwrap_or(0);
    let pair = pin(&[cpu], cpus)?;
    let mut cells = Vec::new();
    let family = settings.family.unwrap_or(Family::Unix);
    for hot_set_bytes in hot_sets(settings)? {
        for dataset in or(&settings.dataset_bytes, &defaults.dataset_bytes) {
            for (sockets, object) in settings.cells() {
                let form = Form::Victim { sockets, hot_set_bytes };
                cells.push(cell(family, form, object, dataset, pair)?);
            }
        }
    }
    Ok(SendsPlan {
        experiment: ExperimentKind::Retention,
        cells,
        modes,
        pairs,
        round_sample: Duration::from_millis(defaults.sample_ms),
        warm_up: Duration::ZERO,
        free_sample: Duration::ZERO,
        verified_sockets: u32::MAX,
    })
}

/// Sends of an object after the other, out of whole objects.
fn cell(
    family: Family,
    form: Form,
    object_bytes: u64,
    dataset_bytes: u64,
    cpus: CpuPair,
) -> Result<CellPlan, PlanError> {
    if object_bytes == 0 || dataset_bytes == 0 {
        return Err(PlanError::zero(if object_bytes == 0 { "object" } else { "dataset" }));
    }
    let cell = CellPlan {
        family,
        form,
        object_bytes,
        dataset_bytes: dataset_bytes.max(object_bytes) / object_bytes * object_bytes,
        pipe_bytes: None,
        sndbuf_bytes: None,
        cpus,
        published: None,
        note: None,
    };
    if cell.sockets() == 0 {
        return Err(PlanError::zero("sockets"));
    }
    check_sizes(&[cell.sockets()], &[object_bytes])?;
    Ok(cell)
}

/// The hot sets, in whole lines.
fn hot_sets(settings: &Settings) -> Result<Vec<u64>, PlanError> {
    let asked = or(&settings.hot_set_bytes, &[defaults(settings.quick).hot_set_bytes]);
    if asked.iter().any(|bytes| *bytes < 2 * LINE_BYTES) {
        return Err(PlanError::from("--hot-set: at least two cache lines, 128 bytes".to_owned()));
    }
    Ok(asked.into_iter().map(|bytes| bytes / LINE_BYTES * LINE_BYTES).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_is_always_measured() {
        let settings = Settings { modes: vec![Mode::Hinted], ..Settings::default() };
        assert_eq!(settings.all_modes(), [Mode::Plain, Mode::Idle, Mode::Hinted]);
        assert_eq!(Settings::default().all_modes().len(), 3);
    }

    #[test]
    fn cells_multiply_when_named() {
        assert_eq!(Settings::default().cells(), [(1, 256 << 10), (64, 1 << 20)]);
        let settings = Settings { sockets: vec![1, 8], ..Settings::default() };
        assert_eq!(settings.cells(), [(1, 1 << 20), (8, 1 << 20)]);
    }

    #[test]
    fn victims_are_rounds_with_their_own_parameters() {
        let two = Cpus::two();
        let planned = plan(&Settings::default(), &two).unwrap();
        let datasets: Vec<u64> = planned.cells.iter().map(|cell| cell.dataset_bytes).collect();
        assert_eq!(datasets, [256 << 20, 256 << 20, 1 << 20, 1 << 20]);
        let cell = &planned.cells[1];
        assert_eq!(cell.cpus, CpuPair { sender: 0, reader: 0 });
        assert_eq!(cell.params(None)["hot_set_bytes"], 512 << 10);
        let tiny = Settings { hot_set_bytes: vec![64], ..Settings::default() };
        assert!(plan(&tiny, &two).unwrap_err().to_string().contains("two cache"));
    }
}
