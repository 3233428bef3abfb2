//! The programs that a build needs, and what they are called in Debian.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{Error, Result};
use crate::kind::{Kind, Machine};

/// A program, and the package of the distribution that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tool {
    /// The program's name; of headers, whose they are.
    program: &'static str,
    /// Debian's package.
    package: &'static str,
}

const fn tool(program: &'static str, package: &'static str) -> Tool {
    Tool { program, package }
}

/// What `make ARCH=um` calls of what a Debian may lack, found by logging what a build starts.
const BUILD: &[Tool] = &[
    tool("gcc", "gcc"),
    tool("ld", "binutils"),
    tool("make", "make"),
    tool("flex", "flex"),
    tool("bison", "bison"),
    tool("bc", "bc"),
    tool("patch", "patch"),
    tool("find", "findutils"),
    tool("awk", "mawk"),
];

/// What `make ARCH=x86_64` calls beside those.
const X86: &[Tool] = &[tool("gzip", "gzip")];
/// The header that the kernel's objtool is compiled with.
const LIBELF: (&str, &str) = ("/usr/include/gelf.h", "libelf-dev");

/// What `make bindeb-pkg` calls beside those.
const PACKING: &[Tool] = &[
    tool("dpkg-buildpackage", "dpkg-dev"),
    tool("dh_builddeb", "debhelper"),
    tool("rsync", "rsync"),
    tool("depmod", "kmod"),
    tool("cpio", "cpio"),
    tool("python3", "python3"),
];
/// What boots an x86 kernel.
const QEMU: Tool = tool("qemu-system-x86_64", "qemu-system-x86");

/// What unpacking a package needs.
const PACKAGE: &[Tool] = &[
    tool("apt-get", "apt"),
    tool("apt-cache", "apt"),
    tool("apt-config", "apt"),
    tool("dpkg-deb", "dpkg"),
    tool("xz", "xz-utils"),
];

/// All that is missing, in one go.
#[derive(Debug, Default, PartialEq, Eq)]
struct MissingTools {
    /// "building a kernel".
    purpose: &'static str,
    missing: Vec<Tool>,
}

impl fmt::Display for MissingTools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.missing.iter().map(|tool| tool.program).collect();
        let mut packages: Vec<_> = self.missing.iter().map(|tool| tool.package).collect();
        packages.sort_unstable();
        packages.dedup();
        write!(
            f,
            "{} needs {}, which {} not here; as root: apt-get install {}",
            self.purpose,
            names.join(", "),
            if names.len() == 1 { "is" } else { "are" },
            packages.join(" ")
        )
    }
}

/// Checks that packages of a kernel can be built.
pub(crate) fn check_packages(from_package: bool) -> Result<()> {
    let mut wanted: Vec<Tool> = [BUILD, X86, PACKING].concat();
    wanted.extend(from_package.then_some(PACKAGE).into_iter().flatten());
    wanted.retain(|tool| find(tool.program).is_none());
    wanted.extend(headers(true));
    missing("building packages of a kernel", wanted)
}

fn exists(path: &str) -> bool {
    Path::new(path).exists()
}

/// The headers that are missing of those that every build wants, and an x86 one.
fn headers(is_x86: bool) -> Vec<Tool> {
    let mut missing = Vec::new();
    if !has_headers() {
        missing.push(tool("the C library's headers", "libc6-dev"));
    }
    if is_x86 && !exists(LIBELF.0) {
        missing.push(tool("libelf's headers", LIBELF.1));
    }
    missing
}

/// Checks that a build can start, or for a stock kernel that it can be fetched.
pub(crate) fn check(kind: Kind, from_package: bool) -> Result<()> {
    let mut wanted: Vec<Tool> = Vec::new();
    if !kind.is_stock() {
        wanted.extend(BUILD);
    }
    if matches!(kind, Kind::X86(..)) {
        wanted.extend(X86);
    }
    if from_package {
        wanted.extend(PACKAGE);
    }
    wanted.retain(|tool| find(tool.program).is_none());
    if !kind.is_stock() {
        wanted.extend(headers(matches!(kind, Kind::X86(..))));
    }
    missing("building a kernel", wanted)
}

/// Checks that a kernel of this kind can be booted here.
///
/// # Errors
///
/// [`Error::MissingTools`] with the command that installs what is missing.
pub fn check_boot(kind: Kind) -> Result<()> {
    let mut wanted = Vec::new();
    if kind.machine() == Machine::Qemu && find(QEMU.program).is_none() {
        wanted.push(QEMU);
    }
    if kind.is_stock() && virtiofsd().is_none() {
        wanted.push(tool("virtiofsd", virtiofsd_package()));
    }
    missing("booting this kernel", wanted)
}

/// The daemon that serves virtio-fs: Debian 13's, or the one that came with QEMU before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Virtiofsd {
    pub(crate) path: PathBuf,
    pub(crate) takes_long_options: bool,
}

/// Finds it where Debian puts it.
pub(crate) fn virtiofsd() -> Option<Virtiofsd> {
    [("/usr/libexec/virtiofsd", true), ("/usr/lib/qemu/virtiofsd", false)]
        .into_iter()
        .map(|(path, takes_long_options)| Virtiofsd { path: path.into(), takes_long_options })
        .find(|daemon| daemon.path.exists())
}

/// Before Debian 13 it is a part of QEMU's.
fn virtiofsd_package() -> &'static str {
    let debian = std::fs::read_to_string("/etc/debian_version").unwrap_or_default();
    if debian.starts_with("12") { "qemu-system-common" } else { "virtiofsd" }
}

/// Checks that a module can be built.
///
/// # Errors
///
/// [`Error::MissingTools`] with the command that installs what is missing. The compiler is not
/// checked: the headers know which one it has to be.
pub(crate) fn check_module() -> Result<()> {
    let mut wanted = vec![tool("make", "make"), tool("ld", "binutils")];
    wanted.retain(|tool| find(tool.program).is_none());
    missing("building a module", wanted)
}

fn missing(purpose: &'static str, missing: Vec<Tool>) -> Result<()> {
    if missing.is_empty() {
        return Ok(());
    }
    Err(Error::MissingTools(MissingTools { purpose, missing }.to_string()))
}

fn has_headers() -> bool {
    let has_compiler = find("gcc").is_some() && find("ld").is_some();
    if has_compiler { links() } else { Path::new("/usr/include/stdio.h").exists() }
}

/// Where a program lies on the PATH.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}

/// Whether a C program with the C library's headers compiles and links.
fn links() -> bool {
    let child = Command::new("gcc")
        .args(["-x", "c", "-", "-o", "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        let program = "#include <stdio.h>\n#include <sys/epoll.h>\nint main(void){return 0;}\n";
        // A compiler that dies early closes the pipe; its status says so below.
        let _ = stdin.write_all(program.as_bytes());
    }
    child.wait().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_missing_is_named_at_once_with_one_command() {
        let wanted = vec![tool("flex", "flex"), tool("xz", "xz-utils"), tool("ld", "binutils")];
        let error = missing("building a kernel", wanted).unwrap_err();
        assert_eq!(
            error.to_string(),
            "building a kernel needs flex, xz, ld, which are not here; as root: apt-get install \
             binutils flex xz-utils"
        );
        assert_eq!(error.exit_code(), 3);
        assert!(missing("nothing", Vec::new()).is_ok());
    }

    #[test]
    fn find_looks_for_executables_only() {
        assert!(find("sh").is_some());
        assert!(find("no-such-program-of-any-distribution").is_none());
    }
}
