//! A program's turns, each pair of them in a kernel that is booted for it.
//!
//! Where a kernel puts its pages differs from boot to boot, so an interval that is to hold what the
//! next run finds is drawn from boots. Each gives one pair, after turns that do not count; which way
//! is first differs from boot to boot.

use std::ffi::OsString;
use std::path::PathBuf;

use ntcopy_judge::stats::turns::{self, BETTER, HINTED, PLAIN};
use ntcopy_kernel::temporary::Folder;
use ntcopy_kernel::{Built, Error};
use ntcopy_record::{ExperimentKind, ReadError, Record, RunError, Sample, word};

use super::Request;
use crate::run::Failure;
use crate::sample::driver::{At, Context, Groups, Halt, Lanes, Recording};
use crate::sample::{MeasureError, Outcome, named};

/// Why there is no record, or only the beginning of one.
#[derive(Debug, thiserror::Error)]
pub enum BlocksError {
    #[error(transparent)]
    Guest(#[from] Error),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Measure(#[from] MeasureError),
    /// A boot's program ended before it measured anything, and has said why.
    #[error("nothing was measured: exit code {0}")]
    NothingMeasured(u8),
}

impl From<Failure> for BlocksError {
    fn from(failure: Failure) -> Self {
        BlocksError::Measure(failure.into())
    }
}

/// What came of all boots.
pub struct Measured {
    pub outcome: Outcome,
    /// Lines in which a kernel reported a fault of its own.
    pub complaints: Vec<String>,
}

/// Builds the kernel if need be, and boots it for each pair until the pairs say enough. The request's
/// arguments have the inside take the turns of one pair, whose number `block` puts behind them.
pub fn measure(
    request: &Request,
    context: Context<'_>,
    pairs: u32,
    block: fn(u32) -> [OsString; 2],
) -> Result<Measured, BlocksError> {
    let (kernel, module) = super::prepare(request)?;
    let folder = Folder::new("ntcopy-record-")?;
    let mut boots = Boots {
        request,
        block,
        kernel,
        module,
        folder,
        is_less_better: false,
        next: None,
        complaints: Vec::new(),
        failed: None,
    };
    context.progress.at("booting the kernel");
    let first = boots.boot(0)?;
    let [cell] = &first.cells[..] else { return Err(BlocksError::NothingMeasured(1)) };
    let params = cell.params.clone();
    boots.is_less_better = word(&params, BETTER) == Some("less");
    let machine = first.machine.clone();
    boots.next = Some(first);
    let modes = [PLAIN, HINTED];
    let context = Context { machine, ..context };
    let mut recording = Recording::open(ExperimentKind::Try, named(&modes), context)?;
    recording.expect(2 * u64::from(pairs));
    let measured = recording.cells(0..1, |recording, _| {
        recording.cell(0, params.clone())?;
        let cells = &[(0, "boots")];
        recording.groups(&mut boots, Groups { modes: &modes, alive: modes.into(), cells, pairs })
    });
    match boots.failed {
        Some(error) => Err(error),
        None => {
            measured?;
            Ok(Measured { outcome: recording.end()?, complaints: boots.complaints })
        }
    }
}

struct Boots<'a> {
    request: &'a Request,
    block: fn(u32) -> [OsString; 2],
    kernel: Built,
    module: Option<PathBuf>,
    folder: Folder,
    is_less_better: bool,
    /// The record of the boot whose samples are handed out.
    next: Option<Record>,
    complaints: Vec<String>,
    /// Why there was no other boot.
    failed: Option<BlocksError>,
}

impl Boots<'_> {
    fn boot(&mut self, pair: u32) -> Result<Record, BlocksError> {
        let place = self.folder.path().join(pair.to_string());
        let mut args = self.request.args.clone();
        args.extend((self.block)(pair));
        let request = Request { place: place.clone(), args, ..self.request.clone() };
        let inside = super::boot(&request, &self.kernel, self.module.as_deref())?;
        self.complaints.extend(inside.complaints);
        if !place.exists() {
            return Err(BlocksError::NothingMeasured(inside.code));
        }
        let record = Record::read(&place)?;
        if record.errors.is_empty() && (inside.code != 0 || !record.complete) {
            return Err(BlocksError::NothingMeasured(inside.code.max(1)));
        }
        Ok(record)
    }

    /// Why the boot's turn of this way is not there.
    fn error(&self) -> Option<&RunError> {
        self.next.as_ref()?.errors.first()
    }
}

impl Lanes for Boots<'_> {
    type Mode = &'static str;

    fn begin_group(
        &mut self,
        at: At,
        _order: &mut Vec<&'static str>,
        _recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        if at.pair == 0 {
            return Ok(());
        }
        match self.boot(at.pair) {
            Ok(record) => self.next = Some(record),
            Err(BlocksError::Guest(Error::Interrupted(_))) => return Err(Halt::Stopped),
            Err(error) => {
                self.failed = Some(error);
                return Err(Halt::Stopped);
            }
        }
        Ok(())
    }

    fn figure(&self, sample: &Sample) -> Option<f64> {
        turns::rate(sample, self.is_less_better)
    }

    fn sample(&mut self, mode: &'static str, at: At) -> Result<Sample, Failure> {
        if let Some(error) = self.error() {
            return Err(Failure::Answer(error.what.clone()));
        }
        let mut samples = self.next.iter().flat_map(|record| &record.samples);
        let sample = samples.find(|sample| sample.mode == mode).cloned();
        let At { cell, pair, .. } = at;
        let sample = sample.map(|sample| Sample { cell, pair, ..sample });
        sample.ok_or_else(|| Failure::Answer("the boot's record lacks the turn".to_owned()))
    }

    fn failed(
        &mut self,
        mode: &'static str,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<bool, Halt> {
        let mode = self.error().map_or(mode.to_owned(), |error| error.mode.clone());
        recording.error(at.cell, mode, &failure)?;
        Err(Halt::Stopped)
    }
}
