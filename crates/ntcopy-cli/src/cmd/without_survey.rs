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
    use clap::error::ErrorKind;
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    #[test]
    fn help_says_what_a_survey_is_and_how_to_get_one_and_the_rest_is_not_available() {
        let parse = |words: &[&str]| {
            let command = Args::augment_args(Command::new("survey"));
            command.try_get_matches_from([&["survey"], words].concat())
        };
        let help = parse(&["--help"]).unwrap_err();
        assert_eq!(help.kind(), ErrorKind::DisplayHelp);
        let text = help.to_string();
        assert!(
            text.contains("every machine of a fleet") && text.contains("`make program`"),
            "{text}"
        );
        let args = Args::from_arg_matches(&parse(&["run", "--on", "ssh"]).unwrap()).unwrap();
        let ended = super::super::fail(&run(args).unwrap_err());
        assert_eq!(ended, ExitCode::from(super::super::NOT_AVAILABLE));
    }
}
