//! Measuring a plan: verify, warm up, interleave, write each sample as it is taken.
//!
//! Only this stage writes records.

pub mod bulk;
mod cell;
pub mod fork;
pub mod http;
pub mod net;
pub mod pingpong;
mod progress;
pub mod retention;
mod write;

use std::path::{Path, PathBuf};

use ntcopy_record::{End, FORMAT, Header, Line, Machine, Unavailable};
use sha2::{Digest, Sha256};

use crate::experiment::Mode;
use crate::plan::Plan;
use crate::run::{self, Failure, RigOptions, Stop, unix_now_ns};

pub use progress::Progress;
pub use write::{WriteError, Writer};

/// How a plan is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// The record's directory; none: [`default_place`].
    pub out: Option<PathBuf>,
    /// The command line to put into the record.
    pub command: Vec<String>,
    /// Why the results will not be timings, if so.
    pub not_a_timing: Option<String>,
    /// How the processes are set up.
    pub rig: RigOptions,
}

/// What became of the measurement; the figures are in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The record's directory.
    pub place: PathBuf,
    /// The signal that cut it short, if one did.
    pub stopped: Option<i32>,
}

/// Why there is no record, or only a part of one.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The record could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The measurement could not begin.
    #[error(transparent)]
    Start(Failure),
}

/// Measures the plan and writes the record.
///
/// What goes wrong in a cell becomes an error row and the rest is measured. A
/// signal ends the measurement early; what was measured stays.
///
/// # Errors
///
/// When nothing could be begun, or the record could not be written.
pub fn measure(
    plan: &Plan,
    machine: Machine,
    options: &Options,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Outcome, MeasureError> {
    run::preflight(plan).map_err(MeasureError::Start)?;
    let (modes, missing) = available(&plan.modes).map_err(MeasureError::Start)?;
    let header = header(plan, options);
    let place = match &options.out {
        Some(out) => out.clone(),
        None => default_place(&header.id).ok_or(WriteError::NoHome)?,
    };
    let mut writer = Writer::create(&place)?;
    writer.line(&Line::Header(header))?;
    writer.line(&Line::Machine(machine))?;
    for line in missing {
        writer.line(&Line::Unavailable(line))?;
    }
    let plan = Plan { modes, ..plan.clone() };
    progress.begin(plan.samples());
    let mut stopped = None;
    let mut memory = None;
    for number in 0..plan.cells.len() {
        let family = plan.cells[number].family;
        if let Some(why) = run::family_unavailable(family).map_err(MeasureError::Start)? {
            cell::unavailable(&plan, number, &why, &mut writer)?;
            continue;
        }
        match cell::measure(&plan, number, options, &mut memory, stop, &mut writer, progress)? {
            cell::Ended::Done => {}
            cell::Ended::Stopped(signal) => {
                stopped = Some(signal);
                break;
            }
        }
    }
    progress.end();
    if stopped.is_none() {
        let end = End { samples: writer.samples(), ended_unix_ns: unix_now_ns() };
        writer.line(&Line::End(end))?;
    }
    Ok(Outcome { place, stopped })
}

/// The modes that this kernel has, and lines for those that it has not.
fn available(modes: &[Mode]) -> Result<(Vec<Mode>, Vec<Unavailable>), Failure> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for mode in modes {
        match run::unavailable(*mode)? {
            None => here.push(*mode),
            Some(why) => {
                missing.push(Unavailable { mode: mode.to_string(), why, cell: None });
            }
        }
    }
    Ok((here, missing))
}

fn header(plan: &Plan, options: &Options) -> Header {
    let started_unix_ns = unix_now_ns();
    Header {
        format: FORMAT,
        id: id(plan.experiment, started_unix_ns, &options.command),
        experiment: plan.experiment.to_owned(),
        command: options.command.clone(),
        ntcopy: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns,
        baseline: plan.baseline().to_string(),
        not_a_timing: options.not_a_timing.clone(),
    }
}

/// `<date>-<time>-<experiment>-<eight hex digits>`, in UTC.
fn id(experiment: &str, started_unix_ns: u64, command: &[String]) -> String {
    let mut hash = Sha256::new();
    hash.update(started_unix_ns.to_le_bytes());
    hash.update(std::process::id().to_le_bytes());
    for word in command {
        hash.update(word);
        hash.update([0]);
    }
    let hex: String = hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let seconds = i64::try_from(started_unix_ns / 1_000_000_000).unwrap_or_default();
    // 64 bits of nanoseconds end in 2554, which the calendar can still tell.
    let utc = time::OffsetDateTime::from_unix_timestamp(seconds)
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}-{experiment}-{hex}",
        utc.year(),
        u8::from(utc.month()),
        utc.day(),
        utc.hour(),
        utc.minute(),
        utc.second()
    )
}

/// Where a record goes when the user names no place:
/// `$XDG_DATA_HOME/ntcopy/records/<id>`, else `~/.local/share/ntcopy/records/<id>`.
/// None when neither `XDG_DATA_HOME` nor `HOME` is set to an absolute path.
#[must_use]
pub fn default_place(id: &str) -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute())
    };
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(Path::new(".local/share"))))?;
    Some(data.join("ntcopy/records").join(id))
}

/// A new record's id for an experiment, as [`measure`] would make it.
#[must_use]
pub fn new_id(experiment: &str, command: &[String]) -> String {
    id(experiment, unix_now_ns(), command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_date_the_experiment_and_eight_hex_digits() {
        let id = id("unix", 1_700_000_000_000_000_000, &["ntcopy".to_owned()]);
        let (stem, hex) = id.rsplit_once('-').unwrap();
        assert_eq!(stem, "20231114-221320-unix");
        assert!(hex.len() == 8 && hex.chars().all(|c| c.is_ascii_hexdigit()), "{hex}");
    }

    #[test]
    fn ids_differ_with_the_command() {
        let of = |word: &str| id("unix", 7, &[word.to_owned()]);
        assert_ne!(of("a"), of("b"));
    }
}
