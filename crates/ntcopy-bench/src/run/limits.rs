//! The limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::Failure;

/// Lets this process, and what it starts, have so many files open, and gives how many it may have.
/// `or` is what to do where that is not allowed.
pub fn allow_files(needed: u64, or: &str) -> Result<u64, Failure> {
    let limit = getrlimit(Resource::Nofile);
    match (limit.current, limit.maximum) {
        (Some(current), _) if current >= needed => return Ok(current),
        (None, _) => return Ok(needed),
        (_, Some(most)) if most < needed => {
            return Err(Failure::Limit(format!(
                "{needed} open files are needed, and {most} are allowed: raise the limit (ulimit \
                 -Hn), or use {or}"
            )));
        }
        _ => {}
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum })
        .map_err(Failure::os("cannot raise the limit of open files"))?;
    Ok(needed)
}
