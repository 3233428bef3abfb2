//! `ntcopy report`.

use std::process::ExitCode;

/// Arguments.
#[derive(clap::Args)]
pub struct Args {}

/// Runs it.
pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet")
}
