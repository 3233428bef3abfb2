//! What a daemon's program says, and with which code it ends.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use tracing::level_filters::LevelFilter;

use crate::options::with_file;

pub const USAGE: u8 = 2;

#[derive(Debug, Clone, Copy)]
pub struct Program(&'static str);

impl Program {
    /// A reader that is gone ends what prints, as it ends any program; a server's signals say else.
    pub fn begin(name: &'static str) -> Program {
        // SAFETY: the default action runs no code of ours.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        Program(name)
    }

    /// What the command line asks for; or the code to end with, where it is wrong or asked for words
    /// alone.
    pub fn settings<S: clap::Parser>(self) -> Result<S, ExitCode> {
        let words = with_file(std::env::args_os().collect());
        let words = words.map_err(|why| self.fail(USAGE, why))?;
        S::try_parse_from(words).map_err(|error| {
            if !error.use_stderr() {
                return self.print(error.render());
            }
            let _ = error.print();
            ExitCode::from(USAGE)
        })
    }

    fn print(self, text: impl Display) -> ExitCode {
        let mut out = io::stdout().lock();
        match write!(out, "{text}").and_then(|()| out.flush()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => self.fail(1, format_args!("cannot write to standard output: {error}")),
        }
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
