//! The plan of the form with copies.

use std::collections::BTreeMap;
use std::time::Duration;

use ntcopy_record::Params;
use ntcopy_record::units::Bytes;

use super::{CopyMode, Settings, Victim};
use crate::experiment::LINE_BYTES;
use crate::experiments::retention::defaults;
use crate::plan::error::check_pairs;
use crate::plan::{PlanError, or, params};

/// A copy larger than this would make the steps of the offered rate coarse.
const MOST_OBJECT_BYTES: u64 = 16 << 20;
/// A slower stream would not do one copy in a sample.
const LEAST_RATE_BYTES_PER_S: u64 = 1_000_000;

/// What the plan has to know of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Here {
    pub allowed: Vec<u32>,
    pub victim_cpu: u32,
    /// CPUs with the victim's last-level cache, itself among them, if the kernel tells.
    pub sharing_llc: Option<Vec<u32>>,
    /// Hardware threads of the victim's core, itself among them, if the kernel tells.
    pub sharing_core: Option<Vec<u32>>,
    pub l2_bytes: u64,
    pub llc_bytes: u64,
}

/// Where the streamer runs beside a neighbour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    pub cpu: u32,
    /// What a reader has to know of the pair.
    pub note: Option<&'static str>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiesCell {
    pub victim: Victim,
    pub victim_cpu: u32,
    /// The streamer's CPU, or why there is none.
    pub streamer: Result<Neighbour, String>,
    pub hot_set_bytes: u64,
    /// Bytes of it that one pass walks through, whole lines.
    pub pass_bytes: u64,
    pub object_bytes: u64,
    /// Bytes per second that are offered; none on the same core, where an object follows a pass.
    pub rate_bytes_per_s: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiesPlan {
    pub cells: Vec<CopiesCell>,
    /// The modes, the baseline (`idle`) first.
    pub modes: Vec<CopyMode>,
    pub pairs: u32,
    pub sample: Duration,
    pub warm_up: Duration,
    pub dataset_bytes: u64,
}

impl CopiesPlan {
    pub fn samples(&self) -> u64 {
        let cells = self.cells.iter().filter(|cell| cell.streamer.is_ok()).count() as u64;
        cells * u64::from(self.pairs) * self.modes.len() as u64
    }

    pub fn memory_bytes(&self) -> u64 {
        let hot_set = self.cells.iter().map(|cell| cell.hot_set_bytes).max().unwrap_or(0);
        2 * self.dataset_bytes + hot_set
    }
}

impl CopiesCell {
    /// The parameters as the record has them. `rate_bytes_per_s` is what all modes can keep up
    /// with, `paths` the way that each mode's bytes go.
    pub fn params(
        &self,
        dataset_bytes: u64,
        rate_bytes_per_s: Option<u64>,
        paths: &BTreeMap<&str, String>,
    ) -> Params {
        let asked = self.rate_bytes_per_s.filter(|asked| Some(*asked) != rate_bytes_per_s);
        let streamer = self.streamer.as_ref().ok();
        let mut params = params([
            ("form", "copies".into()),
            ("victim", self.victim.as_str().into()),
            ("victim_cpu", self.victim_cpu.into()),
            ("hot_set_bytes", self.hot_set_bytes.into()),
            ("pass_bytes", self.pass_bytes.into()),
            ("object_bytes", self.object_bytes.into()),
            ("dataset_bytes", dataset_bytes.into()),
            ("rate_bytes_per_s", rate_bytes_per_s.or(self.rate_bytes_per_s).into()),
            ("asked_rate_bytes_per_s", asked.into()),
            ("streamer_cpu", streamer.map(|streamer| streamer.cpu).into()),
            ("note", streamer.and_then(|streamer| streamer.note).into()),
        ]);
        let paths = paths.iter();
        params.extend(paths.map(|(mode, path)| (format!("path_{mode}"), path.as_str().into())));
        params
    }
}

pub fn plan(settings: &Settings, here: &Here) -> Result<CopiesPlan, PlanError> {
    let defaults = &defaults(settings.quick).copies;
    let pairs = check_pairs(settings.pairs.unwrap_or(defaults.pairs))?;
    let objects = or(&settings.object_bytes, &[defaults.object_bytes]);
    let largest = check_objects(&objects)?;
    let by_llc = here.llc_bytes.saturating_mul(defaults.dataset_by_llc);
    let dataset =
        settings.dataset_bytes.unwrap_or(by_llc.clamp(64 << 20, defaults.most_dataset_bytes));
    if dataset / 4 < largest {
        let (dataset, object) = (Bytes(dataset), Bytes(largest));
        return Err(format!("--dataset {dataset}: at least four objects of {object}").into());
    }
    Ok(CopiesPlan {
        cells: cells(settings, here, &objects)?,
        modes: settings.modes_of_copies()?,
        pairs,
        sample: Duration::from_millis(defaults.sample_ms),
        warm_up: Duration::from_millis(defaults.warm_up_ms),
        dataset_bytes: dataset,
    })
}

fn cells(settings: &Settings, here: &Here, objects: &[u64]) -> Result<Vec<CopiesCell>, PlanError> {
    let defaults = &defaults(settings.quick).copies;
    let rates = or(&settings.rates_bytes_per_s, &[defaults.rate_bytes_per_s]);
    if rates.iter().any(|rate| *rate < LEAST_RATE_BYTES_PER_S) {
        return Err("--rate: at least 1000000 bytes per second".to_owned().into());
    }
    let neighbour = neighbour(here);
    let hot_sets = hot_sets(settings, here)?;
    let mut cells = Vec::new();
    for victim in or(&settings.victims, &defaults.victims) {
        let alone = Ok(Neighbour { cpu: here.victim_cpu, note: None });
        let (streamer, rates) = match victim {
            Victim::SameCore => (alone, vec![None]),
            Victim::Neighbour => (neighbour.clone(), rates.iter().copied().map(Some).collect()),
        };
        for &rate_bytes_per_s in &rates {
            for &object_bytes in objects {
                cells.extend(hot_sets.iter().map(|&hot_set_bytes| CopiesCell {
                    victim,
                    victim_cpu: here.victim_cpu,
                    streamer: streamer.clone(),
                    hot_set_bytes,
                    pass_bytes: pass_bytes(hot_set_bytes, here),
                    object_bytes,
                    rate_bytes_per_s,
                }));
            }
        }
    }
    Ok(cells)
}

fn check_objects(objects: &[u64]) -> Result<u64, PlanError> {
    match objects.iter().find(|object| !(LINE_BYTES..=MOST_OBJECT_BYTES).contains(*object)) {
        Some(object) => {
            let range = "from one cache line, 64 bytes, to 16 MiB";
            Err(format!("--object {}: {range}", Bytes(*object)).into())
        }
        None => Ok(objects.iter().copied().max().unwrap_or(0)),
    }
}

/// What is timed: all of the hot set, but no more than half of L2, so that every hot set has many
/// passes and, on the same core, the same traffic for each line walked.
fn pass_bytes(hot_set_bytes: u64, here: &Here) -> u64 {
    hot_set_bytes.min(whole_lines(here.l2_bytes / 2)).max(LINE_BYTES)
}

fn whole_lines(bytes: u64) -> u64 {
    bytes / LINE_BYTES * LINE_BYTES
}

/// The hot sets, in whole lines: from half of L2 in steps of four up to the last-level cache.
fn hot_sets(settings: &Settings, here: &Here) -> Result<Vec<u64>, PlanError> {
    let asked = &settings.hot_set_bytes;
    if asked.iter().any(|bytes| *bytes < 2 * LINE_BYTES) {
        return Err(PlanError::small_hot_set());
    }
    if let Some(bytes) = asked.iter().find(|bytes| **bytes > 128 << 30) {
        return Err(format!("--hot-set {}: at most 128 GiB", Bytes(*bytes)).into());
    }
    if !asked.is_empty() {
        return Ok(asked.iter().map(|bytes| whole_lines(*bytes)).collect());
    }
    let first = whole_lines(here.l2_bytes / 2).max(2 * LINE_BYTES);
    let last = whole_lines(here.llc_bytes).max(first);
    let mut sets: Vec<u64> = std::iter::successors(Some(first), |bytes| bytes.checked_mul(4))
        .take_while(|bytes| *bytes <= last / 2)
        .collect();
    sets.push(last);
    if settings.quick {
        sets = sets.into_iter().step_by(2).take(2).collect();
    }
    Ok(sets)
}

/// The streamer's CPU: one that shares the last-level cache, rather not the victim's own core.
fn neighbour(here: &Here) -> Result<Neighbour, String> {
    let is_in = |cpus: &Option<Vec<u32>>, cpu: u32| cpus.as_ref().map(|cpus| cpus.contains(&cpu));
    let shares_core = |cpu| is_in(&here.sharing_core, cpu) == Some(true);
    let note = |cpu| match is_in(&here.sharing_llc, cpu) {
        _ if shares_core(cpu) => {
            Some("victim and streamer are hardware threads of one core, and share its L1 and L2")
        }
        Some(true) => None,
        Some(false) | None => {
            Some("the kernel does not tell which CPUs share the last-level cache")
        }
    };
    let mut others: Vec<u32> = here.allowed.clone();
    others.retain(|cpu| *cpu != here.victim_cpu && is_in(&here.sharing_llc, *cpu) != Some(false));
    // The sort is stable: the first CPU of another core, or else the first hardware thread.
    others.sort_by_key(|cpu| shares_core(*cpu));
    match others.first() {
        Some(&cpu) => Ok(Neighbour { cpu, note: note(cpu) }),
        None => {
            let allowed: Vec<String> = here.allowed.iter().map(ToString::to_string).collect();
            Err(format!(
                "a neighbour needs a second CPU with the last-level cache of CPU {}, and this \
                 process may run on CPU {}",
                here.victim_cpu,
                allowed.join(", ")
            ))
        }
    }
}

#[cfg(test)]
mod tests;
