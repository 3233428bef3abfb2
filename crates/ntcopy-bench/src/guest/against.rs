//! Two kernels, boot by boot: what becomes of sends by the patches, hinted or not, and is a hinted
//! one through the module as fast as with them?
//!
//! One boot of each makes a pair, and every second pair runs the other way
//! round. A boot gives one sample a cell and mode: where a kernel puts its pages
//! differs from boot to boot, so boots are what the interval has to be drawn from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ntcopy_kernel::{BuildOptions, Built, Error, progress};
use ntcopy_record::{End, ExperimentKind, Header, Line, ReadError, Record, Sample};
use ntcopy_record::{add_series, is_counting_mark};

use super::{Inside, Request};
use crate::experiment::Mode;
use crate::experiments::app;
use crate::plan::group_order;
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

/// What this program ends with where a mode that was named is not to be had: hinted ones are not in
/// a kernel without the patches.
const NOT_AVAILABLE: u8 = 3;

/// Which two kernels are compared, and what is sent in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// Sends of every mode that was asked for with the patches, plain ones without. Where these are
    /// all, no send was hinted since boot.
    Unpatched,
    /// Plain sends, where a socket that opted in has thrown the switch of the kernel with the
    /// patches.
    UnpatchedAfterHint,
    /// Hinted sends that are obeyed, by the module and by the patches.
    Module,
}

impl Against {
    /// The modes that a boot measures, of those that were asked for.
    #[must_use]
    pub fn measured(self, asked: &[Mode]) -> Vec<Mode> {
        match self {
            Against::Unpatched if asked.is_empty() => vec![Mode::Copy, Mode::Nt, Mode::Adaptive],
            Against::Unpatched => asked.to_vec(),
            Against::UnpatchedAfterHint => vec![Mode::Copy],
            Against::Module => vec![Mode::Nt],
        }
    }

    /// What the record calls cells of experiment `unix`, if they were sent in these modes.
    fn form(self, modes: &[&str]) -> &'static str {
        match self {
            Against::Unpatched if modes.iter().any(|mode| *mode != COPY) => "boots-with-hints",
            Against::Unpatched => "boots",
            Against::UnpatchedAfterHint => "boots-after-hint",
            Against::Module => "hinted-boots",
        }
    }

    /// What counts of a boot of the baseline, and of the other kernel.
    fn names<'a>(self, modes: &[&'a str]) -> [Names<'a>; 2] {
        let nt = Mode::Nt.as_str();
        match self {
            Against::Unpatched => {
                let mut names = [vec![(COPY, UNPATCHED)], vec![(COPY, PATCHED)]];
                for mode in modes.iter().copied().filter(|mode| *mode != COPY) {
                    names[usize::from(mode != IDLE)].push((mode, mode));
                }
                names
            }
            Against::UnpatchedAfterHint => [vec![(COPY, UNPATCHED)], vec![(COPY, HINTED_ONCE)]],
            Against::Module => [vec![(nt, SERIES)], vec![(nt, MODULE)]],
        }
    }
}

/// What a boot's own record calls plain sends.
const COPY: &str = "copy";

/// The mode of a program that sends nothing large: a property of the baseline's kernel.
const IDLE: &str = app::AppMode::Idle.as_str();

/// The modes that count of a boot, each with its name in the common record.
type Names<'a> = Vec<(&'a str, &'a str)>;

struct Side<'a> {
    names: Names<'a>,
    kernel: Built,
    /// To be loaded before anything is measured.
    module: Option<PathBuf>,
    /// Whether a program is to hint before anything is measured.
    hinted: bool,
}

impl Side<'_> {
    /// What it is called: by its first mode.
    fn name(&self) -> &str {
        self.names.first().map_or("", |(_, name)| name)
    }
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
        kernel: String,
        why: String,
    },
    /// A boot's program ended before it measured anything, and has said why.
    #[error("nothing was measured: exit code {0}")]
    NothingMeasured(u8),
    /// No place for what the boots write.
    #[error("cannot make a folder for the boots' records: {0}")]
    Folder(std::io::Error),
}

/// Builds both kernels, boots them in turns, and writes one record of it all.
///
/// `pairs` is the number of boots of each; the request's arguments make the
/// inside measure `modes`, as far as its kernel has them. `settled` gives arguments for
/// all boots after the first, by the first one's record: what it found out, and the
/// others have to keep to.
pub fn measure(
    request: &Request,
    against: Against,
    modes: &[&str],
    pairs: u32,
    settled: fn(&Record) -> Vec<OsString>,
) -> Result<Vec<String>, AgainstError> {
    let mut request = request.clone();
    let folder = tempfile::tempdir().map_err(AgainstError::Folder)?;
    let sides = sides(&request, against, modes)?;
    let mut writer = None;
    let mut complaints = Vec::new();
    for pair in 0..pairs {
        let mut position = 0;
        for side in group_order(&[&sides[0], &sides[1]], pair) {
            let place = folder.path().join(format!("{pair}-{}", side.name()));
            let inside = boot(&request, side, &place)?;
            complaints.extend(inside.complaints);
            if inside.code != 0 && !place.exists() {
                return Err(AgainstError::NothingMeasured(inside.code));
            }
            let record = Record::read(&place)?;
            check(&record, inside.code, pair, side.name())?;
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    let form = against.form(modes);
                    request.args.extend(settled(&record));
                    writer.insert(begin(&request, (form, sides[0].name()), &record)?)
                }
            };
            for (mode, name) in &side.names {
                samples(&record, mode, pair, position, name)
                    .into_iter()
                    .try_for_each(|sample| writer.line(&Line::Sample(sample)))?;
                position += 1;
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
fn sides<'a>(
    request: &Request,
    against: Against,
    modes: &[&'a str],
) -> Result<[Side<'a>; 2], Error> {
    let [baseline, other] = against.names(modes);
    let options = BuildOptions::from_env(request.kernel)?;
    let build =
        |options: &BuildOptions| ntcopy_kernel::build(options, &mut *progress::for_stderr());
    let side = |names, kernel, module| Side { names, kernel, module, hinted: false };
    Ok(match against {
        Against::Unpatched | Against::UnpatchedAfterHint => {
            let series = options.series.clone().neutral();
            let unpatched = build(&BuildOptions { series, ..options.clone() })?;
            let mut patched = side(other, build(&options)?, None);
            if against == Against::UnpatchedAfterHint {
                patched.hinted = true;
            }
            [side(baseline, unpatched, None), patched]
        }
        Against::Module => {
            let kind = request.kernel.for_module().ok_or_else(|| {
                Error::NotHere(format!("there is no '{}' for the module", request.kernel))
            })?;
            let (kernel, module) = super::with_module(&BuildOptions::from_env(kind)?)?;
            [side(baseline, build(&options)?, None), side(other, kernel, Some(module))]
        }
    })
}

fn boot(request: &Request, side: &Side<'_>, place: &Path) -> Result<Inside, Error> {
    let request =
        Request { kernel: side.kernel.kind, place: place.to_path_buf(), ..request.clone() };
    super::boot(&request, &side.kernel, side.module.as_deref(), side.hinted)
}

fn check(record: &Record, code: u8, boot: u32, kernel: &str) -> Result<(), AgainstError> {
    let why = match record.errors.first() {
        Some(error) => error.what.clone(),
        None if code == NOT_AVAILABLE && kernel == UNPATCHED && !record.samples.is_empty() => {
            return Ok(());
        }
        None if code != 0 => format!("exit code {code}"),
        None if !record.complete => "its record was cut short".to_owned(),
        None => return Ok(()),
    };
    Err(AgainstError::Failed { boot, kernel: kernel.to_owned(), why })
}

/// Begins the common record: the header and the machine of the first boot, its cells.
fn begin(
    request: &Request,
    (form, baseline): (&str, &str),
    first: &Record,
) -> Result<Writer, WriteError> {
    let mut writer = Writer::create(&request.place)?;
    let command = request.command.clone();
    let baseline = baseline.to_owned();
    writer.line(&Line::Header(Header { command, baseline, ..first.header.clone() }))?;
    writer.line(&Line::Machine(Box::new(first.machine.clone())))?;
    for cell in &first.cells {
        let mut cell = cell.clone();
        if matches!(first.header.experiment, ExperimentKind::Http | ExperimentKind::App) {
            cell.params.insert("boots".to_owned(), form.into());
        } else {
            cell.params.insert("form".to_owned(), form.into());
        }
        writer.line(&Line::Cell(cell))?;
    }
    Ok(writer)
}

/// One sample a cell: all that the boot measured of a mode together, under its name.
fn samples(record: &Record, measured: &str, pair: u32, position: u32, name: &str) -> Vec<Sample> {
    let whole = |cell: u32| {
        let of_cell = record.samples.iter().filter(|sample| sample.cell == cell);
        let mut ours = of_cell.filter(|sample| sample.mode == measured);
        let first = ours.next()?.clone();
        let mut whole = Sample { pair, position, mode: name.to_owned(), ..first };
        for sample in ours {
            whole.bytes += sample.bytes;
            whole.elapsed_ns += sample.elapsed_ns;
            add(&mut whole.phases_ns, &sample.phases_ns);
            add(&mut whole.counters, &sample.counters);
            add_series(&mut whole.series, &sample.series);
        }
        Some(whole)
    };
    record.cells.iter().filter_map(|cell| whole(cell.cell)).collect()
}

/// Adds up by name; a mark beside a counter is as bad as the worst.
fn add(whole: &mut BTreeMap<String, u64>, part: &BTreeMap<String, u64>) {
    for (name, count) in part {
        let is_mark = is_counting_mark(name);
        let sum = whole.entry(name.clone()).or_insert(if is_mark { *count } else { 0 });
        *sum = if is_mark { (*sum).min(*count) } else { *sum + count };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntcopy_record::testing::Sketch;

    #[test]
    fn a_boot_is_one_sample_a_cell() {
        let mut sketch = Sketch::new(&["copy", "nt"]);
        for pair in 0..5 {
            sketch.pair(0, pair, &[1000, 3000]);
        }
        let record = sketch.record();
        let samples_of = |measured, name| samples(&record, measured, 7, 1, name);
        let samples = samples_of("copy", PATCHED);
        let [sample] = &samples[..] else { panic!("one sample: {samples:?}") };
        assert_eq!((sample.pair, sample.position, sample.mode.as_str()), (7, 1, PATCHED));
        assert_eq!(sample.bytes, 5 * record.samples[0].bytes);
        assert_eq!(sample.phases_ns["send"], 5 * record.samples[0].phases_ns["send"]);
        let [hinted] = &samples_of("nt", MODULE)[..] else { panic!("one sample") };
        assert_eq!(hinted.mode, MODULE);
        assert!(hinted.elapsed_ns < sample.elapsed_ns, "it is the other mode's time");
    }

    #[test]
    fn what_was_counted_is_added_up_and_a_mark_is_the_worst() {
        let mut sketch = Sketch::new(&["nt"]);
        (0..2).for_each(|pair| sketch.pair(0, pair, &[1000]));
        let mut record = sketch.record();
        for (sample, permille) in record.samples.iter_mut().zip([900, 700]) {
            let counters = [("nontemporal_bytes", 10), ("x:counted_permille", permille)];
            sample.counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
            sample.series.insert("answered".to_owned(), vec![permille]);
        }
        record.samples[1].counters.insert("too_small_bytes".to_owned(), 3);
        let sample = &samples(&record, "nt", 0, 0, "nt")[0];
        assert_eq!(sample.counters["nontemporal_bytes"], 20);
        assert_eq!(sample.counters["too_small_bytes"], 3);
        assert_eq!(sample.counters["x:counted_permille"], 700);
        assert_eq!(sample.series["answered"], [900, 700]);
    }

    #[test]
    fn plain_sends_have_a_name_in_each_kernel_and_hinted_ones_their_own() {
        let modes = ["copy", "nt", "adaptive"];
        let [unpatched, patched] = Against::Unpatched.names(&modes);
        assert_eq!(unpatched, [("copy", UNPATCHED)]);
        assert_eq!(patched, [("copy", PATCHED), ("nt", "nt"), ("adaptive", "adaptive")]);
        let [unpatched, patched] = Against::Unpatched.names(&["copy", "idle", "nt"]);
        assert_eq!(unpatched, [("copy", UNPATCHED), ("idle", "idle")]);
        assert_eq!(patched, [("copy", PATCHED), ("nt", "nt")]);
        assert_eq!(Against::Unpatched.form(&modes), "boots-with-hints");
        // A record of plain sends alone is called what it always was.
        assert_eq!(Against::Unpatched.form(&modes[..1]), "boots");
        assert_eq!(Against::Unpatched.names(&modes[..1])[1], [("copy", PATCHED)]);
        assert_eq!(Against::Unpatched.measured(&[]).len(), 3);
        assert_eq!(Against::Module.measured(&[]), [Mode::Nt]);
    }

    #[test]
    fn only_a_kernel_without_the_patches_may_lack_a_mode() {
        let mut sketch = Sketch::new(&["copy"]);
        sketch.pair(0, 0, &[1000]);
        let record = Record { complete: true, ..sketch.record() };
        assert!(check(&record, 0, 0, PATCHED).is_ok());
        assert!(check(&record, NOT_AVAILABLE, 0, UNPATCHED).is_ok());
        assert!(check(&record, NOT_AVAILABLE, 0, PATCHED).is_err());
        assert!(check(&record, 1, 0, UNPATCHED).is_err());
    }
}
