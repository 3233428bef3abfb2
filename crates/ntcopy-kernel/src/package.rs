//! Packages of a kernel with the series, for a machine of one's own: a whole configuration, and the
//! kernel's own `make bindeb-pkg`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::build::{self, BuildOptions, make};
use crate::cache::{Part, children};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::{Flavour, Kind, Release};
use crate::progress::Progress;
use crate::{process, tools};

#[derive(Clone, Debug)]
pub struct PackageOptions {
    /// A whole `.config`; else that of the running kernel.
    pub config: Option<PathBuf>,
    /// Compile with information for debuggers where the configuration says so.
    pub debug_info: bool,
    /// Where the packages go.
    pub out: PathBuf,
    /// Where source, series and cache come from, and how many compilers are at work.
    pub base: BuildOptions,
}

/// Settings that name what only the distribution's own build has, and the kernel's name.
const OWN: [&str; 11] = [
    "--set-str",
    "LOCALVERSION",
    "-ntcopy",
    "--disable",
    "LOCALVERSION_AUTO",
    "--set-str",
    "SYSTEM_TRUSTED_KEYS",
    "",
    "--set-str",
    "SYSTEM_REVOCATION_KEYS",
    "",
];
const NO_DEBUG_INFO: [&str; 8] = [
    "--disable",
    "DEBUG_INFO_DWARF_TOOLCHAIN_DEFAULT",
    "--disable",
    "DEBUG_INFO_DWARF4",
    "--disable",
    "DEBUG_INFO_DWARF5",
    "--enable",
    "DEBUG_INFO_NONE",
];

impl PackageOptions {
    /// Packages of this release's newest source, with what the environment says of cache, source
    /// and series.
    pub fn from_env(release: Release) -> Result<Self> {
        let base = BuildOptions::from_env(Kind::X86(release, Flavour::Plain))?;
        Ok(Self { config: None, debug_info: true, out: ".".into(), base })
    }
}

/// Makes the packages of the kernel and of its headers, and gives their files. That of the C
/// library's headers stays behind: it would take the place of the distribution's.
pub fn package(options: &PackageOptions, progress: &mut dyn Progress) -> Result<Vec<PathBuf>> {
    let interrupts = Interrupts::arm()?;
    let base = &options.base;
    tools::check_packages(base.tree.is_none())?;
    let config = match &options.config {
        Some(path) => read(path, &interrupts)?,
        None => running(&interrupts)?,
    };
    fs::create_dir_all(&options.out).doing("creating", &options.out)?;
    let _builds = base.cache.lock(Part::Builds, &interrupts, progress)?;
    let partial = base.cache.partial(&base.cache.builds())?;
    let prepared = build::prepare(base, partial.path(), &interrupts, progress)?;
    let source = &prepared.source;
    fs::write(source.join(".config"), config).doing("writing", source)?;
    let mut settings = Command::new("scripts/config");
    settings.current_dir(source).args(OWN);
    settings.args(if options.debug_info { &[][..] } else { &NO_DEBUG_INFO });
    process::output(&mut settings, &interrupts)?;
    let log = options.out.join("ntcopy-package.log");
    let mut run = |arguments: &[&str], step: &str| {
        let mut make = make::command(base, source);
        make.args(arguments).arg(format!("-j{}", base.jobs));
        make.arg(format!("KDEB_PKGVERSION={}-1", prepared.version));
        // It would want packages by name that most configurations never call.
        make.arg("DPKG_FLAGS=--no-check-builddeps");
        // The symbols for debuggers are larger than all the rest.
        make.env("DEB_BUILD_PROFILES", "pkg.linux-upstream.nokerneldbg");
        make::run_make(&mut make, &interrupts, progress, step, &log)
    };
    run(&["olddefconfig"], "configuring the kernel")?;
    run(&["bindeb-pkg"], "compiling and packing the kernel")?;
    deliver(source.parent().unwrap_or(source), &options.out)
}

fn deliver(from: &Path, out: &Path) -> Result<Vec<PathBuf>> {
    let mut delivered = Vec::new();
    for file in children(from)? {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let is_wanted = ["linux-image-", "linux-headers-"].iter().any(|it| name.starts_with(it));
        if is_wanted && name.ends_with(".deb") {
            let path = out.join(&*name);
            fs::copy(&file, &path).doing("copying to", &path)?;
            delivered.push(path);
        }
    }
    Ok(delivered)
}

fn running(interrupts: &Interrupts) -> Result<String> {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let places = ["/proc/config.gz".to_owned(), format!("/boot/config-{release}")];
    let found = places.iter().map(Path::new).find(|path| path.is_file());
    let found = found.ok_or_else(|| {
        let text = format!("the running kernel left no {}: --config FILE", places.join(", no "));
        Error::NotHere(text)
    })?;
    read(found, interrupts)
}

fn read(config: &Path, interrupts: &Interrupts) -> Result<String> {
    if config.extension().is_some_and(|end| end == "gz") {
        return process::output(Command::new("gzip").arg("-dc").arg(config), interrupts);
    }
    fs::read_to_string(config).doing("reading the configuration", config)
}
