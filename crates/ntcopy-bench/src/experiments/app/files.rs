//! Values as files, for a program that serves files.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command;
use super::connection::{Connection, buffer, fill};
use super::plan::{App, AppMode, Plan};
use super::wire::path;
use crate::experiments::http::run::link_tree;
use crate::experiments::turns::program::{Output, Program};
use crate::run::{Failure, Stop, allow_files};

/// Descriptors beside those of values and connections.
const OTHER_FILES: u64 = 512;
/// The mappings that a process has, about; storaged has one for each value.
const MOST_MAPPED: u64 = 60_000;

/// Lets a program have every value open: it inherits what this process may have.
pub fn allow_open(plan: &Plan) -> Result<(), Failure> {
    let files = plan.most_values();
    if plan.app == App::Storaged && files > MOST_MAPPED {
        return Err(Failure::Limit(format!(
            "{files} values are more than a process can have mapped: a smaller --dataset, or a \
             larger --large"
        )));
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
        match plan.app {
            App::Storaged => put_all(plan, is_chunked, &made, (patience, stop))?,
            _ => write_all(plan, is_chunked, &made, stop)?,
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

/// Stores every value by way of a storaged, as anybody would.
fn put_all(
    plan: &Plan,
    is_chunked: bool,
    made: &Path,
    (patience, stop): (Duration, &Stop),
) -> Result<(), Failure> {
    let at = made.with_extension("sock");
    let words = command::storaged(plan, AppMode::Copy, &at, made);
    let mut program = Program::start(&words, &[], Output::Kept)?;
    program.is_ready(None, patience, stop)?;
    let mut connection = Connection::open(plan.app, &at, patience)?;
    let mut buffer = buffer();
    for value in plan.data.all(is_chunked) {
        stop.check()?;
        connection.set(&value, &mut buffer)?;
    }
    drop(connection);
    program.goodbye()
}

/// Writes every value as a plain file.
fn write_all(plan: &Plan, is_chunked: bool, made: &Path, stop: &Stop) -> Result<(), Failure> {
    let failed = || Failure::io("cannot write the values");
    let mut buffer = buffer();
    for value in plan.data.all(is_chunked) {
        stop.check()?;
        let name = made.join(&path(&value)[1..]);
        if let Some(folder) = name.parent() {
            fs::create_dir_all(folder).map_err(failed())?;
        }
        let mut file = File::create(&name).map_err(failed())?;
        fill(&value, &mut buffer, |bytes| file.write_all(bytes).map_err(failed()))?;
    }
    Ok(())
}
