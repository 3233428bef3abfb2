//! What a daemon's program says, and with which code it ends.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use tracing::level_filters::LevelFilter;

use crate::handed::take_over;
use crate::log::{Log, say};
use crate::settings::with_files;

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
        take_over().map_err(|error| self.fail(USAGE, format_args!("{error:#}")))?;
        let words = with_files(std::env::args_os().collect(), S::command());
        let words = words.map_err(|why| self.fail(USAGE, why))?;
        S::try_parse_from(words.all).map_err(|error| {
            if !error.use_stderr() {
                return self.print(error.render());
            }
            let _ = error.print();
            for file in words.files {
                self.fail(USAGE, format_args!("with the settings of {}", file.display()));
            }
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
        say(format_args!("{}: {error}", self.0));
        ExitCode::from(code)
    }

    /// Has what is logged go to standard error from now on, for as long as what is returned is
    /// held.
    pub fn log(self, level: LevelFilter) -> Result<Log, ExitCode> {
        let begun = Log::begin(level);
        begun.map_err(|error| self.fail(1, format_args!("cannot start the log's thread: {error}")))
    }
}
