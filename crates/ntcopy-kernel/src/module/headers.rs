//! What a module is built against: a kernel's headers, and the compiler that goes with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Context, Error, Result};
use crate::tools;

/// A kernel's headers, or its source tree, built.
#[derive(Clone, Debug)]
pub(super) struct Headers {
    pub(super) dir: PathBuf,
    /// The kernel's release.
    pub(super) release: String,
    /// What matters here of the configuration.
    config: String,
}

impl Headers {
    /// Those that are installed for a release: `/lib/modules/RELEASE/build`.
    pub(super) fn installed(root: &Path, release: &str) -> Result<Self> {
        let dir = root.join("lib/modules").join(release).join("build");
        if dir.join("Makefile").is_file() {
            return Self::open(&dir, Some(release));
        }
        Err(Error::NotHere(format!(
            "the headers of Linux {release} are not here (there is no {}): install their package, \
             linux-headers-{release} in Debian, or name their folder with --headers DIR",
            dir.join("Makefile").display()
        )))
    }

    /// A folder that the user names. With a release it must be of that kernel.
    pub(super) fn open(dir: &Path, release: Option<&str>) -> Result<Self> {
        let bad = |reason: &str| {
            let dir = dir.display();
            Error::NotHere(format!("{dir} is not what a module can be built against: {reason}"))
        };
        let read = |name: &str| fs::read_to_string(dir.join("include/config").join(name));
        let (Ok(config), Ok(own)) = (read("auto.conf"), read("kernel.release")) else {
            return Err(bad("it is not prepared: make modules_prepare in it, or build the kernel"));
        };
        let headers = Self { dir: dir.to_path_buf(), release: own.trim().to_owned(), config };
        if !headers.is("CONFIG_MODULES") {
            return Err(bad("its kernel takes no modules (CONFIG_MODULES is off)"));
        }
        if !dir.join("scripts/mod/modpost").is_file() {
            return Err(bad("scripts/mod/modpost is missing: make modules_prepare in it"));
        }
        match release {
            Some(release) if release != headers.release => {
                Err(bad(&format!("it is of Linux {}, and not of {release}", headers.release)))
            }
            _ => Ok(headers),
        }
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
             as root: apt-get install {program}, or take another one with --cc",
            self.release,
            text.trim_matches('"')
        )))
    }
}

/// The major version of a gcc.
fn gcc_major(program: &str) -> Option<u64> {
    let output = Command::new(program).arg("-dumpversion").output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().split('.').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: &str = "6.12.117+deb12-cloud-amd64";

    /// A root with the headers of a kernel.
    fn root(config: &str) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        let build = root.path().join("lib/modules").join(RELEASE).join("build");
        for (name, text) in [
            ("Makefile", ""),
            ("include/config/auto.conf", config),
            ("include/config/kernel.release", &format!("{RELEASE}\n")),
            ("scripts/mod/modpost", ""),
        ] {
            let path = build.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    const GOOD: &str = "CONFIG_MODULES=y\nCONFIG_GCC_VERSION=40200\nCONFIG_CC_IS_GCC=y\n\
                        CONFIG_CC_VERSION_TEXT=\"gcc-4 (Debian) 4.2.0\"\n";

    #[test]
    fn headers_that_are_not_here_come_with_the_package_that_brings_them() {
        let root = tempfile::tempdir().unwrap();
        let error = Headers::installed(root.path(), RELEASE).unwrap_err();
        assert_eq!(error.exit_code(), 3);
        let text = error.to_string();
        for part in ["linux-headers-6.12.117+deb12-cloud-amd64", "--headers DIR", "there is no "] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn headers_are_refused_with_what_is_wrong_with_them() {
        let refused = |root: &tempfile::TempDir| {
            Headers::installed(root.path(), RELEASE).unwrap_err().to_string()
        };
        let good = root(GOOD);
        assert_eq!(Headers::installed(good.path(), RELEASE).unwrap().release, RELEASE);
        let build = good.path().join("lib/modules").join(RELEASE).join("build");
        let other = Headers::open(&build, Some("6.1.0-9-amd64")).unwrap_err().to_string();
        assert!(other.contains(RELEASE) && other.contains("not of 6.1.0-9-amd64"), "{other}");
        let without = refused(&root("CONFIG_NET=y\n"));
        assert!(without.contains("CONFIG_MODULES is off"), "{without}");
        fs::remove_file(build.join("scripts/mod/modpost")).unwrap();
        assert!(refused(&good).contains("modpost is missing"));
        fs::remove_file(build.join("include/config/auto.conf")).unwrap();
        assert!(refused(&good).contains("modules_prepare"));
    }

    #[test]
    fn another_compiler_than_the_kernel_s_is_an_error_that_names_both() {
        let root = root(GOOD);
        let headers = Headers::installed(root.path(), RELEASE).unwrap();
        let text = headers.compiler().unwrap_err().to_string();
        for part in ["gcc-4 (Debian) 4.2.0", "needs gcc-4,", "apt-get install gcc-4"] {
            assert!(text.contains(part), "{part} in {text}");
        }
        // Make decides on one that isn't stated.
        let silent = Headers { config: "CONFIG_MODULES=y\n".into(), ..headers };
        assert!(silent.compiler().unwrap().is_empty());
    }
}
