//! One module a verb. Each has `Args`, what clap parses, and `run`. What they share: [`booted`],
//! [`colour`], [`help`], [`records`].

pub mod advise;
pub mod bench;
pub mod booted;
pub mod ddio;
pub mod footprint;
pub mod help;
pub mod kernel;
pub mod module;
pub mod probe;
pub mod records;
pub mod report;
pub mod run;
pub mod stat;
#[cfg(feature = "survey")]
pub mod survey;
pub mod r#try;
pub mod unix_nt_bench;

use std::process::ExitCode;

/// Done, but something could not be done here; the reason was printed.
pub const NOT_AVAILABLE: u8 = 3;
pub const WRONG_BYTE: u8 = 4;
/// Some of several was done, and some failed; which, was printed.
#[cfg(feature = "survey")]
pub const PARTIAL: u8 = 5;

/// Says on standard error what went wrong, with its causes, and gives the exit code.
pub fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("ntcopy: {error:#}");
    ExitCode::FAILURE
}

/// `ntcopy survey` in a program that is built without the feature `survey`.
#[cfg(not(feature = "survey"))]
pub mod survey {
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

    pub fn run(args: Args) -> anyhow::Result<ExitCode> {
        let words = [vec!["survey".to_owned()], args.words].concat().join(" ");
        Ok(not_available(&format!(
            "{words}: this ntcopy was built without surveys and their databases; `make program` \
             builds one with them, and the Debian package has them"
        )))
    }
}
