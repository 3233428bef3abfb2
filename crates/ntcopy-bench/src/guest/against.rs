//! Two kernels, boot by boot: this one beside an unpatched one, beside one with the module, or beside
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
use ntcopy_kernel::{BuildOptions, Built, Error, Series, boot, module, progress};
use ntcopy_record::{
    Cell, End, ExperimentKind, Header, Line, ReadError, Record, Sample, add_counts, add_series,
};

use super::{Inside, Request};
use crate::experiment::Mode;
use crate::experiments::app;
use crate::plan::group_order;
use crate::sample::{WriteError, Writer};

/// The mode of plain sends in a kernel with the patches.
pub const PATCHED: &str = "patched";
/// The mode of plain sends in a kernel without them: the baseline.
pub const UNPATCHED: &str = "unpatched";
/// The mode of all sends in a kernel without the patches that has the module.
pub const MODULE: &str = "module";
/// The mode of all sends in a kernel with the patches: the baseline of [`MODULE`].
pub const SERIES: &str = "series";
/// The mode of all sends in a kernel with another series: the baseline of [`NEW`].
pub const OLD: &str = "old";
/// The mode of all sends in a kernel with this series.
pub const NEW: &str = "new";

/// What this program ends with where a mode that was named is not to be had: hinted ones are not in
/// a kernel without the patches.
const NOT_AVAILABLE: u8 = 3;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Against {
    /// Sends of every mode that was asked for with the patches, plain ones without. Where these are
    /// all, no send was hinted since boot.
    Unpatched,
    /// Each mode by the module and by the patches.
    Module,
    /// Each mode by another series, in this folder, and by this one.
    Series(PathBuf),
}

impl FromStr for Against {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text {
            "unpatched" => Against::Unpatched,
            "module" => Against::Module,
            folder => Against::Series(folder.into()),
        })
    }
}

impl Against {
    /// The modes of a boot where none are asked for.
    pub fn modes(&self) -> &'static [Mode] {
        match self {
            Against::Unpatched | Against::Series(_) => &[Mode::Copy, Mode::Nt],
            Against::Module => &[Mode::Nt],
        }
    }

    /// Why there is nothing to compare with, if there is nothing.
    pub fn check(&self) -> Result<(), String> {
        let Against::Series(folder) = self else { return Ok(()) };
        let shown = folder.display();
        match Series::from_folder(folder) {
            Ok(series) if !series.patches.is_empty() => Ok(()),
            Ok(_) => Err(format!("{shown} holds no patches: name a folder like out/series/7.3")),
            Err(_) => Err(format!("{shown} is neither unpatched, module nor a folder of patches")),
        }
    }

    /// Whether every mode is compared with itself in the other kernel, so that each has cells of its
    /// own and a mode of the common record is a kernel.
    fn is_by_mode(&self) -> bool {
        matches!(self, Against::Module | Against::Series(_))
    }

    fn form(&self, modes: &[&str]) -> &'static str {
        match self {
            Against::Unpatched if modes.iter().any(|mode| *mode != COPY) => "boots-with-hints",
            Against::Unpatched => "boots",
            Against::Module | Against::Series(_) => "boots-by-mode",
        }
    }

    /// The modes that have cells of their own; a single none where all share them.
    fn groups<'a>(&self, modes: &[&'a str]) -> Vec<Option<&'a str>> {
        if !self.is_by_mode() {
            return vec![None];
        }
        modes.iter().copied().map(Some).collect()
    }

    /// What counts of a boot of the baseline, and of the other kernel.
    fn taken<'a>(&self, modes: &[&'a str]) -> [Vec<Taken<'a>>; 2] {
        let taken = |mode, name| Taken { mode, name, group: 0 };
        let by_mode = |baseline, other| {
            let mut sides = [Vec::new(), Vec::new()];
            for (group, mode) in self.groups(modes).into_iter().flatten().enumerate() {
                sides[0].push(Taken { mode, name: baseline, group });
                sides[0].push(Taken { mode: IDLE, name: IDLE, group });
                sides[1].push(Taken { mode, name: other, group });
            }
            sides
        };
        match self {
            Against::Unpatched => {
                let hinted = modes.iter().copied().filter(|mode| *mode != COPY);
                let mut patched = vec![taken(COPY, PATCHED)];
                patched.extend(hinted.map(|mode| taken(mode, mode)));
                [vec![taken(COPY, UNPATCHED), taken(IDLE, IDLE)], patched]
            }
            Against::Module => by_mode(SERIES, MODULE),
            Against::Series(_) => by_mode(OLD, NEW),
        }
    }
}

/// What a boot's own record calls plain sends.
const COPY: &str = "copy";

/// The mode of a program that sends nothing large: a property of the baseline's kernel.
const IDLE: &str = app::AppMode::Idle.as_str();

/// A mode that counts of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Taken<'a> {
    /// As the boot's record calls it.
    mode: &'a str,
    /// As the common record does.
    name: &'a str,
    /// Which of the [`Against::groups`] of the common record's cells it is in.
    group: usize,
}

struct Side<'a> {
    taken: Vec<Taken<'a>>,
    kernel: Built,
    /// To be loaded before anything is measured.
    module: Option<PathBuf>,
}

impl Side<'_> {
    /// What it is called: by its first mode.
    fn name(&self) -> &str {
        self.taken.first().map_or("", |taken| taken.name)
    }
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
    #[error("boot {boot} of the {kernel} kernel failed: {why}")]
    Failed { boot: u32, kernel: String, why: String },
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
    let folder = Folder::new("ntcopy-record-")?;
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
                    request.args.extend(settled(&record));
                    let cells = (against.form(modes), &against.groups(modes)[..]);
                    writer.insert(begin(&request, sides[0].name(), cells, &record)?)
                }
            };
            for taken in &side.taken {
                samples(&record, *taken, pair, position)
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
    let side = |taken, kernel, module| Side { taken, kernel, module };
    let series = |taken, kernel| side(taken, kernel, None);
    Ok(match against {
        Against::Unpatched => {
            let unpatched = of(options.series.clone().neutral())?;
            [series(baseline, unpatched), series(other, build(&options)?)]
        }
        Against::Module => {
            let kind = request.kernel.for_module().ok_or_else(|| {
                Error::NotHere(format!("there is no '{}' for the module", request.kernel))
            })?;
            let its_options = BuildOptions::from_env(kind)?;
            let mut progress = progress::for_stderr();
            let (kernel, module) = module::build_for(&its_options, None, progress.as_mut())?;
            [series(baseline, build(&options)?), side(other, kernel, Some(module))]
        }
        Against::Series(folder) => {
            let old = of(Series::from_folder(folder)?.for_kernel(request.kernel))?;
            [series(baseline, old), series(other, build(&options)?)]
        }
    })
}

fn boot(request: &Request, side: &Side<'_>, place: &Path) -> Result<Inside, Error> {
    let request =
        Request { kernel: side.kernel.kind, place: place.to_path_buf(), ..request.clone() };
    super::boot(&request, &side.kernel, side.module.as_deref())
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

/// Begins the common record: the header and the machine of the first boot, its cells for each group.
fn begin(
    request: &Request,
    baseline: &str,
    (form, groups): (&str, &[Option<&str>]),
    first: &Record,
) -> Result<Writer, WriteError> {
    let mut writer = Writer::create(&request.place)?;
    let command = request.command.clone();
    let baseline = baseline.to_owned();
    writer.line(&Line::Header(Header { command, baseline, ..first.header.clone() }))?;
    writer.line(&Line::Machine(Box::new(first.machine.clone())))?;
    let name = match first.header.experiment {
        ExperimentKind::Http | ExperimentKind::App => "boots",
        _ => "form",
    };
    for (group, sends) in groups.iter().enumerate() {
        for cell in &first.cells {
            let mut cell = Cell { cell: number(first, group, cell.cell), ..cell.clone() };
            cell.params.insert(name.to_owned(), form.into());
            if let Some(sends) = sends {
                cell.params.insert("sends".to_owned(), (*sends).into());
            }
            writer.line(&Line::Cell(cell))?;
        }
    }
    Ok(writer)
}

/// The number in the common record of a cell of a boot.
fn number(boot: &Record, group: usize, cell: u32) -> u32 {
    let cells = boot.cells.len() * group;
    u32::try_from(cells).unwrap_or(u32::MAX).saturating_add(cell)
}

/// One sample a cell: all that the boot measured of a mode together, under its name.
fn samples(record: &Record, taken: Taken<'_>, pair: u32, position: u32) -> Vec<Sample> {
    let whole = |cell: u32| {
        let of_cell = record.samples.iter().filter(|sample| sample.cell == cell);
        let mut ours = of_cell.filter(|sample| sample.mode == taken.mode);
        let first = ours.next()?.clone();
        let (cell, mode) = (number(record, taken.group, cell), taken.name.to_owned());
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

    #[test]
    fn a_boot_is_one_sample_a_cell() {
        let record = pairs(&["copy", "nt"], 5, &[1000, 3000]);
        let samples_of = |mode, name| samples(&record, Taken { mode, name, group: 0 }, 7, 1);
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
        let mut record = pairs(&["nt"], 2, &[1000]);
        for (sample, permille) in record.samples.iter_mut().zip([900, 700]) {
            let counters = [("nontemporal_bytes", 10), ("x:counted_permille", permille)];
            sample.counters = counters.map(|(name, count)| (name.to_owned(), count)).into();
            sample.series.insert("answered".to_owned(), vec![permille]);
        }
        record.samples[1].counters.insert("too_small_bytes".to_owned(), 3);
        let sample = &samples(&record, Taken { mode: "nt", name: "nt", group: 0 }, 0, 0)[0];
        assert_eq!(sample.counters["nontemporal_bytes"], 20);
        assert_eq!(sample.counters["too_small_bytes"], 3);
        assert_eq!(sample.counters["x:counted_permille"], 700);
        assert_eq!(sample.series["answered"], [900, 700]);
    }

    fn names<'a>(against: &Against, modes: &[&'a str]) -> [Vec<(&'a str, &'a str)>; 2] {
        let pair = |taken: Taken<'a>| (taken.mode, taken.name);
        against.taken(modes).map(|side| side.into_iter().map(pair).collect())
    }

    #[test]
    fn plain_sends_have_a_name_in_each_kernel_and_hinted_ones_their_own() {
        let modes = ["copy", "nt"];
        let [unpatched, patched] = names(&Against::Unpatched, &modes);
        assert_eq!(unpatched, [("copy", UNPATCHED), (IDLE, IDLE)]);
        assert_eq!(patched, [("copy", PATCHED), ("nt", "nt")]);
        assert_eq!(Against::Unpatched.form(&modes), "boots-with-hints");
        // A record of plain sends alone is called what it always was.
        assert_eq!(Against::Unpatched.form(&modes[..1]), "boots");
        assert_eq!(names(&Against::Unpatched, &modes[..1])[1], [("copy", PATCHED)]);
    }

    #[test]
    fn of_two_series_each_mode_has_cells_of_its_own_and_a_kernel_is_a_mode() {
        let against: Against = "out/series/7.3".parse().unwrap();
        let modes = ["copy", "nt"];
        assert_eq!(against.groups(&modes), [Some("copy"), Some("nt")]);
        let [old, new] = names(&against, &modes);
        assert_eq!(old, [("copy", OLD), (IDLE, IDLE), ("nt", OLD), (IDLE, IDLE)]);
        assert_eq!(new, [("copy", NEW), ("nt", NEW)]);
        let boot = pairs(&["copy", "nt"], 1, &[1000, 3000]);
        let of_nt = Taken { mode: "nt", name: NEW, group: 1 };
        let sample = &samples(&boot, of_nt, 3, 2)[0];
        assert_eq!((sample.cell as usize, sample.mode.as_str()), (boot.cells.len(), NEW));
        assert_eq!(sample.elapsed_ns, boot.samples[1].elapsed_ns);
    }

    #[test]
    fn what_is_no_word_is_a_folder_and_has_to_hold_patches() {
        let folder = tempfile::tempdir().unwrap();
        let against = Against::Series(folder.path().to_path_buf());
        assert!(against.check().unwrap_err().contains("holds no patches"));
        std::fs::write(folder.path().join("0001-x.patch"), "x").unwrap();
        assert_eq!(against.check(), Ok(()));
        let misspelt: Against = "unpached".parse().unwrap();
        assert!(misspelt.check().unwrap_err().contains("neither unpatched, module nor"));
        assert_eq!("module".parse::<Against>().unwrap().check(), Ok(()));
    }

    #[test]
    fn only_a_kernel_without_the_patches_may_lack_a_mode() {
        let record = Record { complete: true, ..pairs(&["copy"], 1, &[1000]) };
        assert!(check(&record, 0, 0, PATCHED).is_ok());
        assert!(check(&record, NOT_AVAILABLE, 0, UNPATCHED).is_ok());
        assert!(check(&record, NOT_AVAILABLE, 0, PATCHED).is_err());
        assert!(check(&record, 1, 0, UNPATCHED).is_err());
    }
}
