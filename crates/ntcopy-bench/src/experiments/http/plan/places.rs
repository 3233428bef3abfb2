//! Where the three processes run, and the victim beside one of them.

use std::time::Duration;

use crate::experiment::LINE_BYTES;
use crate::experiments::http::{Settings, defaults};
use crate::plan::error::check_cpus;
use crate::plan::{Cpus, PlanError};

/// The CPUs that the three processes are kept on; none: wherever the system likes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Places {
    /// The client's: this program's.
    pub client: Option<u32>,
    pub proxy: Option<u32>,
    pub backend: Option<u32>,
}

/// A hot set on the backend's CPU, which a victim walks through while requests are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotSetPlan {
    /// Its size in bytes: whole lines.
    pub bytes: u64,
    /// How long it is from one walk's beginning to the next one's.
    pub every: Duration,
    pub cpu: u32,
}

/// Where the processes go. A backend with a victim beside it has to stay on one CPU.
pub fn places(settings: &Settings, cpus: &Cpus) -> Result<Places, PlanError> {
    check_cpus(&settings.cpus, &cpus.allowed)?;
    let has_victim = settings.hot_set_bytes.is_some();
    match *settings.cpus {
        // The last one: the system's own work tends to be on the first.
        [] if has_victim => {
            Ok(Places { backend: cpus.allowed.last().copied(), ..Places::default() })
        }
        [] => Ok(Places::default()),
        [all] => Ok(Places { client: Some(all), proxy: Some(all), backend: Some(all) }),
        [client, proxy, backend] => {
            Ok(Places { client: Some(client), proxy: Some(proxy), backend: Some(backend) })
        }
        _ => {
            let takes = "one CPU for all, or those of client, proxy and backend";
            Err(PlanError::cpu_count(takes, settings.cpus.len()))
        }
    }
}

/// The hot set, if one is asked for.
pub fn hot_set(settings: &Settings, places: Places) -> Result<Option<HotSetPlan>, PlanError> {
    let (Some(bytes), Some(cpu)) = (settings.hot_set_bytes, places.backend) else {
        return Ok(None);
    };
    if bytes < 2 * LINE_BYTES {
        return Err(PlanError::small_hot_set());
    }
    Ok(Some(HotSetPlan {
        bytes: bytes / LINE_BYTES * LINE_BYTES,
        every: Duration::from_micros(defaults().hot_set.every_us),
        cpu,
    }))
}
