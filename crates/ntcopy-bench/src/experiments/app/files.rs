//! Values as files, for a program that serves files.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::plan::{App, AppMode, Plan};
use super::wire::Value;
use crate::experiments::http::run::{can_be_mapped, link_tree, store, write_files};
use crate::run::{Failure, Stop, allow_files};

/// Descriptors beside those of values and connections.
const OTHER_FILES: u64 = 512;

/// Lets a program have every value open: it inherits what this process may have.
pub fn allow_open(plan: &Plan) -> Result<(), Failure> {
    let files = plan.most_values();
    if plan.app == App::Storaged {
        can_be_mapped(files, "--large")?;
    }
    let needed = files + u64::from(plan.most_connections()) + OTHER_FILES;
    allow_files(needed, "fewer --connections or a smaller --dataset").map(drop)
}

/// The folder that a server serves. The files are made once: all modes serve the same pages of
/// memory, so that none has luckier ones. storaged writes beside them, and gets links to them.
pub fn served(
    plan: &Plan,
    mode: AppMode,
    at: &Path,
    (patience, stop): (Duration, &Stop),
) -> Result<PathBuf, Failure> {
    let folder = at.parent().unwrap_or(at);
    let is_chunked = mode == AppMode::Chunked;
    let made = folder.join(if is_chunked { "pieces" } else { "values" });
    if !made.exists() {
        let values = plan.data.all(is_chunked).map(|value| Value::object(&value));
        match plan.app {
            App::Storaged => store(values, &made, (patience, stop))?,
            _ => write_files(values, &made, stop)?,
        }
    }
    if plan.app != App::Storaged {
        return Ok(made);
    }
    let own = at.with_extension("data");
    if own.exists() {
        fs::remove_dir_all(&own).map_err(Failure::io("cannot remove old links"))?;
    }
    link_tree(&made, &own).map_err(Failure::io("cannot link the values"))?;
    Ok(own)
}
