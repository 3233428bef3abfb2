//! `ntcopy probe`: looks, then prints. Nothing here needs root or changes anything.

mod findings;
mod text;

use std::process::ExitCode;

/// Arguments.
#[derive(clap::Args)]
#[command(
    about = "Say what this machine, kernel and libc offer",
    long_about = "Say what this machine, kernel and libc offer: the CPU and its caches, its \
                  non-temporal instructions, when the C library uses them, whether the kernel \
                  knows MSG_NTCOPY, and which hardware counters exist. Needs no root and changes \
                  nothing.",
    after_help = "Examples:\n  ntcopy probe\n  ntcopy probe --json | jq .kernel.msg_ntcopy\n  \
                  ntcopy kernel boot -- ntcopy probe"
)]
pub struct Args {
    /// Print one JSON object instead; sizes are in bytes
    #[arg(long)]
    json: bool,
}

/// Runs it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let findings = findings::Findings::gather();
    let text = if args.json {
        let mut json = serde_json::to_string_pretty(&findings)?;
        json.push('\n');
        json
    } else {
        text::render(&findings)
    };
    super::report::print(&text)?;
    Ok(ExitCode::SUCCESS)
}
