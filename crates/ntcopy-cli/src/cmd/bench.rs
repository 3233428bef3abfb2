//! `ntcopy bench`.

use std::process::ExitCode;

/// Arguments.
#[derive(clap::Subcommand)]
pub enum Args {
    /// Placeholder.
    Nothing,
}

/// Runs it.
pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not yet")
}
