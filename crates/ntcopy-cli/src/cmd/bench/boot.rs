//! A measurement in a booted kernel: where its record goes, what its end means.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use ntcopy_bench::guest::{self, GuestError, Request};
use ntcopy_bench::sample::{self, WriteError};
use ntcopy_record::{ExperimentKind, FILE_NAME};

/// Measures in a booted kernel: the exit code of that, and the signal that ended it.
pub fn measured(request: &Request) -> (u8, Option<i32>) {
    match guest::measure(request) {
        Ok(inside) => (complained(inside.code, &inside.complaints), None),
        Err(error) => {
            let stopped =
                if let GuestError::Interrupted(signal) = error { Some(signal) } else { None };
            (failed(error), stopped)
        }
    }
}

/// Where the record goes; nothing is there yet.
pub fn record_dir(out: Option<&Path>, experiment: &ExperimentKind) -> anyhow::Result<PathBuf> {
    let new_id = || sample::new_id(experiment, &guest::command_line());
    let place = match out {
        Some(out) => out.to_path_buf(),
        None => sample::default_place(&new_id())
            .context("neither XDG_DATA_HOME nor HOME names a directory: say --out DIR")?,
    };
    let place = std::path::absolute(&place).context("--out")?;
    if place.join(FILE_NAME).exists() {
        return Err(WriteError::Exists(place.join(FILE_NAME)).into());
    }
    Ok(place)
}

/// The inside's exit code; faults of the kernel itself are printed and count as failure.
pub fn complained(code: u8, complaints: &[String]) -> u8 {
    for line in complaints {
        eprintln!("ntcopy: the kernel under test complained: {line}");
    }
    if code == 0 { u8::from(!complaints.is_empty()) } else { code }
}

/// Says why a kernel could not be built, booted or kept alive.
pub fn failed(error: GuestError) -> u8 {
    let code = error.exit_code();
    crate::cmd::fail(&error.into());
    code
}
