//! When the C library that this program runs on goes non-temporal by itself, and what size of
//! cache it believes in when it decides that.
//!
//! glibc fixes its thresholds when a program starts, from CPUID and from `GLIBC_TUNABLES`; its
//! dynamic loader prints them with `--list-tunables` (2.33 and later). Older releases read AMD's
//! level-3 size from a leaf that describes the whole socket, and so stay temporal for an order
//! of magnitude too long on CPUs of many complexes; [`Libc::warning`] tells.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ntcopy::cpu::Cpu;

/// The tunable that holds memcpy's threshold.
pub const MEMCPY_TUNABLE: &str = "glibc.cpu.x86_non_temporal_threshold";
/// The tunable that holds memset's threshold (glibc 2.40 and later).
pub const MEMSET_TUNABLE: &str = "glibc.cpu.x86_memset_non_temporal_threshold";

/// What a C library is and believes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Libc {
    /// `glibc`, `musl` or the target's own name for it.
    pub name: String,
    /// Its version, `2.36`; `unknown` where it does not tell.
    pub version: String,
    /// Bytes from which memcpy uses non-temporal stores, if known.
    pub memcpy_nt_threshold_bytes: Option<u64>,
    /// Bytes from which memset uses non-temporal stores, if known.
    pub memset_nt_threshold_bytes: Option<u64>,
    /// How the thresholds are known, or why they are not.
    pub source: &'static str,
    /// Whether `GLIBC_TUNABLES` sets memcpy's threshold, so that it is a user's choice.
    pub memcpy_threshold_chosen: bool,
    /// Bytes of level-3 cache that it believes in: `sysconf(_SC_LEVEL3_CACHE_SIZE)`.
    pub l3_believed_bytes: Option<u64>,
}

/// A belief that is far from what CPUID's modern leaf says, or that nothing speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// What is off, in a sentence.
    pub what: String,
    /// The environment variable that corrects it, where the right number is known:
    /// `GLIBC_TUNABLES=…`.
    pub fix: Option<String>,
}

impl Libc {
    /// Asks the C library of this process, and its dynamic loader, which runs once for it.
    pub fn detect() -> Libc {
        let environment = std::env::var("GLIBC_TUNABLES").unwrap_or_default();
        let mut libc = Libc {
            name: name().to_owned(),
            version: version(),
            memcpy_nt_threshold_bytes: None,
            memset_nt_threshold_bytes: None,
            source: "this C library does not tell",
            memcpy_threshold_chosen: sets_tunable(&environment, MEMCPY_TUNABLE),
            l3_believed_bytes: believed_l3(),
        };
        if libc.name != "glibc" {
            return libc;
        }
        let Some(printed) = printed_tunables() else {
            libc.source = "the dynamic loader has no --list-tunables (glibc 2.33 and later do)";
            return libc;
        };
        libc.memcpy_nt_threshold_bytes = tunable_value(&printed, MEMCPY_TUNABLE);
        libc.memset_nt_threshold_bytes = tunable_value(&printed, MEMSET_TUNABLE);
        libc.source = "the dynamic loader's --list-tunables";
        libc
    }

    /// Name and version: `glibc 2.36`.
    pub fn label(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// Whether memcpy's threshold or the level-3 size behind it is far off on this CPU.
    ///
    /// The yardstick is three quarters of the level-3 cache that one CPU sees, the upper end of
    /// what glibc itself aims at. Between a sixteenth of that cache and all of it nothing is
    /// said: releases differ there by design, and by how many threads share the cache. A
    /// threshold that `GLIBC_TUNABLES` sets is a user's choice and no belief. Nor is anything said
    /// where the cache's size [is doubtful](Cpu::doubt). Where CPUID tells of no such cache, a
    /// threshold that fits hardly any server's is named.
    pub fn warning(&self, cpu: &Cpu) -> Option<Warning> {
        if self.name != "glibc" || self.memcpy_threshold_chosen || cpu.doubt().is_some() {
            return None;
        }
        let Some(l3) = cpu.l3_bytes().filter(|bytes| *bytes > 0) else {
            return self.unfounded();
        };
        let mut wrong = Vec::new();
        match self.memcpy_nt_threshold_bytes {
            Some(bytes) if bytes > l3 => wrong.push(format!(
                "its memcpy goes non-temporal only from {} on, beyond the whole cache",
                mib(bytes)
            )),
            Some(bytes) if bytes < l3 / 16 => wrong.push(format!(
                "its memcpy goes non-temporal from {} on, far below the cache's size",
                mib(bytes)
            )),
            _ => {}
        }
        match self.l3_believed_bytes {
            Some(bytes) if bytes > l3 + l3 / 2 || (bytes > 0 && bytes < l3 / 2) => {
                wrong.insert(0, format!("it believes in {} of level-3 cache", mib(bytes)));
            }
            _ => {}
        }
        if wrong.is_empty() {
            return None;
        }
        let legacy = cpu.legacy_l3_bytes.filter(|bytes| Some(*bytes) == self.l3_believed_bytes);
        let cause = match legacy {
            Some(bytes) if bytes > l3 + l3 / 2 => {
                " (legacy CPUID leaf 0x80000006: the whole socket)"
            }
            _ => "",
        };
        Some(Warning {
            what: format!(
                "{}: {}{cause}; CPUID's modern leaf says that one CPU sees {}",
                self.label(),
                wrong.join(", and "),
                mib(l3)
            ),
            fix: Some(tunable(corrected_threshold_bytes(l3))),
        })
    }

    /// What is said of a threshold where no level-3 cache is known.
    fn unfounded(&self) -> Option<Warning> {
        let threshold = self.memcpy_nt_threshold_bytes.filter(|bytes| *bytes < LEAST_FITTING_BYTES);
        threshold.map(|bytes| Warning {
            what: format!(
                "{}: its memcpy goes non-temporal from {} KiB on, and CPUID tells of no level-3 cache: \
                 if a hypervisor hides it, that is far too low; set {MEMCPY_TUNABLE} to three quarters \
                 of it",
                self.label(),
                bytes >> 10
            ),
            fix: None,
        })
    }
}

/// Three quarters of the smallest level-3 cache that a server's CPU has had for ten years.
const LEAST_FITTING_BYTES: u64 = 6 << 20;

fn tunable(bytes: u64) -> String {
    format!("GLIBC_TUNABLES={MEMCPY_TUNABLE}={bytes}")
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

/// Three quarters of the level-3 cache that a CPU sees: where a copy has surely outgrown it.
pub fn corrected_threshold_bytes(l3_bytes: u64) -> u64 {
    l3_bytes / 4 * 3
}

fn name() -> &'static str {
    match () {
        () if cfg!(target_env = "gnu") => "glibc",
        () if cfg!(target_env = "musl") => "musl",
        () => "another libc",
    }
}

#[cfg(target_env = "gnu")]
fn version() -> String {
    // SAFETY: the function has no preconditions and returns a static NUL-terminated string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

#[cfg(not(target_env = "gnu"))]
fn version() -> String {
    "unknown".to_owned()
}

#[cfg(target_env = "gnu")]
fn believed_l3() -> Option<u64> {
    // SAFETY: sysconf has no preconditions; an unknown name is answered with -1.
    let bytes = unsafe { libc::sysconf(libc::_SC_LEVEL3_CACHE_SIZE) };
    u64::try_from(bytes).ok().filter(|bytes| *bytes > 0)
}

#[cfg(not(target_env = "gnu"))]
fn believed_l3() -> Option<u64> {
    None
}

/// The dynamic loader that is mapped into this very process: another copy of glibc on the same
/// machine may believe something else.
fn loader() -> Option<PathBuf> {
    loader_in(&fs::read_to_string("/proc/self/maps").ok()?)
}

fn loader_in(maps: &str) -> Option<PathBuf> {
    maps.lines()
        .filter_map(|line| Some(Path::new(&line[line.find('/')?..])))
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("ld-") && name.contains(".so")
        })
        .map(Path::to_owned)
}

/// What the dynamic loader of this process prints when asked for `--list-tunables`; none before
/// glibc 2.33 and in other C libraries.
fn printed_tunables() -> Option<String> {
    list_tunables(&loader()?)
}

fn list_tunables(loader: &Path) -> Option<String> {
    // The environment is passed on, so that GLIBC_TUNABLES counts there as it counts here.
    let output = Command::new(loader).arg("--list-tunables").output().ok()?;
    let printed = String::from_utf8(output.stdout).ok()?;
    (output.status.success() && printed.contains("glibc.")).then_some(printed)
}

/// The value of a tunable in the output of the loader's `--list-tunables`, whose lines read
/// `glibc.cpu.x86_non_temporal_threshold: 0x7200000 (min: 0x4040, max: 0xfffffffffffffff)`.
/// Sizes are in bytes.
fn tunable_value(printed: &str, name: &str) -> Option<u64> {
    let line = printed.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    number(line.split_whitespace().next()?)
}

/// Whether the text of `GLIBC_TUNABLES` (`name=value:name=value`) sets a tunable.
fn sets_tunable(environment: &str, name: &str) -> bool {
    environment.split(':').any(|part| part.split_once('=').is_some_and(|(key, _)| key == name))
}

fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

#[cfg(test)]
mod tests;
