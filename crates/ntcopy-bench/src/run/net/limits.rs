//! What the system has to allow.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::run::Failure;

/// Descriptors beside the connections: lines, epolls, namespaces, the record.
const OTHER_FILES: u64 = 128;

/// Raises this process's limit of open files, which the servers inherit, where it is too low for
/// `connections` connections in each of `modes` modes.
///
/// # Errors
///
/// [`Failure::Limit`]: it may not be what is needed.
pub fn allow_files(connections: u32, modes: usize) -> Result<(), Failure> {
    // While they are made, both ends of a mode's connections are here.
    let needed = u64::from(connections) * (modes as u64 + 1) + OTHER_FILES;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    if let Some(most) = limit.maximum.filter(|most| *most < needed) {
        return Err(Failure::Limit(format!(
            "{needed} open files are needed, and {most} are allowed: raise the limit (ulimit -Hn), \
             or use fewer --connections"
        )));
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(Failure::os("cannot raise the limit of open files"))
}
