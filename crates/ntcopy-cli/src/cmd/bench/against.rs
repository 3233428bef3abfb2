//! `--against`: two kernels, boot by boot.

use std::ffi::OsString;
use std::fmt::Display;
use std::str::FromStr;

use ntcopy_bench::guest::against::{self, Against, AgainstError};
use ntcopy_bench::guest::{GuestError, Request};
use ntcopy_kernel::Kind;
use ntcopy_record::{Mode, Record, Sends};

use super::args::Common;
use super::boot;
use crate::cmd::usage;

/// Fewer boots of each kernel make no interval.
const LEAST_PAIRS: u32 = 5;

/// What an experiment takes that can compare two kernels.
#[derive(clap::Args)]
pub struct AgainstArgs {
    /// Boot two kernels in turns, and compare this one: with plain sends of one without the patches
    /// (stock); by each of --modes with one that has the patches in FOLDER, as make series writes
    /// them; or ntcopy.ko with the patches (module)
    #[arg(long, value_name = "stock|module|FOLDER")]
    against: Option<Against>,
}

impl AgainstArgs {
    pub fn kernel(&self) -> Option<&Against> {
        self.against.as_ref()
    }

    /// What is measured: of two kernels what `one_boot` makes of it for a boot of each, briefly.
    pub fn settings<S: Clone, M: Clone + FromStr>(
        &self,
        asked: &S,
        modes: &[M],
        one_boot: impl Fn(S, Vec<M>, bool) -> S,
    ) -> S {
        match (self.modes(modes), &self.against) {
            (Some(modes), Some(against)) => {
                one_boot(asked.clone(), modes, *against == Against::Module)
            }
            _ => asked.clone(),
        }
    }

    /// What a boot measures of the modes that were named; none where no kernels are compared.
    fn modes<M: Clone + FromStr>(&self, asked: &[M]) -> Option<Vec<M>> {
        self.against.as_ref()?;
        let default = || Against::MODES.iter().filter_map(|mode| mode.as_str().parse().ok());
        Some(if asked.is_empty() { default().collect() } else { asked.to_vec() })
    }

    /// The boots of two kernels, if any are asked for: so many of each without `--pairs`.
    pub fn boots<'a, M>(
        &'a self,
        common: &'a Common,
        asked: &[M],
        pairs: u32,
    ) -> Option<KernelPair<'a>>
    where
        M: Clone + Display + FromStr,
    {
        let names = |modes: &[M]| modes.iter().map(M::to_string).collect();
        Some(KernelPair {
            common,
            against: self.against.as_ref()?,
            asked: names(asked),
            modes: names(&self.modes(asked)?),
            pairs,
            settled: |_| Vec::new(),
        })
    }
}

/// Two kernels that are booted in turns.
pub struct KernelPair<'a> {
    common: &'a Common,
    against: &'a Against,
    /// Modes that were named.
    asked: Vec<String>,
    /// Modes that are compared.
    modes: Vec<String>,
    /// Boots of each if `--pairs` does not say.
    pairs: u32,
    /// Arguments of all boots after the first, by the first one's record: what it found out, and the
    /// others have to keep to.
    settled: fn(&Record) -> Vec<OsString>,
}

impl KernelPair<'_> {
    /// With arguments of all boots after the first, by the first one's record.
    pub fn settling(self, settled: fn(&Record) -> Vec<OsString>) -> Self {
        Self { settled, ..self }
    }

    fn pairs(&self) -> u32 {
        self.common.extent.pairs.unwrap_or(self.pairs)
    }

    /// Whether the question is one.
    pub fn check(&self) -> anyhow::Result<()> {
        let is_known = |mode: &String| {
            let sends = Mode::named(mode).sends;
            matches!(sends, Sends::Plain | Sends::Hinted | Sends::CopiesNothing)
        };
        let pairs = self.pairs();
        let unknown = self.asked.iter().find(|mode| !is_known(mode));
        let why = match self.against {
            Against::Stock if unknown.is_some() => {
                let mode = unknown.map(String::as_str).unwrap_or_default();
                let takes = "plain, hinted, sendfile of http and vmsplice of unix";
                format!("--modes {mode}: --against stock is for {takes}")
            }
            _ if self.common.place.kernel == "host" => {
                "--against boots two kernels: say --kernel um".to_owned()
            }
            _ if pairs < LEAST_PAIRS => {
                format!("--pairs {pairs}: an interval needs at least {LEAST_PAIRS} pairs")
            }
            against => match against.check() {
                Ok(()) => return Ok(()),
                Err(why) => format!("--against {why}"),
            },
        };
        Err(usage(why))
    }

    pub fn check_kernel(kernel: Kind) -> anyhow::Result<()> {
        if kernel.has_series() {
            return Ok(());
        }
        Err(usage(format!("{kernel} has no patches to compare anything with: say --kernel um")))
    }

    /// Boots both kernels in turns: the exit code of that, and the signal that ended it.
    pub fn measured(&self, request: &Request) -> anyhow::Result<(u8, Option<i32>)> {
        let modes: Vec<&str> = self.modes.iter().map(String::as_str).collect();
        match against::measure(request, self.against, &modes, self.pairs(), self.settled) {
            Ok(complaints) => Ok((boot::complained(0, &complaints), None)),
            Err(AgainstError::Guest(GuestError::Interrupted(signal))) => Ok((1, Some(signal))),
            Err(AgainstError::Guest(error)) => Ok((boot::failed(error), None)),
            Err(AgainstError::NothingMeasured(code)) => Ok((code, None)),
            Err(error) => Err(error.into()),
        }
    }
}
