//! Reading the settings, once, and keeping what was wrong with them.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
#[cfg(feature = "profile")]
use std::path::PathBuf;

use once_cell::race::OnceBox;

use super::env::{BadVariable, Overrides};
use crate::policy::Policy;
#[cfg(feature = "profile")]
use crate::profile::{self, ProfileError};

/// Where a policy comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// CPUID: this machine has not been measured.
    Cpuid,
    /// A profile of this machine.
    #[cfg(feature = "profile")]
    Profile(PathBuf),
}

/// What the library goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The policy, overrides included.
    pub policy: Policy,
    /// Where it comes from, overrides apart.
    pub origin: Origin,
    /// What the environment overrides.
    pub overrides: Overrides,
}

/// Something that was set and can't be followed.
#[derive(Debug)]
#[non_exhaustive]
pub enum SettingsError {
    /// A variable of the environment.
    Variable(BadVariable),
    /// The profile.
    #[cfg(feature = "profile")]
    Profile(ProfileError),
}

impl fmt::Display for SettingsError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Variable(bad) => bad.fmt(out),
            #[cfg(feature = "profile")]
            SettingsError::Profile(error) => error.fmt(out),
        }
    }
}

impl Error for SettingsError {}

struct Read {
    settings: Settings,
    error: Option<SettingsError>,
}

pub(crate) type InUse = &'static Policy;

/// What was read first. Threads that come at once each read, and go by the first: none waits for
/// another, which a child of a fork doesn't have, and which a signal handler has interrupted.
static READ: OnceBox<Read> = OnceBox::new();

/// Reads the settings, if nothing has yet, and says whether all of them can be followed.
///
/// They are read once in the life of a process: from `NTCOPY_ISA`, `NTCOPY_THRESHOLD` and `NTCOPY_TURNS`, from the
/// profile of this machine if there is one ([`profile::find`]), and from CPUID. A program that
/// wants to know of a mistake calls this first, and reports it. In one that doesn't, the first copy
/// reads them, and a mistake is said once on the standard error, since nothing else could say it.
///
/// # Errors
///
/// A variable with a value that means nothing here, or a profile that can't be read, is no profile
/// or is another machine's. What is wrong is left out, all else is followed, and every later call
/// answers the same.
pub fn init() -> Result<&'static Settings, &'static SettingsError> {
    match &get().error {
        None => Ok(Settings::current()),
        Some(error) => Err(error),
    }
}

impl Settings {
    /// What the library goes by in this process, mistakes left out. [`init`] tells of those.
    pub fn current() -> &'static Settings {
        &get().settings
    }
}

/// The policy of this process.
#[inline]
pub(super) fn policy() -> InUse {
    match READ.get() {
        Some(read) => &read.settings.policy,
        None => first_use(),
    }
}

#[cold]
fn first_use() -> &'static Policy {
    let is_first = READ.get().is_none() && READ.set(Box::new(read())).is_ok();
    let read = get();
    if let (true, Some(error)) = (is_first, &read.error) {
        let line = format!("ntcopy: {error}; going on without it\n");
        // Not by the standard library's stream, which has a lock. A line that can't be written
        // changes nothing.
        let _ = rustix::io::write(rustix::stdio::stderr(), line.as_bytes());
    }
    &read.settings.policy
}

fn get() -> &'static Read {
    let read = READ.get_or_init(|| Box::new(read()));
    super::install(&read.settings.policy);
    read
}

/// The environment, except in a program that was given more rights than who started it: there it
/// is a stranger's.
fn variable(name: &str) -> Option<OsString> {
    // SAFETY: the function has no preconditions; an unknown entry is answered with 0.
    let is_privileged = unsafe { ::libc::getauxval(::libc::AT_SECURE) } != 0;
    if is_privileged { None } else { std::env::var_os(name) }
}

/// What was measured on this machine, if it was.
#[cfg(feature = "profile")]
fn measured() -> Result<Option<(Policy, Origin)>, SettingsError> {
    let found = profile::find(variable).map_err(SettingsError::Profile)?;
    Ok(found.map(|found| (found.profile.policy, Origin::Profile(found.path))))
}

#[cfg(not(feature = "profile"))]
fn measured() -> Result<Option<(Policy, Origin)>, SettingsError> {
    Ok(None)
}

fn read() -> Read {
    let (overrides, bad) = Overrides::read(variable);
    let mut error = bad.map(SettingsError::Variable);
    let measured = measured().unwrap_or_else(|wrong| {
        error.get_or_insert(wrong);
        None
    });
    let (policy, origin) = measured.unwrap_or_else(|| (Policy::for_cpu(), Origin::Cpuid));
    let policy = overrides.apply(policy);
    Read { settings: Settings { policy, origin, overrides }, error }
}
