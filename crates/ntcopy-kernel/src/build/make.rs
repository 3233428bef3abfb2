//! Configuring and compiling.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::source::Prepared;
use super::{BuildOptions, Work};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::RunsAs;
use crate::process::{self, Event};
use crate::progress::Progress;
use crate::{config, tools};

/// How many error lines a failed build shows.
const ERROR_LINES: usize = 8;

/// Variables that would turn our make into another one: those of a make around us, and those
/// that the kernel's build listens to.
const FOREIGN_VARIABLES: &[&str] = &[
    "MAKEFLAGS",
    "MFLAGS",
    "MAKELEVEL",
    "MAKEOVERRIDES",
    "GNUMAKEFLAGS",
    "ARCH",
    "SUBARCH",
    "CROSS_COMPILE",
    "KBUILD_OUTPUT",
    "KCFLAGS",
    "KCPPFLAGS",
    "KAFLAGS",
    "KCONFIG_CONFIG",
    "KCONFIG_ALLCONFIG",
    "LLVM",
    "O",
    "M",
    "V",
    "C",
    "W",
];

impl Work<'_> {
    /// Writes the configuration and checks that it says what was asked for.
    pub(super) fn configure(&mut self, prepared: &Prepared, log: &Path) -> Result<()> {
        let fragment = prepared.source.join(".ntcopy-fragment");
        fs::write(&fragment, &self.options.fragment).doing("writing", &fragment)?;
        let mut make = self.command(prepared);
        make.env("KCONFIG_ALLCONFIG", &fragment).arg("allnoconfig");
        run_make(&mut make, self.interrupts, self.progress, "configuring the kernel", log)?;
        let path = prepared.source.join(".config");
        let text = fs::read_to_string(&path).doing("reading", &path)?;
        let lost = config::lost(&self.options.fragment, &text);
        if lost.is_empty() {
            return Ok(());
        }
        Err(Error::ConfigLost { version: prepared.version.clone(), lost })
    }

    pub(super) fn compile(&mut self, prepared: &Prepared, log: &Path) -> Result<()> {
        let mut make = self.command(prepared);
        make.arg(format!("-j{}", self.options.jobs));
        if self.options.kind.runs_as() == RunsAs::Qemu {
            make.arg("bzImage");
            // What they need of the kernel is written down when they are linked.
            make.args(self.options.kind.is_for_module().then_some("modules"));
        }
        let step = format!("compiling Linux {}", prepared.version);
        run_make(&mut make, self.interrupts, self.progress, &step, log)
    }

    fn command(&self, prepared: &Prepared) -> Command {
        command(self.options, &prepared.source)
    }
}

/// make in a folder, as nothing around it has it.
pub(crate) fn bare(folder: &Path) -> Command {
    let mut make = Command::new("make");
    for variable in FOREIGN_VARIABLES {
        make.env_remove(variable);
    }
    make.env("LC_ALL", "C").arg("-C").arg(folder);
    make
}

/// make, for a kernel that comes out the same whoever builds it, and when.
pub fn command(options: &BuildOptions, source: &Path) -> Command {
    let mut make = bare(source);
    make.arg("LOCALVERSION=");
    match options.kind.runs_as() {
        RunsAs::Um => make.args(["ARCH=um", "SUBARCH=x86_64"]),
        RunsAs::Qemu => make.arg("ARCH=x86_64"),
    };
    make.env("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970");
    make.env("KBUILD_BUILD_VERSION", "1");
    make.env("KBUILD_BUILD_USER", "ntcopy").env("KBUILD_BUILD_HOST", "ntcopy");
    if tools::find("ccache").is_some() {
        make.arg("CC=ccache gcc");
        // The work area has another name each time, and the objects hold no paths.
        make.env("CCACHE_NOHASHDIR", "1").env("CCACHE_BASEDIR", source);
        // An object that isn't kept yet would otherwise be preprocessed twice.
        make.env("CCACHE_DEPEND", "1");
        if std::env::var_os("CCACHE_DIR").is_none() {
            make.env("CCACHE_DIR", options.cache.compiled()).env("CCACHE_MAXSIZE", "2G");
        }
    }
    make
}

/// Runs make with its output in the log. Its lines are counted.
pub(crate) fn run_make(
    make: &mut Command,
    interrupts: &Interrupts,
    progress: &mut dyn Progress,
    step: &str,
    log: &Path,
) -> Result<()> {
    let mut file = OpenOptions::new().create(true).append(true).open(log).doing("opening", log)?;
    let (mut errors, mut done) = (Vec::new(), 0);
    progress.begin(step);
    let status = process::run(make, interrupts, &mut |event| {
        if let Event::Line(line) = event {
            writeln!(file, "{line}").doing("writing", log)?;
            done += 1;
            if is_error(line) && errors.len() < ERROR_LINES {
                errors.push(line.to_owned());
            }
        }
        progress.advance(done);
        Ok(())
    })?;
    progress.end();
    if status.success() {
        return Ok(());
    }
    if errors.is_empty() {
        errors.push(format!("make: {status}"));
    }
    Err(Error::Build { step: step.into(), errors, log: log.to_path_buf() })
}

/// Whether a line tells what went wrong: of the compiler, the linker, Kconfig or make.
fn is_error(line: &str) -> bool {
    [
        "error:",
        "undefined reference",
        "multiple definition",
        "*** ",
        "No rule to make",
        "undefined!",
        "GLIBC_",
    ]
    .iter()
    .any(|mark| line.contains(mark))
}
