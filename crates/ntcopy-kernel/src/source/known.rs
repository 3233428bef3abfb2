//! What the system's own apt knows of a package, without asking anybody: its lists as they are.

use std::process::Command;

use super::package::{parse_show, sorted};
use super::wanted::{Package, Wanted};
use crate::error::{Error, Result};
use crate::interrupt::Interrupts;
use crate::process;

/// The newest of the packages that apt's lists have; nothing where they have none, or where there
/// is no apt.
pub(crate) fn newest(wanted: Wanted, interrupts: &Interrupts) -> Result<Option<Package>> {
    let Some(names) = ask(&["pkgnames", wanted.prefix()], interrupts)? else { return Ok(None) };
    let mut arguments = vec!["show"];
    arguments.extend(names.lines().filter(|name| wanted.has(name)));
    if arguments.len() == 1 {
        return Ok(None);
    }
    let shown = ask(&arguments, interrupts)?.unwrap_or_default();
    Ok(sorted(parse_show(&shown, wanted.architecture())).into_iter().next())
}

/// What `apt-cache` says; nothing where it cannot.
fn ask(arguments: &[&str], interrupts: &Interrupts) -> Result<Option<String>> {
    let mut command = Command::new("apt-cache");
    command.args(arguments).env("LC_ALL", "C");
    match process::output(&mut command, interrupts) {
        Ok(text) => Ok(Some(text)),
        Err(Error::Interrupted(signal)) => Err(Error::Interrupted(signal)),
        Err(_) => Ok(None),
    }
}
