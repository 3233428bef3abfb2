//! Two kernels, boot by boot: is a send that nobody hinted as fast as without
//! the patches, and a hinted one through the module as fast as with them?
//!
//! One boot of each makes a pair, and every second pair runs the other way
//! round. A boot gives one sample a cell: where a kernel puts its pages differs
//! from boot to boot, so boots are what the interval has to be drawn from.

use std::path::{Path, PathBuf};

use ntcopy_kernel::{BuildOptions, Built, Error, Flavour, progress};

use super::{Inside, Request};
use crate::experiment::Mode;
use crate::plan::group_order;
use crate::record::{End, Header, Line, ReadError, Record, Sample};
use crate::sample::{WriteError, Writer};

/// The mode of plain sends in a kernel with the patches.
pub const PATCHED: &str = "patched";
/// The mode of plain sends in a kernel with the patches that was hinted once since boot.
pub const HINTED_ONCE: &str = "hinted-once";
/// The mode of plain sends in a kernel without them: the baseline.
pub const UNPATCHED: &str = "unpatched";
/// The mode of hinted sends that the module takes, in a kernel without the patches.
pub const MODULE: &str = "module";
/// The mode of hinted sends in a kernel with the patches: the baseline of [`MODULE`].
pub const SERIES: &str = "series";

/// Throws the switch as the first hint does, and leaves the default: with 3 every send is one.
const FIRST_HINT: [(&str, &str); 2] = [("net.core.ntcopy", "3"), ("net.core.ntcopy", "1")];

/// Which two kernels are compared, and what is sent in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// Plain sends, with the patches and without. Nobody has hinted since boot.
    Unpatched,
    /// The same, where the first hint has thrown the switch of the kernel with the patches.
    UnpatchedAfterHint,
    /// Hinted sends that are obeyed, by the module and by the patches.
    Module,
}

impl Against {
    /// The mode that a boot measures.
    #[must_use]
    pub fn measured(self) -> Mode {
        match self {
            Against::Unpatched | Against::UnpatchedAfterHint => Mode::Copy,
            Against::Module => Mode::Nt,
        }
    }

    /// What the record calls such cells.
    fn form(self) -> &'static str {
        match self {
            Against::Unpatched => "boots",
            Against::UnpatchedAfterHint => "boots-after-hint",
            Against::Module => "hinted-boots",
        }
    }

    /// The baseline's name, and that of the other.
    fn names(self) -> [&'static str; 2] {
        match self {
            Against::Unpatched => [UNPATCHED, PATCHED],
            Against::UnpatchedAfterHint => [UNPATCHED, HINTED_ONCE],
            Against::Module => [SERIES, MODULE],
        }
    }
}

/// One of the two.
struct Side {
    /// Its name in the record.
    mode: &'static str,
    kernel: Built,
    /// To be loaded before anything is measured.
    module: Option<PathBuf>,
    /// To be set before anything is measured, in this order.
    sysctls: &'static [(&'static str, &'static str)],
}

/// Why there is no comparison, or only a part of one.
#[derive(Debug, thiserror::Error)]
pub enum AgainstError {
    /// A kernel or the module could not be built, or a boot failed or died.
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
/// inside measure [`Against::measured`].
///
/// # Errors
///
/// When a kernel cannot be built or booted, or a boot's measurement failed.
/// Pairs that were whole until then are in the record.
pub fn measure(
    request: &Request,
    against: Against,
    pairs: u32,
) -> Result<Vec<String>, AgainstError> {
    let folder = tempfile::tempdir().map_err(AgainstError::Folder)?;
    let sides = sides(request, against)?;
    let mut writer = None;
    let mut complaints = Vec::new();
    for pair in 0..pairs {
        for (position, side) in (0..).zip(group_order(&[&sides[0], &sides[1]], pair)) {
            let place = folder.path().join(format!("{pair}-{}", side.mode));
            let inside = boot(request, side, &place)?;
            complaints.extend(inside.complaints);
            let record = Record::read(&place)?;
            check(&record, inside.code, pair, side.mode)?;
            if writer.is_none() {
                writer = Some(begin(request, against, &record)?);
            }
            if let Some(writer) = &mut writer {
                samples(&record, against.measured(), pair, position, side.mode)
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

/// Both kernels, built; the baseline first.
fn sides(request: &Request, against: Against) -> Result<[Side; 2], Error> {
    let [baseline, other] = against.names();
    let options = BuildOptions::from_env(request.kernel)?;
    let build =
        |options: &BuildOptions| ntcopy_kernel::build(options, &mut *progress::for_stderr());
    let side = |mode, kernel, module| Side { mode, kernel, module, sysctls: &[] };
    Ok(match against {
        Against::Unpatched | Against::UnpatchedAfterHint => {
            let series = options.series.clone().neutral();
            let unpatched = build(&BuildOptions { series, ..options.clone() })?;
            let mut patched = side(other, build(&options)?, None);
            if against == Against::UnpatchedAfterHint {
                patched.sysctls = &FIRST_HINT;
            }
            [side(baseline, unpatched, None), patched]
        }
        Against::Module => {
            let kind = request.kernel.with_flavour(Flavour::Module)?;
            let (kernel, module) = super::with_module(&BuildOptions::from_env(kind)?)?;
            [side(baseline, build(&options)?, None), side(other, kernel, Some(module))]
        }
    })
}

fn boot(request: &Request, side: &Side, place: &Path) -> Result<Inside, Error> {
    let request =
        Request { kernel: side.kernel.kind, place: place.to_path_buf(), ..request.clone() };
    super::boot(&request, &side.kernel, side.module.as_deref(), side.sysctls)
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
fn begin(request: &Request, against: Against, first: &Record) -> Result<Writer, WriteError> {
    let mut writer = Writer::create(&request.place)?;
    let command = request.command.clone();
    let [baseline, _] = against.names().map(str::to_owned);
    writer.line(&Line::Header(Header { command, baseline, ..first.header.clone() }))?;
    writer.line(&Line::Machine(first.machine.clone()))?;
    for cell in &first.cells {
        let mut cell = cell.clone();
        cell.params.insert("form".to_owned(), against.form().into());
        writer.line(&Line::Cell(cell))?;
    }
    Ok(writer)
}

/// One sample a cell: all that the boot measured of a mode together, under the side's name.
fn samples(record: &Record, measured: Mode, pair: u32, position: u32, mode: &str) -> Vec<Sample> {
    let is_measured = |sample: &&Sample| sample.mode == measured.as_str();
    let whole = |cell: u32| {
        let of_cell = record.samples.iter().filter(|sample| sample.cell == cell);
        let mut ours = of_cell.filter(is_measured);
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
    fn a_boot_is_one_sample_a_cell() {
        let mut sketch = Sketch::new(&["copy", "nt"]);
        for pair in 0..5 {
            sketch.pair(0, pair, &[1000, 3000]);
        }
        let record = sketch.record();
        let samples_of = |measured, mode| samples(&record, measured, 7, 1, mode);
        let samples = samples_of(Mode::Copy, PATCHED);
        let [sample] = &samples[..] else { panic!("one sample: {samples:?}") };
        assert_eq!((sample.pair, sample.position, sample.mode.as_str()), (7, 1, PATCHED));
        assert_eq!(sample.bytes, 5 * record.samples[0].bytes);
        assert_eq!(sample.phases_ns["send"], 5 * record.samples[0].phases_ns["send"]);
        let [hinted] = &samples_of(Mode::Nt, MODULE)[..] else { panic!("one sample") };
        assert_eq!(hinted.mode, MODULE);
        assert!(hinted.elapsed_ns < sample.elapsed_ns, "it is the other mode's time");
    }
}
