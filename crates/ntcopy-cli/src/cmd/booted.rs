//! What `try` and `footprint` share: measuring in a booted kernel, in which this program runs itself.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy_bench::guest::{self, Needs, Request};
use ntcopy_kernel::Kind;
use ntcopy_record::ExperimentKind;
use ntcopy_record::FILE_NAME;
use serde_json::json;

use super::bench;

/// The kernel of a name, unless it is an emulator's, for the reason `why`.
pub fn kernel(name: &str, allow_not_a_timing: bool, why: &str) -> Result<Kind, ExitCode> {
    let kernel = Kind::parse(name).map_err(|error| ExitCode::from(bench::failed(error)))?;
    if kernel.is_emulated() && !allow_not_a_timing {
        let name = kernel.name();
        return Err(bench::not_available(&format!(
            "{name} runs in an emulator, {why}: --kernel um"
        )));
    }
    Ok(kernel)
}

/// What is measured in which kernel.
pub struct Asked<'a> {
    /// The kernel.
    pub kernel: Kind,
    /// The experiment.
    pub experiment: ExperimentKind,
    /// Where the record goes, if it was said.
    pub out: Option<&'a Path>,
    /// What the kernel needs.
    pub needs: Needs,
    /// What the program may write.
    pub write: &'a [PathBuf],
    /// The program and its arguments, if there is one.
    pub command: &'a [OsString],
}

/// Measures on one CPU of a booted kernel, and says what the record comes to.
pub fn run(
    asked: Asked<'_>,
    conclude: impl FnOnce(&Path, Option<i32>) -> anyhow::Result<ExitCode>,
) -> anyhow::Result<ExitCode> {
    let place = bench::record_dir(asked.out, &asked.experiment)?;
    let request = Request {
        kernel: asked.kernel,
        kernel_cpus: 1,
        host_cpus: bench::on_one_cpu()?,
        needs: asked.needs,
        place: place.clone(),
        writable: asked.write.to_vec(),
        args: inside(asked.command)?,
        command: guest::command_line(),
    };
    let (code, stopped) = bench::measured(&request);
    if !place.join(FILE_NAME).exists() {
        return Ok(stopped.map_or(ExitCode::from(code), bench::signalled));
    }
    bench::judged(&place, code, || conclude(&place, stopped))
}

/// This program's arguments for the inside: options, and the user's program as one of them, since
/// others come after.
fn inside(command: &[OsString]) -> anyhow::Result<Vec<OsString>> {
    let mut inside: Vec<OsString> = std::env::args_os().skip(1).collect();
    inside.truncate(inside.len().saturating_sub(command.len()));
    if inside.last().is_some_and(|word| word == "--") {
        inside.pop();
    }
    if !command.is_empty() {
        let words: Option<Vec<&str>> = command.iter().map(|word| word.to_str()).collect();
        let words = words.context("a word of the command is no UTF-8")?;
        inside.extend(["--words".into(), json!(words).to_string().into()]);
    }
    Ok(inside)
}

/// The user's program and its arguments, from the value of `--words`.
pub fn command_of(words: &str) -> anyhow::Result<Vec<OsString>> {
    let words: Vec<String> = serde_json::from_str(words).context("--words")?;
    Ok(words.into_iter().map(OsString::from).collect())
}
