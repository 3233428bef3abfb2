//! One module a verb. Each has `Args`, what clap parses, and `run`. What they share:
//! [`colour`], [`help`], [`records`], [`sources`].

pub mod advise;
pub mod bench;
pub mod ddio;
pub mod footprint;
pub mod help;
pub mod kernel;
pub mod module;
pub mod probe;
pub mod records;
pub mod report;
pub mod run;
mod sources;
pub mod stat;
#[cfg(feature = "survey")]
pub mod survey;
pub mod r#try;
pub mod unix_nt_bench;
#[cfg(any(test, not(feature = "survey")))]
pub mod without_survey;

#[cfg(not(feature = "survey"))]
pub use without_survey as survey;

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
