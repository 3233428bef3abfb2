//! One module a verb. Each has `Args`, what clap parses, and `run`. What they share:
//! [`help`], [`sources`].

pub mod advise;
pub mod bench;
pub mod ddio;
pub mod footprint;
pub mod help;
mod hinted;
pub mod kernel;
pub mod module;
pub mod probe;
pub mod report;
pub mod run;
pub mod set;
mod sources;
pub mod stat;
#[cfg(feature = "survey")]
pub mod survey;
pub mod r#try;
pub mod unix_nt_bench;

use std::fmt::Display;
use std::process::ExitCode;

use ntcopy_bench::run::Failure;
use ntcopy_kernel::module::{Status, Sysroot};

/// Done, but something could not be done here; the reason was printed.
pub const NOT_AVAILABLE: u8 = 3;
pub const WRONG_BYTE: u8 = 4;
/// The user's own bar is neither reached nor missed for sure.
pub const UNRESOLVED: u8 = 5;
/// The user's own bar is missed.
pub const NOT_REACHED: u8 = 6;
/// Some of several was done, and some failed; which, was printed.
#[cfg(feature = "survey")]
pub const PARTIAL: u8 = 5;

/// How the program ends where it is no failure, and why; without words they were said already.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{why}")]
pub struct Ended {
    pub code: u8,
    pub why: String,
}

/// What cannot be asked for.
pub fn usage(why: impl Display) -> anyhow::Error {
    Ended { code: 2, why: why.to_string() }.into()
}

/// What cannot be done here.
pub fn not_available(why: impl Display) -> anyhow::Error {
    Ended { code: NOT_AVAILABLE, why: format!("not available here: {why}") }.into()
}

/// What a signal ended.
pub fn signalled(signal: i32) -> anyhow::Error {
    Ended { code: signal_code(signal), why: "stopped".to_owned() }.into()
}

/// What the module can do for a kernel that does not know the flag.
pub fn module_or_not() -> &'static str {
    match Status::gather(&Sysroot("/".into()), None) {
        Ok(status) if !status.takes_modules => "this kernel takes no module",
        _ => "the module brings it (ntcopy module status)",
    }
}

/// The exit code of a program that a signal ended, as shells have it.
pub fn signal_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Why nothing was measured.
pub fn unmeasured(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Limit(why) => not_available(why),
        Failure::Stopped(signal) => signalled(signal),
        Failure::WrongByte(_) => Ended { code: WRONG_BYTE, why: failure.to_string() }.into(),
        failure => failure.into(),
    }
}

/// Says on standard error what went wrong, with its causes, and gives the exit code.
pub fn fail(error: &anyhow::Error) -> ExitCode {
    ExitCode::from(failed(error))
}

/// The same, for a process that this one has started.
pub fn failed(error: &anyhow::Error) -> u8 {
    let ended = error.downcast_ref::<Ended>();
    if ended.is_none_or(|ended| !ended.why.is_empty()) {
        eprintln!("ntcopy: {error:#}");
    }
    let of_kernel = || error.downcast_ref().map(ntcopy_kernel::Error::exit_code);
    ended.map(|ended| ended.code).or_else(of_kernel).unwrap_or(1)
}
