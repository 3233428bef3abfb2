//! `ntcopy survey` in a program that is built without the feature `survey`.

use std::process::ExitCode;

use super::not_available;

const HELP: &str = "\
ntcopy survey runs the same experiments on every machine of a fleet, keeps their records in a SQLite \
file, and says what the CPU models gain.

This ntcopy was built without surveys and their databases. `make program` builds one with them, and \
the Debian package has them.";

/// Arguments.
#[derive(clap::Args)]
#[command(
    about = "Measure a fleet, by its own scheduler; not in this ntcopy: `make program` builds it",
    after_help = HELP
)]
pub struct Args {
    /// Whatever was asked for
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    words: Vec<String>,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let words = [vec!["survey".to_owned()], args.words].concat().join(" ");
    Err(not_available(format!(
        "{words}: this ntcopy was built without surveys and their databases; `make program` builds \
         one with them, and the Debian package has them"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_not_available_and_how_to_get_it_is_said() {
        let error = run(Args { words: vec!["list".to_owned()] }).unwrap_err();
        assert!(error.to_string().contains("survey list: ") && HELP.contains("`make program`"));
        assert_eq!(super::super::fail(&error), ExitCode::from(super::super::NOT_AVAILABLE));
    }
}
