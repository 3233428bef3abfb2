//! `ntcopy bench unix --against`: two kernels, boot by boot.

use std::process::ExitCode;

use ntcopy_bench::experiment::unix;
use ntcopy_bench::guest::against::{self, Against, AgainstError};
use ntcopy_bench::guest::{self, GuestError};
use ntcopy_bench::sample::Outcome;

use super::go::{self, Asked, Prepared};

/// Fewer boots of each kernel make no interval.
const LEAST_PAIRS: u32 = 5;

/// Boots both kernels in turns, and says what the record shows.
pub fn run(asked: &Asked<'_>, against: Against) -> anyhow::Result<ExitCode> {
    if asked.common.kernel == "host" {
        eprintln!("ntcopy: --against boots two kernels: say --kernel um");
        return Ok(ExitCode::from(2));
    }
    let defaults = unix::defaults();
    let default = if asked.common.quick { defaults.quick_pairs } else { defaults.pairs };
    let pairs = asked.common.pairs.unwrap_or(default);
    if pairs < LEAST_PAIRS {
        eprintln!("ntcopy: --pairs {pairs}: a 95 % interval needs at least {LEAST_PAIRS} pairs");
        return Ok(ExitCode::from(2));
    }
    let Prepared { plan, kernel, place } = match go::prepare(asked)? {
        Ok(prepared) => prepared,
        Err(code) => return Ok(code),
    };
    if !kernel.has_series() {
        eprintln!("ntcopy: {kernel} has no patches to compare anything with: say --kernel um");
        return Ok(ExitCode::from(2));
    }
    let request = go::request(asked, kernel, &plan, &place, guest::command_line());
    let (code, stopped) = match against::measure(&request, against, pairs) {
        Ok(complaints) => (go::complained(0, &complaints), None),
        Err(AgainstError::Guest(GuestError::Interrupted(signal))) => (1, Some(signal)),
        Err(AgainstError::Guest(error)) => (go::failed(error), None),
        Err(error) => return Err(error.into()),
    };
    go::end(asked, Outcome { place, stopped }, code)
}
