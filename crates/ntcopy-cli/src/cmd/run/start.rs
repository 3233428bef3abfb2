//! Starting the program, in our place.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context;

use super::program::Program;
use super::watcher::Watcher;
use super::{Settings, inherited};

/// The program with its arguments, and the library in its environment.
pub fn command(
    program: &Program,
    line: &[OsString],
    settings: &Settings,
    library: Option<&Path>,
) -> anyhow::Result<Command> {
    let mut command = Command::new(program.path());
    command.arg0(&line[0]).args(&line[1..]);
    if let Some(library) = library {
        command.env("LD_PRELOAD", preloads(std::env::var_os("LD_PRELOAD"), library));
        command.envs(settings.environment());
    }
    inherited::pass_on(&mut command).context("cannot see which signals are blocked")?;
    Ok(command)
}

/// The library after those that are there already: they see the program's calls as it made them,
/// and we what they make of them.
pub fn preloads(others: Option<OsString>, library: &Path) -> OsString {
    let mut all = others.unwrap_or_default();
    if !all.is_empty() {
        all.push(":");
    }
    all.push(library);
    all
}

/// Becomes the program.
pub fn instead(mut command: Command, watcher: Option<Watcher>) -> ExitCode {
    let error = command.exec();
    if let Some(watcher) = watcher {
        watcher.dismiss();
    }
    eprintln!("ntcopy: {} cannot be run: {error}", command.get_program().display());
    ExitCode::from(if error.kind() == std::io::ErrorKind::NotFound { 127 } else { 126 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_preloads_stay_and_come_first() {
        let library = Path::new("/lib/l.so");
        assert_eq!(preloads(None, library), "/lib/l.so");
        assert_eq!(preloads(Some("".into()), library), "/lib/l.so");
        assert_eq!(preloads(Some("a.so b.so".into()), library), "a.so b.so:/lib/l.so");
    }
}
