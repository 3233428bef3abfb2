//! `ntcopy survey` in a program that is built without the feature `survey`.

use std::process::ExitCode;

use super::bench::not_available;

/// Measure a fleet; not in this program.
#[derive(clap::Args)]
#[command(
    about = "Measure a fleet, by its own scheduler; not in this ntcopy: `make program` builds it",
    disable_help_flag = true
)]
pub struct Args {
    /// Whatever was asked for
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

/// Says how to get it.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let words = [vec!["survey".to_owned()], args.words].concat().join(" ");
    Ok(not_available(&format!(
        "{words}: this ntcopy was built without surveys and their databases; `make program` builds \
         one with them, and the Debian package has them"
    )))
}
