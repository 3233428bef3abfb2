//! The programs that are needed, and what they are called in Debian.

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::kind::{Kind, RunsAs};

/// A program, or a file of the C library's or another's headers, and Debian's package with it.
type Tool = (&'static str, &'static str);

/// What `make ARCH=um` calls of what a Debian may lack, found by logging what a build starts.
const BUILD: &[Tool] = &[
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("make", "make"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("patch", "patch"),
    ("find", "findutils"),
    ("awk", "mawk"),
    ("/usr/include/stdio.h", "libc6-dev"),
];
/// What `make ARCH=x86_64` calls beside those; the header is objtool's.
const X86: &[Tool] = &[("gzip", "gzip"), ("/usr/include/gelf.h", "libelf-dev")];
/// What `make bindeb-pkg` calls beside those.
const PACKING: &[Tool] = &[
    ("dpkg-buildpackage", "dpkg-dev"),
    ("dh_builddeb", "debhelper"),
    ("rsync", "rsync"),
    ("depmod", "kmod"),
    ("cpio", "cpio"),
    ("python3", "python3"),
];
/// What getting and unpacking a package needs.
const PACKAGE: &[Tool] = &[
    ("apt-get", "apt"),
    ("apt-cache", "apt"),
    ("apt-config", "apt"),
    ("dpkg-deb", "dpkg"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// All that is missing, in one go.
fn check_all(purpose: &str, wanted: &[&[Tool]]) -> Result<()> {
    let is_here = |name: &str| match name.starts_with('/') {
        true => Path::new(name).exists(),
        false => find(name).is_some(),
    };
    let missing: Vec<Tool> =
        wanted.concat().into_iter().filter(|(name, _)| !is_here(name)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.sort_unstable();
    packages.dedup();
    Err(Error::NotHere(format!(
        "{purpose} needs {}, which {} not here; as root: apt-get install {}",
        names.join(", "),
        if names.len() == 1 { "is" } else { "are" },
        packages.join(" ")
    )))
}

/// Checks that packages of a kernel can be built.
pub(crate) fn check_packages(from_package: bool) -> Result<()> {
    let package = if from_package { PACKAGE } else { &[] };
    check_all("building packages of a kernel", &[BUILD, X86, PACKING, package])
}

/// Checks that a build can start, or for a stock kernel that it can be fetched.
pub(crate) fn check(kind: Kind, from_package: bool) -> Result<()> {
    let build = if kind.is_stock() { &[] } else { BUILD };
    let x86 = if matches!(kind, Kind::X86(..) | Kind::Kvm) { X86 } else { &[] };
    check_all("building a kernel", &[build, x86, if from_package { PACKAGE } else { &[] }])
}

/// Checks that there are the programs that boot a kernel of this kind.
pub(crate) fn check_boot(kind: Kind) -> Result<()> {
    let is_in_qemu = kind.runs_as() == RunsAs::Qemu;
    let qemu: &[Tool] = &[("qemu-system-x86_64", "qemu-system-x86")];
    check_all("booting this kernel", &[if is_in_qemu { qemu } else { &[] }])?;
    if kind.is_stock() && virtiofsd().is_none() {
        check_all("booting this kernel", &[&[("virtiofsd", virtiofsd_package())]])?;
    }
    Ok(())
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

/// Checks that a module can be built. The headers know which compiler it has to be.
pub(crate) fn check_module() -> Result<()> {
    check_all("building a module", &[&[("make", "make"), ("ld", "binutils")]])
}

pub(crate) fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok())
}
