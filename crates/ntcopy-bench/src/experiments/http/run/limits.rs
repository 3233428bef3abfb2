//! What the system has to allow.

use crate::experiments::http::{Backend, HttpCell, HttpPlan};
use crate::run::Failure;

/// Descriptors beside objects and connections: logs, listeners, epolls, pooled pipes.
const OTHER_FILES: u64 = 512;
/// Descriptors of a proxy for each connection: two sockets, and both ends of a pipe.
const FILES_A_CONNECTION: u64 = 4;
/// The mappings that a process has, about; storaged has one for each object.
const MOST_OBJECTS: u64 = 60_000;

/// Lets this process and the daemons have what they open; gives how many files that is.
pub fn allow_files(plan: &HttpPlan) -> Result<u64, Failure> {
    let needed = plan.cells.iter().map(|cell| {
        let connections = u64::from(cell.connections);
        let of_client = connections * plan.ways.len() as u64;
        of_client.max(connections * FILES_A_CONNECTION).max(cell.objects() + connections)
    });
    let needed = needed.max().unwrap_or(0) + OTHER_FILES;
    if plan.ways.iter().any(|way| way.stack.backend() == Backend::Storaged) {
        let objects = plan.cells.iter().map(HttpCell::objects).max().unwrap_or(0);
        can_be_mapped(objects)?;
    }
    crate::run::allow_files(needed, "fewer --connections or a smaller --dataset")
}

/// Whether a storaged can have so many objects mapped.
fn can_be_mapped(objects: u64) -> Result<(), Failure> {
    if objects <= MOST_OBJECTS {
        return Ok(());
    }
    Err(Failure::Limit(format!(
        "{objects} objects are more than a process can have mapped: a smaller --dataset, or a \
         larger --object"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::http::{Settings, plan};
    use crate::plan::Cpus;

    #[test]
    fn what_is_too_many_is_named_with_a_way_out() {
        let settings = Settings {
            object_bytes: vec![64],
            dataset_bytes: vec![64 << 20],
            ..Settings::default()
        };
        let cpus = Cpus { allowed: vec![0], sharing_l2: None };
        let plan = plan(&settings, &cpus).unwrap();
        match allow_files(&plan) {
            Err(Failure::Limit(why)) => assert!(why.contains("--object"), "{why}"),
            other => panic!("{other:?}"),
        }
    }
}
