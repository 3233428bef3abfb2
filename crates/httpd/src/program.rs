//! How a daemon's program begins, what it logs, and with which code it ends.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use tracing::level_filters::LevelFilter;

use crate::options::with_file;

pub const USAGE: u8 = 2;

#[derive(Debug, Clone, Copy)]
pub struct Program(pub &'static str);

impl Program {
    /// What the command line asks for, with its file; or the code to end with, where the file is
    /// wrong. Where the command line is wrong or asks for words alone, the program ends with that.
    pub fn settings<S: clap::Parser>(self) -> Result<S, ExitCode> {
        let words = with_file(std::env::args_os().collect());
        words.map(S::parse_from).map_err(|why| self.fail(USAGE, why))
    }

    /// A line on standard error. Where it can't be written either, there is the code.
    pub fn fail(self, code: u8, error: impl Display) -> ExitCode {
        let _ = writeln!(io::stderr(), "{}: {error}", self.0);
        ExitCode::from(code)
    }

    /// Has what is logged go to standard error from now on.
    pub fn log(self, level: LevelFilter) {
        tracing_subscriber::fmt()
            .with_writer(io::stderr)
            .with_target(false)
            .with_max_level(level)
            // A line that can't be written is lost: saying so in the same place would end the
            // thread.
            .log_internal_errors(false)
            .init();
    }
}
