//! Configuring, compiling and packing, each so that a later run goes on where this one ended.

use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use super::config::Config;
use super::workshop::Workshop;
use crate::build::BuildOptions;
use crate::build::make::{command, log_make};
use crate::config::setting;
use crate::error::{Context, Result};
use crate::interrupt::Interrupts;
use crate::process::Ending;
use crate::progress::Progress;

/// Objects after which the time to go is printed: before, it is the time of whatever comes first.
const LEARNT: u64 = 100;

/// A build in its folder.
pub(super) struct Making<'a> {
    pub(super) options: &'a BuildOptions,
    pub(super) shop: &'a mut Workshop,
    pub(super) interrupts: &'a Interrupts,
    pub(super) progress: &'a mut dyn Progress,
}

impl Making<'_> {
    /// Has make complete the configuration; gives what was on and did not stay.
    pub(super) fn configure(&mut self, asked: &Config) -> Result<Vec<String>> {
        let path = self.shop.source().join(".config");
        if !self.shop.state.is_configured {
            self.progress.begin("configuring", None, None);
            fs::write(&path, &asked.text).doing("writing", &path)?;
            self.make(&["olddefconfig"], "configuring the kernel", &mut |_, _| ())?;
            self.progress.end();
            self.shop.state.is_configured = true;
            self.shop.save()?;
        }
        let got = fs::read_to_string(&path).doing("reading", &path)?;
        Ok(lost(asked, &Config::new(got)))
    }

    /// Compiles kernel and modules; `expected` is how many objects that is in all.
    pub(super) fn compile(&mut self, expected: u64) -> Result<()> {
        let before = objects_in(&self.shop.logged());
        let begun = Instant::now();
        let step = format!("compiling Linux {}", self.shop.state.version);
        let left = expected.saturating_sub(before).max(LEARNT);
        self.progress.begin(&step, Some(left), None);
        let jobs = format!("-j{}", self.options.jobs);
        let mut compiled = 0;
        let made = self.make(&[&jobs, "all"], "compiling the kernel", &mut |progress, line| {
            compiled += u64::from(line.is_some_and(is_object));
            progress.advance(if compiled < LEARNT { 0 } else { compiled });
        });
        self.progress.end();
        self.shop.state.seconds += begun.elapsed().as_secs();
        self.shop.state.jobs = self.options.jobs;
        self.shop.save()?;
        made
    }

    /// Packs what was compiled; gives the packages.
    pub(super) fn pack(&mut self) -> Result<Vec<PathBuf>> {
        self.progress.begin("packing", None, None);
        let jobs = format!("-j{}", self.options.jobs);
        // It would want packages of the distribution by name, libdw-dev for a tool that most
        // configurations never call; what is called was looked for before.
        let flags = "DPKG_FLAGS=--no-check-builddeps";
        self.make(&[&jobs, flags, "bindeb-pkg"], "packing the kernel", &mut |progress, _| {
            progress.advance(0);
        })?;
        self.progress.end();
        let files = crate::cache::children(&self.shop.folder)?;
        Ok(files.into_iter().filter(|file| file.extension().is_some_and(|e| e == "deb")).collect())
    }

    /// Runs make in the source. A signal lets it clear away what is half-written.
    fn make(
        &mut self,
        arguments: &[&str],
        step: &str,
        on_event: &mut dyn FnMut(&mut dyn Progress, Option<&str>),
    ) -> Result<()> {
        let mut make = command(self.options, &self.shop.source());
        make.args(arguments);
        // One revision, whatever the build's own counter says: a later run makes the same names.
        make.arg(format!("KDEB_PKGVERSION={}-1", self.shop.state.version));
        make.env("KDEB_CHANGELOG_DIST", "unstable");
        // The symbols for debuggers stay in the build's folder: they are larger than all the rest.
        make.env("DEB_BUILD_PROFILES", "pkg.linux-upstream.nokerneldbg");
        let progress = &mut *self.progress;
        log_make(&mut make, Ending::Ask, self.interrupts, step, &self.shop.log(), &mut |line| {
            on_event(progress, line);
        })
    }
}

/// How many objects a log tells of.
pub(super) fn objects_in(log: &str) -> u64 {
    log.lines().filter(|line| is_object(line)).count() as u64
}

/// Whether a line of make's is about an object of the kernel: "  CC [M]  net/tls/tls_main.o".
fn is_object(line: &str) -> bool {
    let mut words = line.strip_prefix("  ").unwrap_or_default().split_whitespace();
    matches!(words.next(), Some("CC" | "AS"))
        && words.next_back().is_some_and(|w| w.ends_with(".o"))
}

/// The settings that were on in what was asked for and are off now, each as "asked X, got Y".
fn lost(asked: &Config, got: &Config) -> Vec<String> {
    let on = asked.text.lines().filter_map(setting);
    let on = on.filter(|setting| matches!(setting.value, Some("y" | "m")));
    on.filter(|setting| !got.has(setting.symbol)).map(|s| s.symbol.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_told_from_what_else_make_says() {
        let log = "  CC      net/socket.o\n  CC [M]  net/tls/tls.mod.o\n  AS      lib/memcpy.o\n\
                   \x20 HOSTCC  scripts/basic/fixdep\n  LD [M]  net/tls/tls.ko\n  CC      vdso.so\n\
                   CC net/socket.o\nmake[1]: x.o\n";
        assert_eq!(objects_in(log), 3);
    }

    #[test]
    fn what_was_on_and_is_not_is_lost_and_a_module_that_is_built_in_is_not() {
        let asked = Config::new("CONFIG_A=y\nCONFIG_B=m\nCONFIG_C=m\nCONFIG_HZ=250\n".into());
        let got = Config::new("CONFIG_B=y\n# CONFIG_C is not set\nCONFIG_HZ=1000\n".into());
        assert_eq!(lost(&asked, &got), ["CONFIG_A", "CONFIG_C"]);
    }
}
