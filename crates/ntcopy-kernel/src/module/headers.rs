//! What a module is built against: a kernel's headers, and the compiler that goes with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Context, Result};
use crate::tools;

use super::error::ModuleError;

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
        let looked_for = match fs::symlink_metadata(&dir) {
            Ok(_) => format!("{} leads nowhere", dir.display()),
            Err(_) => format!("there is no {}", dir.display()),
        };
        let os_release = fs::read_to_string(root.join("etc/os-release")).unwrap_or_default();
        let fix = fix(&os_release, release);
        Err(ModuleError::NoHeaders { release: release.into(), looked_for, fix }.into())
    }

    /// A folder that the user names. With a release it must be of that kernel.
    pub(super) fn open(dir: &Path, release: Option<&str>) -> Result<Self> {
        let bad = |reason: String| ModuleError::BadHeaders { path: dir.to_path_buf(), reason };
        if !dir.join("Makefile").is_file() {
            return Err(bad("it has no Makefile".into()).into());
        }
        let config = dir.join("include/config/auto.conf");
        let own = dir.join("include/config/kernel.release");
        let (Ok(config), Ok(own)) = (fs::read_to_string(config), fs::read_to_string(own)) else {
            let text = "it is not prepared: make modules_prepare in it, or build the kernel";
            return Err(bad(text.into()).into());
        };
        let headers = Self { dir: dir.to_path_buf(), release: own.trim().to_owned(), config };
        if !headers.is("CONFIG_MODULES") {
            return Err(bad("its kernel takes no modules (CONFIG_MODULES is off)".into()).into());
        }
        if !dir.join("scripts/mod/modpost").is_file() {
            let text = "scripts/mod/modpost is missing: make modules_prepare in it, or install \
                        the package of the kernel's build tools again";
            return Err(bad(text.into()).into());
        }
        match release {
            Some(release) if release != headers.release => {
                let own = &headers.release;
                let text = format!("it is of Linux {own}, and not of {release}");
                Err(bad(text).into())
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

    /// Symbols of the kernel itself, where modules were not built with it.
    pub(super) fn extra_symbols(&self) -> Option<PathBuf> {
        let own = self.dir.join("vmlinux.symvers");
        (!self.dir.join("Module.symvers").is_file() && own.is_file()).then_some(own)
    }

    /// What the module depends on of these, for the name of what comes out.
    pub(super) fn fingerprint(&self) -> Result<Vec<u8>> {
        let symbols = self.extra_symbols().unwrap_or_else(|| self.dir.join("Module.symvers"));
        let mut bytes = self.config.clone().into_bytes();
        if symbols.is_file() {
            bytes.extend(fs::read(&symbols).doing("reading", &symbols)?);
        }
        Ok(bytes)
    }

    /// The compiler that the kernel was built with, as its configuration names it.
    pub(super) fn compiler_text(&self) -> &str {
        self.value("CONFIG_CC_VERSION_TEXT").unwrap_or("an unknown compiler").trim_matches('"')
    }

    /// The arguments of make that name the compiler. It has the major version that built the
    /// kernel, since the kernel's flags are that version's.
    pub(super) fn compiler(&self) -> Result<Vec<String>> {
        if self.is("CONFIG_CC_IS_CLANG") {
            let linker = if self.is("CONFIG_LD_IS_LLD") { "ld.lld" } else { "ld" };
            for program in ["clang", linker] {
                if tools::find(program).is_none() {
                    return Err(self.no_compiler(program.into(), "clang lld".into()));
                }
            }
            let llvm = if linker == "ld" { "CC=clang" } else { "LLVM=1" };
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
        Err(self.no_compiler(program.clone(), program))
    }

    fn no_compiler(&self, program: String, package: String) -> crate::Error {
        let wanted = self.compiler_text().to_owned();
        ModuleError::NoCompiler { release: self.release.clone(), wanted, program, package }.into()
    }
}

/// The major version of a gcc.
fn gcc_major(program: &str) -> Option<u64> {
    let output = Command::new(program).arg("-dumpversion").output().ok()?;
    String::from_utf8_lossy(&output.stdout).trim().split('.').next()?.parse().ok()
}

/// The one command that installs a kernel's headers, by what /etc/os-release says.
fn fix(os_release: &str, release: &str) -> String {
    let field = |name: &str| {
        let value = os_release.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        value.unwrap_or_default().trim_matches('"')
    };
    let family = format!("{} {}", field("ID"), field("ID_LIKE"));
    let is = |name: &str| family.split_whitespace().any(|word| word == name);
    let command = if is("debian") || is("ubuntu") {
        format!("apt-get install linux-headers-{release}")
    } else if is("fedora") || is("rhel") {
        format!("dnf install kernel-devel-{release}")
    } else if is("suse") || is("opensuse") {
        "zypper install kernel-default-devel".to_owned()
    } else if is("arch") {
        "pacman -S linux-headers".to_owned()
    } else {
        "install the package with the headers of this kernel".to_owned()
    };
    format!(
        "As root: {command}. A kernel that came from no package has its headers where it was \
         built: --headers DIR names that folder"
    )
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
    fn headers_that_are_not_here_come_with_the_one_command_that_brings_them() {
        let root = tempfile::tempdir().unwrap();
        for (os_release, command) in [
            ("ID=debian\n", "apt-get install linux-headers-6.12.117+deb12-cloud-amd64"),
            ("ID=pop\nID_LIKE=\"ubuntu debian\"\n", "apt-get install linux-headers-"),
            ("ID=rocky\nID_LIKE=\"rhel centos fedora\"\n", "dnf install kernel-devel-6.12.117"),
            ("ID=arch\n", "pacman -S linux-headers"),
            ("ID=opensuse-leap\nID_LIKE=\"suse opensuse\"\n", "zypper install kernel-default"),
            ("", "install the package with the headers"),
        ] {
            let etc = root.path().join("etc");
            fs::create_dir_all(&etc).unwrap();
            fs::write(etc.join("os-release"), os_release).unwrap();
            let error = Headers::installed(root.path(), RELEASE).unwrap_err();
            assert_eq!(error.exit_code(), 3);
            let text = error.to_string();
            for part in [command, "--headers DIR", "there is no ", RELEASE] {
                assert!(text.contains(part), "{part} in {text}");
            }
        }
    }

    #[test]
    fn a_link_to_headers_that_were_removed_is_told_from_none() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("lib/modules").join(RELEASE);
        fs::create_dir_all(&folder).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", folder.join("build")).unwrap();
        let text = Headers::installed(root.path(), RELEASE).unwrap_err().to_string();
        assert!(text.contains("leads nowhere"), "{text}");
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
