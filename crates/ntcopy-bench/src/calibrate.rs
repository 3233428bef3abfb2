//! Measuring this machine for the library's profile: which methods, and from which sizes on.
//!
//! Every figure is made as those of the experiments are: ways interleaved, pinned, warmed up, each
//! checked byte by byte beforehand, and compared in pairs. `docs/design/methodology.md` says what is measured
//! and how it is decided.

mod decide;
mod meter;
mod steps;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ntcopy::policy::Policy;
use ntcopy::profile::{Profile, ProfiledMachine};

use crate::experiments::bulk::plan::Resources;
use crate::experiments::bulk::run::Setup;
use crate::run::Failure;
use crate::sample::Progress;

use self::meter::Meter;

/// Regions below this say nothing about memory.
const LEAST_REGION_BYTES: u64 = 64 << 20;

#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// For the library to go by.
    pub profile: Profile,
    /// What it would have gone by otherwise: CPUID's.
    pub before: Policy,
    pub took: Duration,
    /// What could not be done as it should be, in sentences.
    pub notes: Vec<String>,
}

/// Measures. `region_bytes` is the memory of either side, if it is not to be twice the last-level
/// cache.
pub fn calibrate(
    resources: &Resources,
    region_bytes: Option<u64>,
    setup: &Setup<'_>,
    progress: &mut Progress,
) -> Result<Calibration, Failure> {
    let begin = Instant::now();
    let mut notes = Vec::new();
    let region_bytes = match region_bytes {
        Some(bytes) => bytes,
        None => enough_bytes(resources, &mut notes)?,
    };
    let before = Policy::for_cpu();
    let mut meter = Meter::start(resources, region_bytes, setup, progress)?;
    let policy = steps::all(&mut meter, resources, before)?;
    let measured: BTreeMap<String, u64> = meter.measured();
    progress.end();
    Ok(Calibration {
        profile: Profile { date: today(), machine: ProfiledMachine::this(), policy, measured },
        before,
        took: begin.elapsed(),
        notes,
    })
}

/// Twice the last-level cache a side, as far as there is memory.
fn enough_bytes(resources: &Resources, notes: &mut Vec<String>) -> Result<u64, Failure> {
    let wanted = (2 * resources.llc_bytes).max(256 << 20);
    let most = resources.available_bytes / 4;
    if most < LEAST_REGION_BYTES {
        return Err(Failure::Limit(format!(
            "measuring takes {} MiB of memory at least, and {} MiB are available",
            (4 * LEAST_REGION_BYTES) >> 20,
            resources.available_bytes >> 20
        )));
    }
    if most < wanted {
        notes.push(format!(
            "with {} MiB of memory available, cold buffers came out of 2 x {} MiB instead of 2 x \
             {} MiB: what is called cold may partly be in the cache",
            resources.available_bytes >> 20,
            most >> 20,
            wanted >> 20
        ));
    }
    Ok(wanted.min(most))
}

/// `2026-11-21`, in UTC.
fn today() -> String {
    let utc = time::OffsetDateTime::now_utc();
    format!("{:04}-{:02}-{:02}", utc.year(), u8::from(utc.month()), utc.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_memory_means_a_smaller_region_and_a_note_or_a_refusal() {
        let resources =
            |available_bytes| Resources { cpus: vec![0], available_bytes, llc_bytes: 1 << 30 };
        let mut notes = Vec::new();
        assert_eq!(enough_bytes(&resources(64 << 30), &mut notes), Ok(2 << 30));
        assert!(notes.is_empty());
        assert_eq!(enough_bytes(&resources(1 << 30), &mut notes), Ok(1 << 28));
        assert_eq!(notes.len(), 1);
        assert!(enough_bytes(&resources(1 << 20), &mut notes).is_err());
    }

    #[test]
    fn the_date_is_a_day() {
        let today = today();
        assert!(today.len() == 10 && today.as_str() > "2026-01-01", "{today}");
    }
}
