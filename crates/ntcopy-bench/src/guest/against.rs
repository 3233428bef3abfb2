//! Two kernels, boot by boot: is a send that nobody hinted as fast as without
//! the patches?
//!
//! One boot of each makes a pair, and every second pair runs the other way
//! round. A boot gives one sample a cell: where a kernel puts its pages differs
//! from boot to boot, so boots are what the interval has to be drawn from.

use std::path::Path;

use ntcopy_kernel::{BuildOptions, Built, Error, progress};

use super::{Inside, Request};
use crate::plan::group_order;
use crate::record::{End, Header, Line, ReadError, Record, Sample};
use crate::sample::{WriteError, Writer};

/// The mode of plain sends in a kernel with the patches.
pub const PATCHED: &str = "patched";
/// The mode of plain sends in a kernel without them: the baseline.
pub const UNPATCHED: &str = "unpatched";

/// Where patches may reach that stay in the unpatched kernel: the bench's own,
/// and what they need to link. None of it is on the way of a plain send.
const NEUTRAL: [&str; 3] = ["arch/um/", "arch/x86/", "tools/"];

/// Why there is no comparison, or only a part of one.
#[derive(Debug, thiserror::Error)]
pub enum AgainstError {
    /// A kernel could not be built or booted, or died.
    #[error(transparent)]
    Guest(#[from] Error),
    /// What a boot wrote could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The record could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A boot's measurement failed.
    #[error("boot {boot} of the {kernel} kernel failed: {why}")]
    Failed {
        /// Number of the pair, from 0.
        boot: u32,
        /// Which kernel.
        kernel: &'static str,
        /// What went wrong.
        why: String,
    },
    /// No place for what the boots write.
    #[error("cannot make a folder for the boots' records: {0}")]
    Folder(std::io::Error),
}

/// Builds both kernels, boots them in turns, and writes one record of it all.
///
/// `pairs` is the number of boots of each; the request's arguments make the
/// inside measure plain sends only.
///
/// # Errors
///
/// When a kernel cannot be built or booted, or a boot's measurement failed.
/// Pairs that were whole until then are in the record.
pub fn measure(request: &Request, pairs: u32) -> Result<Vec<String>, AgainstError> {
    let folder = tempfile::tempdir().map_err(AgainstError::Folder)?;
    let kernels = [(UNPATCHED, built(request, true)?), (PATCHED, built(request, false)?)];
    let mut writer = None;
    let mut complaints = Vec::new();
    for pair in 0..pairs {
        for (position, (mode, kernel)) in (0..).zip(group_order(&[&kernels[0], &kernels[1]], pair))
        {
            let place = folder.path().join(format!("{pair}-{mode}"));
            let inside = boot(request, kernel, &place)?;
            complaints.extend(inside.complaints);
            let record = Record::read(&place)?;
            check(&record, inside.code, pair, mode)?;
            if writer.is_none() {
                writer = Some(begin(request, &record)?);
            }
            if let Some(writer) = &mut writer {
                samples(&record, pair, position, mode)
                    .into_iter()
                    .try_for_each(|sample| writer.line(&Line::Sample(sample)))?;
            }
        }
    }
    if let Some(mut writer) = writer {
        let ended_unix_ns = crate::run::unix_now_ns();
        writer.line(&Line::End(End { samples: writer.samples(), ended_unix_ns }))?;
    }
    Ok(complaints)
}

/// The kernel, with all patches or only with those that a plain send does not meet.
fn built(request: &Request, unpatched: bool) -> Result<Built, Error> {
    let mut options = BuildOptions::from_env(request.kernel)?;
    if unpatched {
        options.series.patches.retain(|patch| is_neutral(&patch.content));
    }
    ntcopy_kernel::build(&options, &mut *progress::for_stderr())
}

/// Whether the patch only touches what a plain send does not meet.
fn is_neutral(patch: &[u8]) -> bool {
    let text = String::from_utf8_lossy(patch);
    let mut touched = text.lines().filter_map(|line| line.strip_prefix("+++ b/")).peekable();
    touched.peek().is_some() && touched.all(|path| NEUTRAL.iter().any(|at| path.starts_with(at)))
}

fn boot(request: &Request, kernel: &Built, place: &Path) -> Result<Inside, Error> {
    let request = Request { place: place.to_path_buf(), ..request.clone() };
    super::boot(&request, kernel)
}

fn check(record: &Record, code: u8, boot: u32, kernel: &'static str) -> Result<(), AgainstError> {
    let why = match record.errors.first() {
        Some(error) => error.what.clone(),
        None if code != 0 => format!("exit code {code}"),
        None if !record.complete => "its record was cut short".to_owned(),
        None => return Ok(()),
    };
    Err(AgainstError::Failed { boot, kernel, why })
}

/// Begins the common record: the header and the machine of the first boot, its cells.
fn begin(request: &Request, first: &Record) -> Result<Writer, WriteError> {
    let mut writer = Writer::create(&request.place)?;
    let command = request.command.clone();
    let baseline = UNPATCHED.to_owned();
    writer.line(&Line::Header(Header { command, baseline, ..first.header.clone() }))?;
    writer.line(&Line::Machine(first.machine.clone()))?;
    for cell in &first.cells {
        let mut cell = cell.clone();
        cell.params.insert("form".to_owned(), "boots".into());
        writer.line(&Line::Cell(cell))?;
    }
    Ok(writer)
}

/// One sample a cell: all of the boot's together.
fn samples(record: &Record, pair: u32, position: u32, mode: &str) -> Vec<Sample> {
    let whole = |cell: u32| {
        let mut ours = record.samples.iter().filter(|sample| sample.cell == cell);
        let first = ours.next()?.clone();
        let mut whole = Sample { pair, position, mode: mode.to_owned(), ..first };
        for sample in ours {
            whole.bytes += sample.bytes;
            whole.elapsed_ns += sample.elapsed_ns;
            for (name, ns) in &sample.phases_ns {
                *whole.phases_ns.entry(name.clone()).or_default() += ns;
            }
        }
        Some(whole)
    };
    record.cells.iter().filter_map(|cell| whole(cell.cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::testing::Sketch;

    #[test]
    fn only_patches_beside_the_way_of_a_send_stay() {
        let patch = |paths: &[&str]| -> Vec<u8> {
            let headers = paths.iter().map(|path| format!("--- a/{path}\n+++ b/{path}\n@@\n"));
            headers.collect::<String>().into_bytes()
        };
        assert!(is_neutral(&patch(&["arch/um/kernel/time.c"])));
        assert!(is_neutral(&patch(&["arch/x86/lib/copy_user_64.S", "tools/objtool/check.c"])));
        assert!(!is_neutral(&patch(&["arch/x86/lib/copy_user_64.S", "lib/iov_iter.c"])));
        assert!(!is_neutral(&patch(&["net/socket.c"])));
        assert!(!is_neutral(b"From: nobody\n"));
    }

    #[test]
    fn a_boot_is_one_sample_a_cell() {
        let mut sketch = Sketch::new(&["copy"]);
        for pair in 0..5 {
            sketch.pair(0, pair, &[1000]);
        }
        let record = sketch.record();
        let samples = samples(&record, 7, 1, PATCHED);
        let [sample] = &samples[..] else { panic!("one sample: {samples:?}") };
        assert_eq!((sample.pair, sample.position, sample.mode.as_str()), (7, 1, PATCHED));
        assert_eq!(sample.bytes, 5 * record.samples[0].bytes);
        assert_eq!(sample.phases_ns["send"], 5 * record.samples[0].phases_ns["send"]);
    }
}
