//! Configuring and compiling.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use super::Work;
use super::source::Prepared;
use crate::cache::Meta;
use crate::error::{Context, Error, Result};
use crate::process::{self, Event};
use crate::{config, tools};

/// Steps and seconds of a first build, before there is one to learn from: Linux 7.3.4 with the
/// fragment as it is today, on two CPUs.
const FIRST_STEPS: u64 = 1240;
const FIRST_SECONDS: u64 = 150;

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
        self.progress.begin("configuring", None, None);
        let fragment = prepared.source.join(".ntcopy-fragment");
        fs::write(&fragment, &self.options.fragment).doing("writing", &fragment)?;
        let mut make = self.command(prepared);
        make.env("KCONFIG_ALLCONFIG", &fragment).arg("allnoconfig");
        self.run_make(&mut make, "configuring the kernel", log)?;
        self.progress.end();
        let path = prepared.source.join(".config");
        let text = fs::read_to_string(&path).doing("reading", &path)?;
        let lost = config::lost(&self.options.fragment, &text);
        if lost.is_empty() {
            return Ok(());
        }
        Err(Error::ConfigLost { version: prepared.version.clone(), lost })
    }

    /// Compiles; gives the number of steps that it took.
    pub(super) fn compile(&mut self, prepared: &Prepared, log: &Path) -> Result<u64> {
        let (total, seconds) = self.estimate()?;
        let step = format!("compiling Linux {}", prepared.version);
        self.progress.begin(&step, Some(total), Some(seconds));
        let mut make = self.command(prepared);
        make.arg(format!("-j{}", self.options.jobs));
        let steps = self.run_make(&mut make, "compiling the kernel", log);
        self.progress.end();
        steps
    }

    /// Steps and seconds that the last build of this kind took.
    fn estimate(&self) -> Result<(u64, u64)> {
        let kind = self.options.kind.name();
        let built = self.options.cache.built()?;
        let like = built.iter().map(|b| &b.meta).filter(|meta: &&Meta| meta.kind == kind);
        let last = like.max_by_key(|meta| meta.built_unix_s);
        Ok(last.map_or((FIRST_STEPS, FIRST_SECONDS), |meta| (meta.steps, meta.seconds)))
    }

    /// make, for a kernel that comes out the same whoever builds it, and when.
    fn command(&self, prepared: &Prepared) -> Command {
        let mut make = Command::new("make");
        for variable in FOREIGN_VARIABLES {
            make.env_remove(variable);
        }
        make.arg("-C").arg(&prepared.source).args(["ARCH=um", "SUBARCH=x86_64", "LOCALVERSION="]);
        make.env("LC_ALL", "C");
        make.env("KBUILD_BUILD_TIMESTAMP", "Thu Jan  1 00:00:00 UTC 1970");
        make.env("KBUILD_BUILD_VERSION", "1");
        make.env("KBUILD_BUILD_USER", "ntcopy").env("KBUILD_BUILD_HOST", "ntcopy");
        if tools::find("ccache").is_some() {
            make.arg("CC=ccache gcc");
            // The work area has another name each time, and the objects hold no paths.
            make.env("CCACHE_NOHASHDIR", "1").env("CCACHE_BASEDIR", &prepared.source);
        }
        make
    }

    /// Runs make with its output in the log, counting steps.
    fn run_make(&mut self, make: &mut Command, step: &str, log: &Path) -> Result<u64> {
        let mut file =
            OpenOptions::new().create(true).append(true).open(log).doing("opening", log)?;
        let mut steps = 0;
        let mut errors = Vec::new();
        let progress = &mut *self.progress;
        let status = process::run(make, self.interrupts, &mut |event| {
            match event {
                Event::Line(line) => {
                    writeln!(file, "{line}").doing("writing", log)?;
                    steps += u64::from(is_step(line));
                    if is_error(line) && errors.len() < ERROR_LINES {
                        errors.push(line.to_owned());
                    }
                }
                Event::Tick => {}
            }
            progress.advance(steps);
            Ok(())
        })?;
        if status.success() {
            return Ok(steps);
        }
        if errors.is_empty() {
            errors.push(format!("make: {status}"));
        }
        Err(Error::Build { step: step.into(), errors, log: log.to_path_buf() })
    }
}

/// Whether a line is a step of the kernel's build: "  CC      net/socket.o".
fn is_step(line: &str) -> bool {
    line.strip_prefix("  ").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
}

/// Whether a line tells what went wrong: of the compiler, the linker, Kconfig or make.
fn is_error(line: &str) -> bool {
    ["error:", "undefined reference", "multiple definition", "*** ", "No rule to make"]
        .iter()
        .any(|mark| line.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_and_errors_are_told_from_the_rest() {
        assert!(is_step("  CC      net/socket.o"));
        assert!(!is_step("make[1]: Entering directory 'x'"));
        assert!(!is_step("net/socket.c:1:2: warning: x"));
        assert!(is_error("net/socket.c:1:2: error: expected ';'"));
        assert!(is_error("make[3]: *** [net/socket.o] Error 1"));
        assert!(!is_error("  CC      lib/errseq.o"));
    }
}
