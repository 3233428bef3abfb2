//! Measuring a plan: verify, warm up, interleave, write each sample as it is taken.
//!
//! Only this stage writes records. One driver (`driver`) opens the record, goes from cell to cell
//! and interleaves the modes; each experiment says how its lanes are made ready, what a sample of
//! one is, and what becomes of a lane that failed.

pub(crate) mod driver;
pub(crate) mod needs;
mod progress;
pub(crate) mod resolved;
pub(crate) mod servers;
mod write;

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;

use ntcopy_record::{ExperimentKind, Mode, Sample};
use sha2::{Digest, Sha256};

use crate::run::load::Window;
use crate::run::meter::CpuNs;
use crate::run::{Failure, unix_now_ns};

pub(crate) use driver::{At, Halt, Recording};
pub use driver::{Context, Experiment, Options};
pub use needs::{Bootable, Needs};
pub use progress::Progress;
pub use write::{WriteError, Writer, note_beside};

/// What became of the measurement; the figures are in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub place: PathBuf,
    /// The signal that cut it short, if one did.
    pub stopped: Option<i32>,
}

/// Why there is no record, or only a part of one.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Start(#[from] Failure),
}

/// What modes are whose names say it.
pub(crate) fn named<M: Display>(modes: &[M]) -> Vec<Mode> {
    modes.iter().map(|mode| Mode::named(mode.to_string())).collect()
}

/// Whose CPU time a window has, of a client and a server.
pub(crate) const CLIENT_AND_SERVER: [&str; 2] = ["client_cpu", "server_cpu"];

/// CPU time of processes while the clock ran, by their names in a sample.
pub(crate) fn cpu_phases<const N: usize>(
    processes: [&str; N],
    cpu: CpuNs<N>,
) -> BTreeMap<String, u64> {
    processes.map(str::to_owned).into_iter().zip(cpu).collect()
}

/// The sample that a window comes to, with the kernel's counters of the whole run, if they were
/// held against it; `latencies` is what its answers' times are called.
pub(crate) fn window_sample<const N: usize>(
    at: At,
    mode: impl Display,
    processes: [&str; N],
    window: Window<N>,
    latencies: &str,
    mut counters: BTreeMap<String, u64>,
) -> Sample {
    let mut series = BTreeMap::from([("answered".to_owned(), vec![window.answered])]);
    if !counters.is_empty() {
        series.insert("counted_bytes".to_owned(), vec![window.all_bytes]);
    }
    if let Some(answers) = &window.answers {
        series.extend(answers.series(latencies));
    }
    // Those of what was clocked, given up or not.
    counters.extend(window.events);
    let phases_ns = cpu_phases(processes, window.cpu);
    let sample = at.sample(mode, window.bytes, window.elapsed_ns);
    Sample { phases_ns, counters, series, ..sample }
}

/// `<date>-<time>-<experiment>-<eight hex digits>`, in UTC.
fn id(experiment: &ExperimentKind, started_unix_ns: u64, command: &[String]) -> String {
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
pub fn default_place(id: &str) -> Option<PathBuf> {
    place_in("records", id)
}

/// The same in another folder than that whose records count for advice.
pub fn place_in(folder: &str, id: &str) -> Option<PathBuf> {
    let data = ntcopy_record::folder::of_this_user("XDG_DATA_HOME", ".local/share")?;
    Some(data.join("ntcopy").join(folder).join(id))
}

/// A new record's id for an experiment, as a measurement would make it.
pub fn new_id(experiment: &ExperimentKind, command: &[String]) -> String {
    id(experiment, unix_now_ns(), command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_the_date_the_experiment_and_eight_hex_digits() {
        let id = id(&ExperimentKind::Unix, 1_700_000_000_000_000_000, &["ntcopy".to_owned()]);
        let (stem, hex) = id.rsplit_once('-').unwrap();
        assert_eq!(stem, "20231114-221320-unix");
        assert!(hex.len() == 8 && hex.chars().all(|c| c.is_ascii_hexdigit()), "{hex}");
    }

    #[test]
    fn ids_differ_with_the_command() {
        let of = |word: &str| id(&ExperimentKind::Unix, 7, &[word.to_owned()]);
        assert_ne!(of("a"), of("b"));
    }
}
