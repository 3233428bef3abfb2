//! Two kernels, boot by boot: this one beside a stock one, beside one with the module, or beside
//! one with another series.
//!
//! One boot of each makes a pair, and every second pair runs the other way
//! round. A boot gives one sample a cell and mode: where a kernel puts its pages
//! differs from boot to boot, so boots are what the interval has to be drawn from.

use std::convert::Infallible;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use ntcopy_kernel::temporary::Folder;
use ntcopy_kernel::{BuildOptions, Built, Error, Interrupts, Series, boot, module, progress};
use ntcopy_record::lists::unique;
use ntcopy_record::{
    End, Header, Kernel, Line, Mode as RecordedMode, ReadError, Record, Sample, add_counts,
    add_series,
};

use super::{Inside, Request};
use crate::experiment::Mode;
use crate::experiments::app;
use crate::plan::group_order;
use crate::sample::{WriteError, Writer};

/// What this program ends with where a mode that was named is not to be had: hinted ones are not in
/// a kernel without the patches.
const NOT_AVAILABLE: u8 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Against {
    /// Sends of every mode that was asked for with the patches, plain ones without. Where these are
    /// all, no send was hinted since boot.
    Stock,
    /// Each mode with the patches, and with the module.
    Module,
    /// Each mode with another series, in this folder, and with this one.
    Series(PathBuf),
}

impl FromStr for Against {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "stock" => Against::Stock,
            "module" => Against::Module,
            folder => Against::Series(folder.into()),
        })
    }
}

impl Against {
    /// The modes of a boot where none are asked for.
    pub const MODES: [Mode; 2] = [Mode::Plain, Mode::Hinted];

    /// Why there is nothing to compare with, if there is nothing.
    pub fn check(&self) -> Result<(), String> {
        let Against::Series(folder) = self else { return Ok(()) };
        let shown = folder.display();
        match Series::from_folder(folder) {
            Ok(series) if !series.patches.is_empty() => Ok(()),
            Ok(_) => Err(format!("{shown} holds no patches: name a folder like out/series/7.3")),
            Err(_) => Err(format!("{shown} is neither stock, module nor a folder of patches")),
        }
    }

    /// The kernels, the baseline's first.
    fn kernels(&self) -> [Kernel; 2] {
        match self {
            Against::Stock => [Kernel::Stock, Kernel::Patched],
            Against::Module => [Kernel::Patched, Kernel::Module],
            Against::Series(_) => [Kernel::OtherPatches, Kernel::Patched],
        }
    }

    /// What counts of a boot of each kernel: plain sends, and of other modes what the kernel has; of
    /// idle programs those of the baseline's.
    fn taken<'a>(&self, modes: &[&'a str]) -> [Vec<Taken<'a>>; 2] {
        let all: Vec<&str> = unique([PLAIN].into_iter().chain(modes.iter().copied()));
        let [baseline, other] = self.kernels();
        let of = |kernel: Kernel| -> Vec<Taken<'a>> {
            let here = all.iter().filter(|mode| kernel != Kernel::Stock || **mode == PLAIN);
            let one = |mode: &&'a str| Taken { mode, named: RecordedMode::named(*mode).on(kernel) };
            here.map(one).collect()
        };
        let (mut first, second) = (of(baseline), of(other));
        let idle = RecordedMode { kernel: Some(baseline), ..RecordedMode::named(IDLE) };
        first.insert(1, Taken { mode: IDLE, named: idle });
        [first, second]
    }
}

/// What a boot's own record calls plain sends.
const PLAIN: &str = Mode::Plain.as_str();

/// The mode of a program that sends nothing large: a property of the baseline's kernel.
const IDLE: &str = app::AppMode::Idle.as_str();

/// A mode that counts of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Taken<'a> {
    /// As the boot's record calls it.
    mode: &'a str,
    /// What it is in the common record.
    named: RecordedMode,
}

struct Side<'a> {
    is: Kernel,
    taken: Vec<Taken<'a>>,
    kernel: Built,
    /// To be loaded before anything is measured.
    module: Option<PathBuf>,
}

/// Why there is no comparison, or only a part of one.
#[derive(Debug, thiserror::Error)]
pub enum AgainstError {
    #[error(transparent)]
    Guest(#[from] Error),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("boot {boot} of the {kernel} failed: {why}")]
    Failed { boot: u32, kernel: &'static str, why: String },
    /// A boot's program ended before it measured anything, and has said why.
    #[error("nothing was measured: exit code {0}")]
    NothingMeasured(u8),
}

/// Builds both kernels, boots them in turns, and writes one record of it all.
///
/// `pairs` is the number of boots of each; the request's arguments make the
/// inside measure `modes`, as far as its kernel has them, and idle if it is measured. `settled` gives arguments for
/// all boots after the first, by the first one's record: what it found out, and the
/// others have to keep to.
pub fn measure(
    request: &Request,
    against: &Against,
    modes: &[&str],
    pairs: u32,
    settled: fn(&Record) -> Vec<OsString>,
) -> Result<Vec<String>, AgainstError> {
    boot::check_boot(request.kernel)?;
    let mut request = request.clone();
    // Between two boots, too: the folder is to go.
    let interrupts = Interrupts::arm()?;
    let folder = Folder::new("ntcopy-record-")?;
    let sides = sides(&request, against, modes)?;
    let mut writer = None;
    let mut complaints = Vec::new();
    for pair in 0..pairs {
        let mut position = 0;
        for side in group_order(&[&sides[0], &sides[1]], pair) {
            let place = folder.path().join(format!("{pair}{}", side.is.suffix()));
            interrupts.check()?;
            let inside = boot(&request, side, &place)?;
            complaints.extend(inside.complaints);
            if inside.code != 0 && !place.exists() {
                return Err(AgainstError::NothingMeasured(inside.code));
            }
            let record = Record::read(&place)?;
            check(&record, inside.code, pair, side.is)?;
            let writer = match &mut writer {
                Some(writer) => writer,
                None => {
                    request.args.extend(settled(&record));
                    writer.insert(begin(&request, &sides, &record)?)
                }
            };
            for taken in &side.taken {
                samples(&record, taken, pair, position)
                    .into_iter()
                    .try_for_each(|sample| writer.line(&Line::Sample(sample)))?;
                position += 1;
            }
        }
    }
    if let Some(mut writer) = writer {
        let ended_unix_ns = crate::run::unix_now_ns();
        writer.line(&Line::End(End {
            samples: writer.samples(),
            ended_unix_ns,
            beside: [].into(),
        }))?;
    }
    Ok(complaints)
}

/// Both kernels, built; the baseline first.
fn sides<'a>(
    request: &Request,
    against: &Against,
    modes: &[&'a str],
) -> Result<[Side<'a>; 2], Error> {
    let [baseline, other] = against.taken(modes);
    let options = BuildOptions::from_env(request.kernel)?;
    let build =
        |options: &BuildOptions| ntcopy_kernel::build(options, &mut *progress::for_stderr());
    let of = |series| build(&BuildOptions { series, ..options.clone() });
    let [first, second] = against.kernels();
    let sides = |one, two, module| {
        let first = Side { is: first, taken: baseline, kernel: one, module: None };
        [first, Side { is: second, taken: other, kernel: two, module }]
    };
    Ok(match against {
        Against::Stock => sides(of(options.series.clone().neutral())?, build(&options)?, None),
        Against::Module => {
            let kind = request.kernel.for_module().ok_or_else(|| {
                Error::NotHere(format!("there is no '{}' for the module", request.kernel))
            })?;
            let its_options = BuildOptions::from_env(kind)?;
            let mut progress = progress::for_stderr();
            let (kernel, module) = module::build_for(&its_options, None, progress.as_mut())?;
            sides(build(&options)?, kernel, Some(module))
        }
        Against::Series(folder) => {
            let old = of(Series::from_folder(folder)?.for_kernel(request.kernel))?;
            sides(old, build(&options)?, None)
        }
    })
}

fn boot(request: &Request, side: &Side<'_>, place: &Path) -> Result<Inside, Error> {
    let request =
        Request { kernel: side.kernel.kind, place: place.to_path_buf(), ..request.clone() };
    super::boot(&request, &side.kernel, side.module.as_deref())
}

fn check(record: &Record, code: u8, boot: u32, kernel: Kernel) -> Result<(), AgainstError> {
    let why = match record.errors.first() {
        Some(error) => error.what.clone(),
        None if code == NOT_AVAILABLE && kernel == Kernel::Stock && !record.samples.is_empty() => {
            return Ok(());
        }
        None if code != 0 => format!("exit code {code}"),
        None if !record.complete => "its record was cut short".to_owned(),
        None => return Ok(()),
    };
    Err(AgainstError::Failed { boot, kernel: kernel.words(), why })
}

/// Begins the common record: the header with the modes of both kernels, and of the first boot its
/// machine and its cells.
fn begin(request: &Request, sides: &[Side<'_>], first: &Record) -> Result<Writer, WriteError> {
    let mut writer = Writer::create(&request.place)?;
    let command = request.command.clone();
    let taken = sides.iter().flat_map(|side| &side.taken);
    let modes: Vec<RecordedMode> = taken.map(|taken| taken.named.clone()).collect();
    let baseline = modes.first().map_or_else(String::new, |mode| mode.mode.clone());
    writer.line(&Line::Header(Header { command, baseline, modes, ..first.header.clone() }))?;
    writer.line(&Line::Machine(Box::new(first.machine.clone())))?;
    first.cells.iter().cloned().try_for_each(|cell| writer.line(&Line::Cell(cell)))?;
    Ok(writer)
}

/// One sample a cell: all that the boot measured of a mode together, under its name.
fn samples(record: &Record, taken: &Taken<'_>, pair: u32, position: u32) -> Vec<Sample> {
    let whole = |cell: u32| {
        let of_cell = record.samples.iter().filter(|sample| sample.cell == cell);
        let mut ours = of_cell.filter(|sample| sample.mode == taken.mode);
        let first = ours.next()?.clone();
        let mode = taken.named.mode.clone();
        let mut whole = Sample { cell, pair, position, mode, ..first };
        for sample in ours {
            whole.bytes += sample.bytes;
            whole.elapsed_ns += sample.elapsed_ns;
            add_counts(&mut whole.phases_ns, &sample.phases_ns);
            add_counts(&mut whole.counters, &sample.counters);
            add_series(&mut whole.series, &sample.series);
        }
        Some(whole)
    };
    record.cells.iter().filter_map(|cell| whole(cell.cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ntcopy_record::testing::pairs;

    fn taken<'a>(mode: &'a str, kernel: Kernel) -> Taken<'a> {
        Taken { mode, named: RecordedMode::named(mode).on(kernel) }
    }

    #[test]
    fn a_boot_is_one_sample_a_cell() {
        let record = pairs(&["plain", "hinted"], 5, &[1000, 3000]);
        let samples_of = |mode, kernel| samples(&record, &taken(mode, kernel), 7, 1);
        let samples = samples_of("plain", Kernel::Stock);
        let [sample] = &samples[..] else { panic!("one sample: {samples:?}") };
        assert_eq!((sample.pair, sample.position, sample.mode.as_str()), (7, 1, "plain-stock"));
        assert_eq!(sample.bytes, 5 * record.samples[0].bytes);
        assert_eq!(sample.phases_ns["send"], 5 * record.samples[0].phases_ns["send"]);
        let [hinted] = &samples_of("hinted", Kernel::Module)[..] else { panic!("one sample") };
        assert_eq!(hinted.mode, "hinted-module");
        assert!(hinted.elapsed_ns < sample.elapsed_ns, "it is the other mode's time");
    }

    #[test]
    fn what_was_counted_is_added_up_and_a_mark_is_the_worst() {
        let mut record = pairs(&["hinted"], 2, &[1000]);
        for (sample, permille) in record.samples.iter_mut().zip([900, 700]) {
            let counters = [("nontemporal_bytes", 10), ("x:counted_permille", permille)];
            sample.counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
            sample.series.insert("answered".to_owned(), vec![permille]);
        }
        record.samples[1].counters.insert("too_small_bytes".to_owned(), 3);
        let sample = &samples(&record, &taken("hinted", Kernel::Patched), 0, 0)[0];
        assert_eq!(sample.counters["nontemporal_bytes"], 20);
        assert_eq!(sample.counters["too_small_bytes"], 3);
        assert_eq!(sample.counters["x:counted_permille"], 700);
        assert_eq!(sample.series["answered"], [900, 700]);
    }

    #[test]
    fn a_mode_is_named_after_its_kernel_and_a_stock_one_sends_plainly_alone() {
        let names = |against: &Against| {
            let name = |taken: Taken<'_>| taken.named.mode;
            let sides = against.taken(&["plain", "hinted"]);
            sides.map(|side| side.into_iter().map(name).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names(&Against::Stock), ["plain-stock idle", "plain hinted"]);
        let module = "plain-module hinted-module";
        assert_eq!(names(&Against::Module), ["plain idle hinted", module]);
        let other: Against = "out/series/7.3".parse().unwrap();
        assert_eq!(names(&other), ["plain-old idle hinted-old", "plain hinted"]);
    }

    #[test]
    fn what_is_no_word_is_a_folder_and_has_to_hold_patches() {
        let folder = tempfile::tempdir().unwrap();
        let against = Against::Series(folder.path().to_path_buf());
        assert!(against.check().unwrap_err().contains("holds no patches"));
        std::fs::write(folder.path().join("0001-x.patch"), "x").unwrap();
        assert_eq!(against.check(), Ok(()));
        let misspelt: Against = "stok".parse().unwrap();
        assert!(misspelt.check().unwrap_err().contains("neither stock, module nor"));
        assert_eq!("module".parse::<Against>().unwrap().check(), Ok(()));
    }

    #[test]
    fn only_a_kernel_without_the_patches_may_lack_a_mode() {
        let record = Record { complete: true, ..pairs(&["plain"], 1, &[1000]) };
        assert!(check(&record, 0, 0, Kernel::Patched).is_ok());
        assert!(check(&record, NOT_AVAILABLE, 0, Kernel::Stock).is_ok());
        assert!(check(&record, NOT_AVAILABLE, 0, Kernel::Patched).is_err());
        assert!(check(&record, 1, 0, Kernel::Stock).is_err());
    }
}
