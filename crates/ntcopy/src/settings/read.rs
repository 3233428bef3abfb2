//! Reading the settings, once, and keeping what was wrong with them.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::OnceLock;

use super::env::{BadVariable, Overrides};
use crate::policy::Policy;
use crate::profile::{self, ProfileError};

/// Where a policy comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// CPUID: this machine has not been measured.
    Cpuid,
    /// A profile of this machine.
    Profile(PathBuf),
}

/// What the library goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The policy, overrides included.
    pub policy: Policy,
    /// Where it comes from, overrides apart.
    pub origin: Origin,
    /// What the environment overrides.
    pub overrides: Overrides,
}

/// Something that was set and can't be followed.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// A variable of the environment.
    #[error(transparent)]
    Variable(#[from] BadVariable),
    /// The profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

struct Read {
    settings: Settings,
    error: Option<SettingsError>,
}

static READ: OnceLock<Read> = OnceLock::new();

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
    let read = READ.get_or_init(read);
    match &read.error {
        None => Ok(&read.settings),
        Some(error) => Err(error),
    }
}

impl Settings {
    /// What the library goes by in this process, mistakes left out. [`init`] tells of those.
    pub fn current() -> &'static Settings {
        &READ.get_or_init(read).settings
    }
}

/// The policy of this process.
#[inline]
pub(super) fn policy() -> &'static Policy {
    match READ.get() {
        Some(read) => &read.settings.policy,
        None => first_use(),
    }
}

#[cold]
fn first_use() -> &'static Policy {
    let mut is_first = false;
    let read = READ.get_or_init(|| {
        is_first = true;
        read()
    });
    if let (true, Some(error)) = (is_first, &read.error) {
        // It is not eprintln!, which panics where standard error is closed.
        let _ = writeln!(io::stderr(), "ntcopy: {error}; going on without it");
    }
    &read.settings.policy
}

/// The environment, except in a program that was given more rights than who started it: there it
/// is a stranger's.
fn variable(name: &str) -> Option<OsString> {
    // SAFETY: the function has no preconditions; an unknown entry is answered with 0.
    let is_privileged = unsafe { ::libc::getauxval(::libc::AT_SECURE) } != 0;
    if is_privileged { None } else { std::env::var_os(name) }
}

fn read() -> Read {
    let (overrides, bad) = Overrides::read(variable);
    let mut error = bad.map(SettingsError::Variable);
    let (policy, origin) = match profile::find(variable) {
        Ok(Some(found)) => (found.profile.policy, Origin::Profile(found.path)),
        Ok(None) => (Policy::for_cpu(), Origin::Cpuid),
        Err(wrong) => {
            error.get_or_insert(SettingsError::Profile(wrong));
            (Policy::for_cpu(), Origin::Cpuid)
        }
    };
    let policy = overrides.apply(policy);
    super::install(&policy);
    Read { settings: Settings { policy, origin, overrides }, error }
}
