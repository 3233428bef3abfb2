//! Kernels for real machines: packages of the distribution's own kind, from its source, a
//! configuration and the series, by the kernel's own `make bindeb-pkg`.
//!
//! [`plan`] says what is going to be built and what that takes, [`package`] does it. A build lies in
//! the cache, in a folder that is named by what it is made of; one that was interrupted is gone on
//! with.

mod config;
mod error;
mod kconfig;
mod make;
mod next;
mod objects;
mod plan;
mod time;
mod workshop;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

pub use config::{Change, ConfigFrom};
pub use error::DebError;
pub use next::Next;
pub use plan::{Download, Plan, Room};
pub use time::Time;

use crate::build::{self, BuildOptions};
use crate::cache::{Inputs, SourceId};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::{Flavour, Kind, Release};
use crate::progress::Progress;
use crate::source::tree::Tree;
use crate::source::unpack::{self, Wanted as Files};
use crate::source::wanted::Wanted;
use crate::{cache, source, tools};
use config::Config;
use make::Making;
use plan::{Basis, Found};
use workshop::{Done, State, Workshop};

/// What to make packages of.
#[derive(Clone, Debug)]
pub struct PackageOptions {
    /// The configuration.
    pub config: ConfigFrom,
    /// What the kernel's release ends in, `-ntcopy`.
    pub local_version: String,
    /// Compile with information for debuggers where the configuration says so.
    pub debug_info: bool,
    /// Go on without the settings that the source does not know, however many.
    pub drop_unknown: bool,
    /// Where the packages go.
    pub out: PathBuf,
    /// Where source, series and cache come from, and how many compilers are at work.
    pub base: BuildOptions,
}

/// A package that was made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Deb {
    /// The file.
    pub path: PathBuf,
    /// Its size, in bytes.
    pub size_bytes: u64,
}

/// What came of it.
#[derive(Clone, Debug, Serialize)]
pub struct Packaged {
    /// What `uname -r` says in the kernel.
    pub release: String,
    /// The packages, the kernel's first.
    pub debs: Vec<Deb>,
    /// Settings that were on and that make has switched off: what they depend on is not there.
    pub lost: Vec<String>,
    /// Objects compiled, all runs together.
    pub objects: u64,
    /// Seconds that compiling took, all runs together.
    pub seconds: u64,
    /// What the build takes in the cache, in bytes.
    pub size_bytes: u64,
    /// What to do now.
    pub next: Next,
}

impl PackageOptions {
    /// Packages of this release's newest source, with what the environment says of cache, source
    /// and series.
    ///
    /// # Errors
    ///
    /// The same as [`BuildOptions::from_env`].
    pub fn from_env(release: Release, config: ConfigFrom) -> Result<Self> {
        let mut base = BuildOptions::from_env(Kind::X86(release, Flavour::Plain))?;
        // A configuration of a distribution wants every driver there is.
        base.keep_source = true;
        Ok(Self {
            config,
            local_version: "-ntcopy".into(),
            debug_info: true,
            drop_unknown: false,
            out: ".".into(),
            base,
        })
    }

    /// Whether this can be a part of a package's name: lower case, as Debian wants it.
    fn check_local_version(&self) -> Result<()> {
        let name = &self.local_version;
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+.-".contains(c);
        let ends_well = name.ends_with(|c: char| c.is_ascii_alphanumeric());
        if name.starts_with('-') && ends_well && name.len() <= 40 && name.chars().all(is_fit) {
            return Ok(());
        }
        Err(DebError::LocalVersion(name.clone()).into())
    }
}

/// What a build is made of, once the configuration was read.
struct Asked {
    config: Config,
    path: PathBuf,
    changes: Vec<Change>,
    inputs: Inputs,
    tree: Option<SourceId>,
}

impl Asked {
    fn read(options: &PackageOptions, interrupts: &Interrupts) -> Result<Self> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err(Error::NotHere("kernels are built on x86-64 Linux only".into()));
        }
        options.check_local_version()?;
        let (mut config, path) = config::read(&options.config, Path::new("/"), interrupts)?;
        let changes = config::adapt(&mut config, &options.local_version, options.debug_info);
        let inputs = Inputs::new(options.base.kind, &options.base.series, &config.text);
        let tree = options.base.tree.as_deref().map(Tree::open).transpose()?;
        let tree = tree.as_ref().map(Tree::id).transpose()?;
        Ok(Self { config, path, changes, inputs, tree })
    }

    fn plan(&self, options: &PackageOptions, found: Option<&Found<'_>>) -> Result<Plan> {
        let (config, config_path) = (&self.config, self.path.clone());
        plan::make(Basis { options, config, config_path, changes: self.changes.clone() }, found)
    }

    /// The build that an earlier run has begun.
    fn begun(&self, options: &PackageOptions) -> Result<Option<Workshop>> {
        if options.base.refresh {
            return Ok(None);
        }
        workshop::find(&options.base.cache, &self.inputs, self.tree.as_ref())
    }
}

/// Says what would be built, and what that would take. Downloads nothing, and leaves nothing: where
/// no source is here yet, what depends on it is not known, and the plan names the download.
///
/// # Errors
///
/// What [`package`] would refuse: a configuration that is of another kernel, a lack of room. Programs
/// that it would miss are in the plan.
pub fn plan(options: &PackageOptions, progress: &mut dyn Progress) -> Result<Plan> {
    let interrupts = Interrupts::arm().doing("taking over signals for", "the plan")?;
    let asked = Asked::read(options, &interrupts)?;
    if options.base.tree.is_none() {
        tools::check_looking()?;
    }
    let plan = if let Some(begun) = asked.begun(options)? {
        asked.plan(options, Some(&Found::begun(&begun)))?
    } else if let (Some(tree), Some(id)) = (&options.base.tree, &asked.tree) {
        let version = source::version(tree)?;
        asked.plan(options, Some(&Found::new(tree, version, id.clone())))?
    } else {
        let wanted = Wanted::source(options.base.kind.release());
        match source::package::cached(&options.base.cache, wanted)?.first() {
            Some(package) => {
                let folder = tempfile::tempdir().doing("creating", std::env::temp_dir())?;
                progress.begin(&format!("looking into {}", package.name), None, None);
                let file = package.file(&options.base.cache);
                let tree = unpack::unpack(&file, folder.path(), &Files::Described, &interrupts)?;
                progress.end();
                let (version, id) = (source::version(&tree)?, package.id());
                asked.plan(options, Some(&Found::new(&tree, version, id)))?
            }
            None => {
                let download = Some(plan::download(wanted, &interrupts)?);
                Plan { download, ..asked.plan(options, None)? }
            }
        }
    };
    check(options, &plan)?;
    Ok(plan)
}

/// Refuses what cannot end well.
fn check(options: &PackageOptions, plan: &Plan) -> Result<()> {
    if !options.drop_unknown {
        plan.check_unknown()?;
    }
    plan.check_room()
}

/// Makes the packages. `on_plan` hears what is going to be built before it is begun.
///
/// SIGINT, SIGTERM and SIGHUP end the build; what was compiled stays, and the next run with the same
/// options goes on.
///
/// # Errors
///
/// One of [`Error`]'s cases.
pub fn package(
    options: &PackageOptions,
    progress: &mut dyn Progress,
    on_plan: &mut dyn FnMut(&Plan),
) -> Result<Packaged> {
    let interrupts = Interrupts::arm().doing("taking over signals for", "the build")?;
    let asked = Asked::read(options, &interrupts)?;
    tools::check_packages(&|symbol| asked.config.has(symbol), options.base.tree.is_none())?;
    fs::create_dir_all(&options.out).doing("creating", &options.out)?;
    let _lock = options.base.cache.lock_builds(&interrupts, progress)?;
    let (mut shop, plan) = match asked.begun(options)? {
        Some(begun) => resume(options, &asked, begun)?,
        None => begin(options, &asked, &interrupts, progress)?,
    };
    on_plan(&plan);
    let base = &options.base;
    let mut making = Making { options: base, shop: &mut shop, interrupts: &interrupts, progress };
    let lost = making.configure(&asked.config)?;
    making.compile(plan.objects.unwrap_or(0))?;
    let files = making.pack()?;
    let done = finish(&mut shop)?;
    deliver(options, &shop, done, lost, &files)
}

/// Goes on with what an earlier run has begun.
fn resume(options: &PackageOptions, asked: &Asked, begun: Workshop) -> Result<(Workshop, Plan)> {
    let plan = asked.plan(options, Some(&Found::begun(&begun)))?;
    check(options, &plan)?;
    Ok((begun, plan))
}

/// Gets a source, and gives it a folder of its own; a configuration that is refused leaves none.
fn begin(
    options: &PackageOptions,
    asked: &Asked,
    interrupts: &Interrupts,
    progress: &mut dyn Progress,
) -> Result<(Workshop, Plan)> {
    let cache = &options.base.cache;
    let partial = cache.partial(&cache.builds())?;
    let prepared = {
        // Packages are downloaded under it.
        let _lock = cache.lock(interrupts, progress)?;
        build::prepare(&options.base, partial.path(), interrupts, progress)?
    };
    let (id, version) = (prepared.id.clone(), prepared.version.clone());
    let found = Found { is_unpacked: true, ..Found::new(&prepared.source, version, id) };
    let mut plan = asked.plan(options, Some(&found))?;
    check(options, &plan)?;
    let version = prepared.version;
    let folder = workshop::folder(cache, &asked.inputs, &prepared.id, &version);
    plan.folder.clone_from(&folder);
    if workshop::is_whole(&folder) {
        // It was asked for a newer source, and the mirror has none.
        progress.note(&format!("{} is up to date", prepared.id));
        if let Some(begun) = workshop::all(cache)?.into_iter().find(|shop| shop.folder == folder) {
            return resume(options, asked, begun);
        }
    }
    if folder.exists() {
        cache::remove(&folder)?;
    }
    let out = partial.path().join("out");
    fs::create_dir_all(&out).doing("creating", &out)?;
    let has_debug_info = asked.config.has("CONFIG_DEBUG_INFO");
    let state = State::new(prepared.id, version, &asked.inputs, has_debug_info);
    Workshop { folder: out.clone(), state: state.clone() }.save()?;
    fs::rename(&prepared.source, out.join("source")).doing("moving", &prepared.source)?;
    fs::rename(&out, &folder).doing("moving the source to", &folder)?;
    Ok((Workshop { folder, state }, plan))
}

/// Writes down what the build took.
fn finish(shop: &mut Workshop) -> Result<Done> {
    let release = shop.source().join("include/config/kernel.release");
    let release = fs::read_to_string(&release).doing("reading", &release)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let done = Done {
        release: release.trim().into(),
        objects: make::objects_in(&shop.logged()),
        size_bytes: cache::size_bytes(&shop.folder),
        built_unix_s: now.as_secs(),
    };
    shop.state.done = Some(done.clone());
    shop.save()?;
    Ok(done)
}

/// Puts the packages where they are wanted. That of the C library's headers stays behind: it would
/// take the place of the distribution's.
fn deliver(
    options: &PackageOptions,
    shop: &Workshop,
    done: Done,
    lost: Vec<String>,
    files: &[PathBuf],
) -> Result<Packaged> {
    let mut debs = Vec::new();
    for what in ["linux-image", "linux-headers"] {
        let start = format!("{what}-{}_", done.release);
        let is_it = |file: &&PathBuf| {
            file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start))
        };
        let Some(file) = files.iter().find(is_it) else {
            // A kernel without modules has no headers.
            if what == "linux-headers" {
                continue;
            }
            let (folder, log) = (shop.folder.clone(), shop.log());
            return Err(DebError::NoPackage { what, folder, log }.into());
        };
        let path = options.out.join(file.file_name().unwrap_or_default());
        let size_bytes = fs::copy(file, &path).doing("copying to", &path)?;
        debs.push(Deb { path, size_bytes });
    }
    let running = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let system = next::system(&fs::read_to_string("/etc/os-release").unwrap_or_default());
    let paths: Vec<&Path> = debs.iter().map(|deb| deb.path.as_path()).collect();
    let next = Next::new(&paths, &done.release, running.trim(), &system);
    let Done { release, objects, size_bytes, .. } = done;
    let seconds = shop.state.seconds;
    Ok(Packaged { release, debs, lost, objects, seconds, size_bytes, next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_package_can_have_is_a_usage_error() {
        let config = ConfigFrom::Running;
        let mut options = PackageOptions::from_env(Release::Newest, config).unwrap();
        options.check_local_version().unwrap();
        let long = format!("-{}", "a".repeat(40));
        for name in ["", "ntcopy", "-NTCOPY", "-nt copy", "-nt_copy", "-ntcopy-", "-", &long] {
            options.local_version = name.into();
            let error = options.check_local_version().unwrap_err();
            assert_eq!(error.exit_code(), 2, "{name}");
        }
        options.local_version = "-ntcopy.2+x".into();
        options.check_local_version().unwrap();
    }
}
