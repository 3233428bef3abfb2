//! The profile of a machine: what `ntcopy footprint calibrate` measured, kept in a file.
//!
//! A profile belongs to one kind of machine. It carries the CPU's signature and the sizes of its
//! caches, and is refused, with a message, where they differ: a threshold that was measured
//! elsewhere is worse than none. The format is in `docs/reference/library.md`.

mod format;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::cpu::Cpu;
use crate::path::Method;
use crate::policy::{Facts, Policy};

/// The variable that names the profile to read, or is `none` for none.
pub const PROFILE_VARIABLE: &str = "NTCOPY_PROFILE";
/// More than any profile has.
const LARGEST_BYTES: u64 = 1 << 20;
/// The profile of every user of a machine, for those who have none of their own.
pub const SYSTEM_PATH: &str = "/etc/ntcopy/profile.toml";

/// What must be the same for a profile to be valid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ProfiledMachine {
    /// Vendor, family, model and stepping: [`Cpu::signature`].
    pub signature: String,
    /// The CPU's own name for itself. For people; it may differ.
    pub model_name: String,
    /// Bytes of the level-2 cache; 0 if CPUID doesn't say.
    pub l2_bytes: u64,
    /// Bytes of the level-3 cache that one CPU sees; 0 if CPUID doesn't say.
    pub l3_bytes: u64,
    /// Whether a hypervisor says that it is there.
    pub is_guest: bool,
}

impl ProfiledMachine {
    /// The machine that this program runs on.
    pub fn this() -> ProfiledMachine {
        let (cpu, facts) = (Cpu::by_cpuid(), Facts::detect());
        ProfiledMachine {
            signature: cpu.signature(),
            model_name: cpu.model_name,
            l2_bytes: facts.l2_bytes,
            l3_bytes: facts.l3_bytes,
            is_guest: facts.is_guest,
        }
    }

    /// What differs in a way that matters, the profile's first; `None` if nothing does.
    fn difference(&self, here: &ProfiledMachine) -> Option<String> {
        let sizes = |machine: &ProfiledMachine| {
            format!(
                "{} KiB of level 2, {} of level 3",
                machine.l2_bytes >> 10,
                machine.l3_bytes >> 10
            )
        };
        let guest =
            |machine: &ProfiledMachine| if machine.is_guest { "a guest" } else { "not a guest" };
        if self.signature != here.signature {
            Some(format!("{} ({}), not {}", self.signature, self.model_name, here.signature))
        } else if (self.l2_bytes, self.l3_bytes) != (here.l2_bytes, here.l3_bytes) {
            Some(format!("{}, not {}", sizes(self), sizes(here)))
        } else if self.is_guest != here.is_guest {
            Some(format!("{}, and this one is {}", guest(self), guest(here)))
        } else {
            None
        }
    }
}

/// A measured policy, and where and when it was measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// The day, `2026-11-21`.
    pub date: String,
    /// The machine.
    pub machine: ProfiledMachine,
    /// What follows from the measurement.
    pub policy: Policy,
    /// The measurement, for people: names with their unit at the end, and integers.
    pub measured: BTreeMap<String, u64>,
}

/// Why a profile can't be used or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file can't be read.
    #[error("cannot read the profile {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file can't be written.
    #[error("cannot write the profile {}: {cause}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// The file is not a profile.
    #[error("the profile {} is not understood: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Where and what.
        what: String,
    },
    /// The profile is of another kind of machine.
    #[error(
        "the profile {} is of another machine: {difference}; measure this one with: \
         ntcopy footprint calibrate",
        path.display()
    )]
    OtherMachine {
        /// The file.
        path: PathBuf,
        /// In what they differ.
        difference: String,
    },
    /// The profile asks for instructions that can't be had here.
    #[error(
        "the profile {} says {field} = \"{}\", which this CPU can't do; measure it anew with: \
         ntcopy footprint calibrate",
        path.display(), method.name()
    )]
    Unavailable {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// What it says.
        method: Method,
    },
    /// The profile takes bytes past the caches that are to stay in them.
    #[error(
        "the profile {} says {field} = \"{}\", whose stores go past the caches: temporal copies take \
         another; measure it anew with: ntcopy footprint calibrate",
        path.display(), method.name()
    )]
    Nontemporal {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// What it says.
        method: Method,
    },
    /// There is no home folder to put a profile into.
    #[error("neither XDG_CONFIG_HOME nor HOME is set: say where the profile is to go")]
    NoHome,
}

impl Profile {
    /// Reads a profile of this machine.
    ///
    /// # Errors
    ///
    /// It can't be read or understood, or is another machine's.
    pub fn read(path: &Path) -> Result<Profile, ProfileError> {
        Profile::read_for(path, ProfiledMachine::this)
    }

    /// Asks for the machine once there is a profile.
    fn read_for(
        path: &Path,
        here: impl FnOnce() -> ProfiledMachine,
    ) -> Result<Profile, ProfileError> {
        let text =
            text_of(path).map_err(|cause| ProfileError::Read { path: path.to_owned(), cause })?;
        let profile = Profile::from_toml(&text)
            .map_err(|what| ProfileError::Format { path: path.to_owned(), what })?;
        if let Some(difference) = profile.machine.difference(&here()) {
            return Err(ProfileError::OtherMachine { path: path.to_owned(), difference });
        }
        if let Some((field, method)) = profile.policy.nontemporal() {
            return Err(ProfileError::Nontemporal { path: path.to_owned(), field, method });
        }
        match profile.policy.unavailable() {
            None => Ok(profile),
            Some((field, method)) => {
                Err(ProfileError::Unavailable { path: path.to_owned(), field, method })
            }
        }
    }

    /// Writes a profile, and the folder that it is in. A reader meanwhile finds the old file or
    /// the new one, whole.
    ///
    /// # Errors
    ///
    /// Folder or file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), ProfileError> {
        let failed = |cause| ProfileError::Write { path: path.to_owned(), cause };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut aside = path.as_os_str().to_owned();
        aside.push(format!(".{}", std::process::id()));
        let done = fs::write(&aside, self.to_toml()).and_then(|()| fs::rename(&aside, path));
        done.map_err(|cause| {
            // What is left of it is of no use; that it can't be removed adds nothing to know.
            let _ = fs::remove_file(&aside);
            failed(cause)
        })
    }
}

/// The text of a regular file, which has an end and is not waited for.
fn text_of(path: &Path) -> io::Result<String> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    File::open(path)?.take(LARGEST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// Where a profile is, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// What it says.
    pub profile: Profile,
}

/// The profile that this process goes by: the first that exists of [`candidates`].
///
/// # Errors
///
/// The first that exists can't be used, or one that was named doesn't exist.
pub fn find(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<Found>, ProfileError> {
    let is_named = get(PROFILE_VARIABLE).is_some();
    for path in candidates(get) {
        match Profile::read(&path) {
            Ok(profile) => return Ok(Some(Found { path, profile })),
            Err(ProfileError::Read { cause, .. })
                if !is_named && cause.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Where a profile is looked for, given an environment: `NTCOPY_PROFILE` alone if it is set, and
/// nowhere if that is `none`; else the user's own, then [`SYSTEM_PATH`].
pub fn candidates(get: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    match get(PROFILE_VARIABLE) {
        Some(named) if named == "none" => Vec::new(),
        Some(named) => vec![named.into()],
        None => user_path(get).into_iter().chain([SYSTEM_PATH.into()]).collect(),
    }
}

/// The user's own profile: `$XDG_CONFIG_HOME/ntcopy/profile.toml`, or the same in `~/.config`. A
/// variable whose path isn't absolute counts as not set.
pub fn user_path(get: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    Some(folder?.join("ntcopy/profile.toml"))
}

#[cfg(test)]
mod tests;
