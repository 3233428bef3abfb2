//! `--against`: two kernels, boot by boot.

use std::ffi::OsString;
use std::process::ExitCode;

use ntcopy_bench::experiment::Mode;
use ntcopy_bench::guest::against::{self, Against, AgainstError};
use ntcopy_bench::guest::{GuestError, Request};
use ntcopy_kernel::Kind;
use ntcopy_record::Record;

use super::args::Common;
use super::boot;

/// Fewer boots of each kernel make no interval.
const LEAST_PAIRS: u32 = 5;

/// Two kernels that are booted in turns.
pub struct KernelPair<'a> {
    /// What every experiment takes.
    pub common: &'a Common,
    /// Which two kernels.
    pub against: Against,
    /// Modes that were named.
    pub asked: Vec<&'static str>,
    /// Modes that the kernel with the patches is booted for.
    pub modes: Vec<&'static str>,
    /// Boots of each if `--pairs` does not say.
    pub pairs: u32,
    /// Arguments of all boots after the first, by the first one's record.
    pub settled: fn(&Record) -> Vec<OsString>,
}

/// For an experiment in which a boot finds nothing out that the others have to keep to.
pub fn nothing_settled(_: &Record) -> Vec<OsString> {
    Vec::new()
}

impl KernelPair<'_> {
    fn pairs(&self) -> u32 {
        self.common.extent.pairs.unwrap_or(self.pairs)
    }

    /// Says what is wrong with the question, and gives the exit code, if something is.
    pub fn refused(&self) -> Option<ExitCode> {
        let known = [Mode::Copy, Mode::Nt, Mode::Adaptive].map(Mode::as_str);
        let pairs = self.pairs();
        let why = if self.against != Against::Unpatched && !self.asked.is_empty() {
            "--modes: only --against unpatched has a choice of them".to_owned()
        } else if let Some(mode) = self.asked.iter().find(|mode| !known.contains(mode)) {
            format!("--modes {mode}: --against unpatched is for {}", known.join(", "))
        } else if self.common.kernel == "host" {
            "--against boots two kernels: say --kernel um".to_owned()
        } else if pairs < LEAST_PAIRS {
            format!("--pairs {pairs}: a 95 % interval needs at least {LEAST_PAIRS} pairs")
        } else {
            return None;
        };
        eprintln!("ntcopy: {why}");
        Some(ExitCode::from(2))
    }

    pub fn refused_kernel(kernel: Kind) -> Option<ExitCode> {
        if kernel.has_series() {
            return None;
        }
        eprintln!("ntcopy: {kernel} has no patches to compare anything with: say --kernel um");
        Some(ExitCode::from(2))
    }

    /// Boots both kernels in turns: the exit code of that, and the signal that ended it.
    pub fn measured(&self, request: &Request) -> anyhow::Result<(u8, Option<i32>)> {
        match against::measure(request, self.against, &self.modes, self.pairs(), self.settled) {
            Ok(complaints) => Ok((boot::complained(0, &complaints), None)),
            Err(AgainstError::Guest(GuestError::Interrupted(signal))) => Ok((1, Some(signal))),
            Err(AgainstError::Guest(error)) => Ok((boot::failed(error), None)),
            Err(AgainstError::NothingMeasured(code)) => Ok((code, None)),
            Err(error) => Err(error.into()),
        }
    }
}
