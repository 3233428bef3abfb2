//! Where the three processes run.

use crate::experiments::http::Settings;
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

/// Where the processes go.
pub fn places(settings: &Settings, cpus: &Cpus) -> Result<Places, PlanError> {
    check_cpus(&settings.cpus, &cpus.allowed)?;
    match *settings.cpus {
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
