//! Builds a kernel of a source, into the cache.

mod headers;
pub(crate) mod make;
mod patch;
mod source;
mod stock;

pub(crate) use source::Prepared;

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cache::{Built, Cache, HEADERS, Inputs, Meta, Part};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::{Kind, RunsAs};
use crate::progress::Progress;
use crate::series::Series;
use crate::source::tree::Tree;
use crate::{config, tools};

#[derive(Clone, Debug)]
pub struct BuildOptions {
    pub kind: Kind,
    pub cache: Cache,
    /// A source tree of the user's own, instead of a package.
    pub tree: Option<PathBuf>,
    pub series: Series,
    /// The configuration, as a fragment on top of `allnoconfig`; empty for a stock kernel.
    pub fragment: String,
    pub jobs: usize,
    /// Where the system's apt sources are, `/etc/apt`.
    pub etc_apt: PathBuf,
}

impl BuildOptions {
    /// The kernel of this program, with what the environment says: `NTCOPY_CACHE`,
    /// `NTCOPY_LINUX`, `NTCOPY_SERIES`.
    pub fn from_env(kind: Kind) -> Result<Self> {
        let tree = std::env::var_os(crate::source::SOURCE_VARIABLE);
        let tree = tree.filter(|value| !value.is_empty()).map(PathBuf::from);
        Ok(Self {
            kind,
            cache: Cache::locate()?,
            tree: tree.filter(|_| !kind.is_stock()),
            series: Series::current(kind)?,
            fragment: config::fragment(kind),
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            etc_apt: "/etc/apt".into(),
        })
    }

    pub(crate) fn inputs(&self) -> Inputs {
        Inputs::new(self.kind, &self.series, &self.fragment)
    }
}

/// Gives the kernel from the cache, and builds it first, or fetches it, when it is not there.
///
/// Where no source of Linux 7.3 is to be had, `um` is Linux 6.12, and a note says so.
///
/// SIGINT, SIGTERM and SIGHUP end the build and leave nothing half-done.
pub fn build(options: &BuildOptions, progress: &mut dyn Progress) -> Result<Built> {
    match build_exactly(options, progress) {
        Err(error @ Error::NoSource { .. }) => match older(options) {
            Some(older) => {
                progress.note(&format!(
                    "{error}; taking Linux 6.12 instead, whose system calls are slower in user \
                     mode, and which has one CPU there"
                ));
                build_exactly(&older, progress)
            }
            None => Err(error),
        },
        result => result,
    }
}

/// Whether the cache has it.
pub(crate) fn is_built(options: &BuildOptions) -> Result<bool> {
    let interrupts = Interrupts::arm()?;
    let open = |root| Tree::open(root, &interrupts);
    let tree = options.tree.as_deref().map(open).transpose()?;
    let found = options.cache.find(&options.inputs(), tree.as_ref().map(Tree::id).as_ref())?;
    Ok(found.is_some())
}

/// What `um` is where no new source is to be had; nothing where exactly this one was asked for.
fn older(options: &BuildOptions) -> Option<BuildOptions> {
    let kind = Kind::Um612;
    let is_ours = options.kind == Kind::Um
        && options.tree.is_none()
        && options.series == Series::embedded(Kind::Um.release());
    let series = Series::embedded(kind.release());
    let fragment = config::fragment(kind);
    is_ours.then(|| BuildOptions { kind, series, fragment, ..options.clone() })
}

fn build_exactly(options: &BuildOptions, progress: &mut dyn Progress) -> Result<Built> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Error::NotHere("kernels are built on x86-64 Linux only".into()));
    }
    let interrupts = Interrupts::arm()?;
    if options.tree.is_some() {
        tools::check(options.kind, false)?;
    }
    let open = |root| Tree::open(root, &interrupts);
    let tree = options.tree.as_deref().map(open).transpose()?;
    let tree_id = tree.as_ref().map(Tree::id);
    let inputs = options.inputs();
    let found = |cache: &Cache| -> Result<Option<Built>> {
        let found = cache.find(&inputs, tree_id.as_ref())?;
        Ok(found.map(|built| Built { kind: options.kind, ..built }))
    };
    if let Some(built) = found(&options.cache)? {
        return Ok(built);
    }
    tools::check(options.kind, tree.is_none())?;
    let _lock = options.cache.lock(Part::Kernels, &interrupts, progress)?;
    if let Some(built) = found(&options.cache)? {
        return Ok(built);
    }
    let mut work = Work { options, interrupts: &interrupts, progress };
    match options.kind.is_stock() {
        true => work.fetch(&inputs),
        false => work.build(tree.as_ref(), &inputs),
    }
}

/// Puts the source of a kernel, patched and compiled, into a folder, for whoever changes it and
/// compiles it again with [`make::command`]. Gives the source's own folder.
pub fn compile_into(
    options: &BuildOptions,
    folder: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let interrupts = Interrupts::arm()?;
    tools::check(options.kind, options.tree.is_none())?;
    let prepared = prepare(options, folder, &interrupts, progress)?;
    let mut work = Work { options, interrupts: &interrupts, progress };
    work.make(&prepared, &folder.join("build.log"))?;
    Ok(prepared.source)
}

/// Gets the source that the options say into `partial`, with the series on it. Packages are
/// downloaded under the cache's lock; nobody is to wait for it while the source is compiled.
pub(crate) fn prepare(
    options: &BuildOptions,
    partial: &Path,
    interrupts: &Interrupts,
    progress: &mut dyn Progress,
) -> Result<Prepared> {
    let _lock = options.cache.lock(Part::Kernels, interrupts, progress)?;
    let tree = options.tree.as_deref().map(|root| Tree::open(root, interrupts)).transpose()?;
    let mut work = Work { options, interrupts, progress };
    match tree {
        Some(tree) => work.take_tree(&tree, partial),
        None => work.take_package(partial),
    }
}

struct Work<'a> {
    options: &'a BuildOptions,
    interrupts: &'a Interrupts,
    progress: &'a mut dyn Progress,
}

impl Work<'_> {
    fn build(&mut self, tree: Option<&Tree>, inputs: &Inputs) -> Result<Built> {
        let cache = &self.options.cache;
        let partial = cache.partial(&cache.kernels())?;
        let prepared = match tree {
            Some(tree) => self.take_tree(tree, partial.path())?,
            None => self.take_package(partial.path())?,
        };
        let key = inputs.key(&prepared.id, &prepared.version);
        let out = partial.path().join("out");
        fs::create_dir_all(&out).doing("creating", &out)?;
        let log = out.join("build.log");
        self.make(&prepared, &log).map_err(|error| keep_log(cache, &key, &log, error))?;
        let meta = self.meta(&prepared, inputs)?;
        let image = match self.options.kind.runs_as() {
            RunsAs::Um => "linux",
            RunsAs::Qemu => "arch/x86/boot/bzImage",
        };
        for (from, to) in [(image, "linux"), (".config", "config")] {
            let (from, to) = (prepared.source.join(from), out.join(to));
            fs::copy(&from, &to).doing("copying to", &to)?;
        }
        if self.options.kind.is_for_module() {
            headers::keep(&prepared.source, &out.join(HEADERS), self.interrupts)?;
        }
        self.install(partial, &key, meta)
    }

    /// Configures and compiles.
    fn make(&mut self, prepared: &Prepared, log: &Path) -> Result<()> {
        self.configure(prepared, log)?;
        self.compile(prepared, log)
    }

    fn meta(&self, prepared: &Prepared, inputs: &Inputs) -> Result<Meta> {
        let release = prepared.source.join("include/config/kernel.release");
        let release = fs::read_to_string(&release).doing("reading", &release)?;
        Ok(Meta {
            patches: self.options.series.patches.iter().map(|p| p.name.clone()).collect(),
            ..inputs.meta(&prepared.version, release.trim(), prepared.id.clone())
        })
    }

    /// Puts the kernel into the cache: one rename, after everything is in place.
    fn install(&mut self, partial: TempDir, key: &str, meta: Meta) -> Result<Built> {
        let cache = &self.options.cache;
        let out = partial.path().join("out");
        let text = serde_json::to_string_pretty(&meta).map_err(std::io::Error::from);
        let path = out.join("meta.json");
        fs::write(&path, text.doing("writing", &path)? + "\n").doing("writing", &path)?;
        let dir = cache.kernels().join(key);
        if dir.exists() {
            let old = partial.path().join("old");
            fs::rename(&dir, &old).doing("replacing", &dir)?;
        }
        fs::rename(&out, &dir).doing("moving the kernel to", &dir)?;
        self.progress.begin("clearing up");
        drop(partial);
        self.progress.end();
        let kind = self.options.kind;
        Ok(Built { path: dir.join("linux"), dir, key: key.into(), kind, meta })
    }
}

/// Saves the log of a failed build from the work area, and lets the error say where it is.
pub(crate) fn keep_log(cache: &Cache, key: &str, log: &Path, error: Error) -> Error {
    let Error::Build { step, errors, .. } = error else { return error };
    let kept = cache.logs().join(format!("{key}.log"));
    let moved = fs::create_dir_all(cache.logs()).and_then(|()| fs::copy(log, &kept));
    let log = if moved.is_ok() { kept } else { "(could not be kept)".into() };
    Error::Build { step, errors, log }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Release;

    #[derive(Default)]
    struct Notes(Vec<String>);

    impl Progress for Notes {
        fn note(&mut self, text: &str) {
            self.0.push(text.to_owned());
        }
        fn begin(&mut self, _step: &str) {}
        fn advance(&mut self, _done: u64) {}
        fn end(&mut self) {}
    }

    /// What is said where no mirror is known at all.
    fn notes(kind: Kind, series: Series) -> String {
        let home = tempfile::tempdir().unwrap();
        let options = BuildOptions {
            kind,
            cache: Cache::at(home.path().join("cache")),
            tree: None,
            series,
            fragment: config::fragment(kind),
            jobs: 1,
            etc_apt: home.path().join("etc"),
        };
        let mut notes = Notes::default();
        let error = build(&options, &mut notes).unwrap_err();
        assert!(matches!(error, Error::NoSource { .. }), "{error}");
        notes.0.join("\n")
    }

    #[test]
    fn without_a_new_source_um_is_the_older_kernel_and_a_word_says_so() {
        let um = notes(Kind::Um, Series::embedded(Release::Newest));
        assert!(um.contains("taking Linux 6.12 instead"), "{um}");
        let um612 = (Kind::Um612, Series::embedded(Release::V6_12));
        for (kind, series) in [(Kind::Um, Series::default()), um612] {
            assert_eq!(notes(kind, series), "", "{kind}");
        }
    }
}
