//! The environment's overrides, for tests, measurements and emulators.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;

use crate::arch;
use crate::path::{Method, Turns};
use crate::policy::{Facts, NEVER, Policy, defaults};

/// The variable that names the one instruction set that non-temporal stores are made of.
pub const ISA_VARIABLE: &str = "NTCOPY_ISA";
/// The variable that says from how many bytes on copies and fills are non-temporal by themselves.
pub const THRESHOLD_VARIABLE: &str = "NTCOPY_THRESHOLD";

/// The variable that says which pages copies take in turn.
pub const TURNS_VARIABLE: &str = "NTCOPY_TURNS";

/// What the environment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Overrides {
    /// `NTCOPY_ISA`: the name of an instruction set in the tables of [`arch`].
    pub isa: Option<&'static str>,
    /// `NTCOPY_THRESHOLD`, in bytes; [`NEVER`] for `never`.
    pub threshold_bytes: Option<u64>,
    /// `NTCOPY_TURNS`: from one group of pages on.
    pub turns: Option<Turns>,
}

/// A variable with a value that means nothing here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadVariable {
    /// The variable's name.
    pub variable: &'static str,
    /// Its value.
    pub value: OsString,
    /// What is wrong with it, and what it may be.
    pub what: String,
}

impl fmt::Display for BadVariable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}={:?}: {}", self.variable, self.value, self.what)
    }
}

impl Error for BadVariable {}

impl Overrides {
    /// Reads the variables, with what `get` says is in the environment. An empty value is an
    /// error, as any other that isn't understood.
    pub(super) fn read(get: impl Fn(&str) -> Option<OsString>) -> (Overrides, Option<BadVariable>) {
        let mut overrides = Overrides::default();
        let mut bad = None;
        let mut note = |variable, value: &OsString, what| {
            bad.get_or_insert(BadVariable { variable, value: value.clone(), what });
        };
        if let Some(value) = get(ISA_VARIABLE) {
            match isa(&value.to_string_lossy()) {
                Ok(isa) => overrides.isa = Some(isa),
                Err(what) => note(ISA_VARIABLE, &value, what),
            }
        }
        if let Some(value) = get(THRESHOLD_VARIABLE) {
            match threshold_bytes(&value.to_string_lossy()) {
                Some(bytes) => overrides.threshold_bytes = Some(bytes),
                None => {
                    let what = "expected bytes (1048576, 512KiB, 24MiB, 1GiB) or \"never\"";
                    note(THRESHOLD_VARIABLE, &value, what.to_owned());
                }
            }
        }
        if let Some(value) = get(TURNS_VARIABLE) {
            match Turns::from_name(&value.to_string_lossy()) {
                Some(turns) => overrides.turns = Some(turns),
                None => {
                    let names = Turns::ALL.map(Turns::name).join(", ");
                    note(TURNS_VARIABLE, &value, format!("expected one of {names}"));
                }
            }
        }
        (overrides, bad)
    }

    /// A policy with these overrides.
    pub(super) fn apply(&self, mut policy: Policy) -> Policy {
        match self.isa {
            None => {}
            Some("libc") => policy = Policy::LIBC,
            Some("rep") => {
                policy = Policy { rep_movsb_from_bytes: 0, rep_stosb_from_bytes: 0, ..Policy::LIBC }
            }
            Some(isa) => force(&mut policy, isa),
        }
        if let Some(turns) = self.turns {
            (policy.turns, policy.turns_from_bytes) = (turns, turns.group_bytes());
        }
        if let Some(bytes) = self.threshold_bytes {
            policy.copy_nontemporal_from_bytes = bytes;
            policy.fill_nontemporal_from_bytes = bytes;
        }
        policy
    }
}

/// Makes everything that is non-temporal of one instruction set, where that has it: CLZERO copies
/// nothing, and leaves copies as they were.
fn force(policy: &mut Policy, isa: &str) {
    // A temporal copy is no wider than what was asked for.
    for method in [
        &mut policy.nontemporal_source_method,
        &mut policy.temporal_method,
        &mut policy.insisted_copy_method,
    ] {
        *method = match (*method, isa) {
            (Method::Avx512, "avx2") => Method::Avx2,
            (Method::Avx512 | Method::Avx2, isa) if !["avx2", "avx512"].contains(&isa) => {
                Method::Sse2
            }
            (method, _) => method,
        };
    }
    let copies = arch::COPY_BACKENDS.iter().filter(|backend| backend.isa == isa);
    for backend in copies.filter(|backend| backend.method.is_nontemporal()) {
        policy.copy_method = backend.method;
        policy.turns = defaults::turns(Facts::detect().vendor, backend.method);
    }
    for backend in arch::FILL_BACKENDS.iter().filter(|backend| backend.isa == isa) {
        policy.zero_method = backend.method;
        if !backend.zero_only {
            policy.fill_method = backend.method;
        }
    }
}

fn isa(value: &str) -> Result<&'static str, String> {
    let copies = arch::COPY_BACKENDS.iter().map(|row| (row.isa, row.is_available()));
    let fills = arch::FILL_BACKENDS.iter().map(|row| (row.isa, row.is_available()));
    let mut known: Vec<(&str, bool)> = copies.chain(fills).collect();
    known.sort_unstable();
    known.dedup();
    let names = |of: &[(&'static str, bool)]| {
        of.iter().filter(|row| row.1).map(|row| row.0).collect::<Vec<_>>().join(", ")
    };
    match known.iter().find(|row| row.0 == value) {
        Some((name, true)) => Ok(name),
        Some(_) => Err(format!("this CPU doesn't have it; it has {}", names(&known))),
        None => Err(format!("no such instruction set; this CPU has {}", names(&known))),
    }
}

/// `1048576`, `512KiB`, `24MiB`, `1GiB`, `never`.
pub(crate) fn threshold_bytes(value: &str) -> Option<u64> {
    if value == "never" {
        return Some(NEVER);
    }
    let digits = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let shift = match &value[digits.len()..] {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        _ => return None,
    };
    // Not parse() alone, which takes a plus sign.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
#[path = "env_tests.rs"]
mod tests;
