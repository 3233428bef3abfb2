//! What a module is built against: a kernel's headers, and the compiler that goes with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::range::check_release;
use crate::error::{Context, Error, Result};
use crate::tools;

/// A kernel's headers, or its source tree, built.
#[derive(Clone, Debug)]
pub(super) struct Headers {
    pub(super) dir: PathBuf,
    pub(super) release: String,
    /// What matters here of the configuration.
    config: String,
}

impl Headers {
    /// Those in a folder.
    pub(super) fn open(dir: &Path) -> Result<Self> {
        let bad = |reason: &str| {
            let dir = dir.display();
            Error::NotHere(format!("{dir} is not what a module can be built against: {reason}"))
        };
        if !dir.is_dir() {
            return Err(Error::NotHere(format!(
                "there is no folder {}; this shows the headers that are here: ls -d \
                 /lib/modules/*/build",
                dir.display()
            )));
        }
        let read = |name: &str| fs::read_to_string(dir.join("include/config").join(name));
        let (Ok(config), Ok(release)) = (read("auto.conf"), read("kernel.release")) else {
            return Err(bad("it is not prepared: make modules_prepare in it, or build the kernel"));
        };
        let release = release.trim().to_owned();
        check_release(&release)?;
        let headers = Self { dir: dir.to_path_buf(), release, config };
        if !headers.is("CONFIG_MODULES") {
            return Err(bad("its kernel takes no modules (CONFIG_MODULES is off)"));
        }
        if !dir.join("scripts/mod/modpost").is_file() {
            return Err(bad("scripts/mod/modpost is missing: make modules_prepare in it"));
        }
        Ok(headers)
    }

    fn value(&self, symbol: &str) -> Option<&str> {
        self.config.lines().find_map(|line| line.strip_prefix(symbol)?.strip_prefix('='))
    }

    fn is(&self, symbol: &str) -> bool {
        self.value(symbol) == Some("y")
    }

    /// Whether its kernel is a user-mode one.
    pub(super) fn is_um(&self) -> bool {
        self.is("CONFIG_UML")
    }

    /// What the module depends on of these, for the name of what comes out.
    pub(super) fn fingerprint(&self) -> Result<Vec<u8>> {
        let symbols = self.dir.join("Module.symvers");
        let mut bytes = self.config.clone().into_bytes();
        if symbols.is_file() {
            bytes.extend(fs::read(&symbols).doing("reading", &symbols)?);
        }
        Ok(bytes)
    }

    /// The arguments of make that name the compiler. It has the major version that built the
    /// kernel, since the kernel's flags are that version's.
    pub(super) fn compiler(&self) -> Result<Vec<String>> {
        if self.is("CONFIG_CC_IS_CLANG") {
            let llvm = if self.is("CONFIG_LD_IS_LLD") { "LLVM=1" } else { "CC=clang" };
            return Ok(vec![llvm.into()]);
        }
        let wanted = self.value("CONFIG_GCC_VERSION").and_then(|text| text.parse::<u64>().ok());
        let Some(major) = wanted.map(|version| version / 10_000).filter(|&major| major > 0) else {
            return Ok(Vec::new());
        };
        let program = format!("gcc-{major}");
        if tools::find(&program).is_some() {
            return Ok(vec![format!("CC={program}")]);
        }
        if gcc_major("gcc") == Some(major) {
            return Ok(vec!["CC=gcc".into()]);
        }
        let text = self.value("CONFIG_CC_VERSION_TEXT").unwrap_or("another compiler");
        Err(Error::NotHere(format!(
            "Linux {} was compiled by {}, and building for it needs {program}, which is not here; \
             as root: apt-get install {program}, or take another one with --cc. A release of the \
             distribution that is older than the kernel's has neither that compiler nor the libc \
             that programs of the headers need: build on a newer one",
            self.release,
            text.trim_matches('"')
        )))
    }
}

fn gcc_major(program: &str) -> Option<u64> {
    let output = Command::new(program).arg("-dumpversion").output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().split('.').next()?.parse().ok()
}
