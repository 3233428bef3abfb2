//! Taking packages apart, which are never installed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::cache::{MODULES, children};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::{process, tools};

/// What no kernel is built of here, half of the files; what Kconfig reads stays.
const LEFT_OUT: &str = include_str!("left-out.txt");

/// Room for an unpacked source and its build, in bytes: measured 1.8 GB and 0.5 GB, and a reserve.
pub(crate) const NEEDED_BYTES: u64 = 2_800_000_000;

fn damaged(package: &Path, reason: &str) -> Error {
    Error::Damaged { path: package.to_path_buf(), reason: reason.into() }
}

fn run(command: &mut Command, package: &Path, interrupts: &Interrupts) -> Result<()> {
    match process::output(command, interrupts) {
        Err(Error::Io { cause, .. }) => Err(damaged(package, &cause.to_string())),
        other => other.map(drop),
    }
}

pub(crate) fn files(package: &Path, target: &Path, interrupts: &Interrupts) -> Result<()> {
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(target), package, interrupts)
}

/// Unpacks the kernel's source that a package holds into `target`, and gives the tree's folder.
pub(crate) fn source(package: &Path, target: &Path, interrupts: &Interrupts) -> Result<PathBuf> {
    files(package, target, interrupts)?;
    let found = children(&target.join("usr/src"))?;
    let is_tree = |path: &&PathBuf| path.to_string_lossy().ends_with(".tar.xz");
    let missing = || damaged(package, "it holds no usr/src/linux-source-*.tar.xz");
    let archive = found.iter().find(is_tree).ok_or_else(missing)?;
    let mut tar = Command::new("tar");
    tar.args(LEFT_OUT.lines().map(|path| format!("--exclude=*/{path}")));
    tar.args(["--use-compress-program=xz --threads=0", "--extract", "--touch", "--file"]);
    run(tar.arg(archive).arg("-C").arg(target), package, interrupts)?;
    fs::remove_file(archive).doing("removing", archive)?;
    let tree = children(target)?.into_iter().find(|path| path.join("Makefile").is_file());
    tree.ok_or_else(|| damaged(package, "there is no Makefile in its source"))
}

/// Unpacks a kernel of the distribution as `linux`, `config` and `lib/modules/RELEASE` into `target`,
/// and gives the release. All may be in one package, or in several.
pub(crate) fn image(
    packages: &[PathBuf],
    target: &Path,
    interrupts: &Interrupts,
) -> Result<String> {
    let whole = tempfile::tempdir_in(target).doing("creating", target)?;
    for package in packages {
        files(package, whole.path(), interrupts)?;
    }
    let first = packages.first().map_or(target, PathBuf::as_path);
    // Newer packages know that /lib is a link.
    let folders = ["lib/modules", "usr/lib/modules"].map(|folder| whole.path().join(folder));
    let modules = folders.iter().find_map(|folder| children(folder).ok()?.pop());
    let modules = modules.ok_or_else(|| damaged(first, "there are no modules in it"))?;
    let release = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The kernel is in boot/, or beside its modules.
    for (names, to) in
        [(["vmlinuz", "vmlinuz.unsigned"], "linux"), (["config", "config"], "config")]
    {
        let beside = names.iter().map(|name| modules.join(name));
        let in_boot = whole.path().join(format!("boot/{}-{release}", names[0]));
        let found = beside.chain([in_boot]).find(|path| path.is_file());
        let found = found.ok_or_else(|| damaged(first, "there is no kernel in it"))?;
        fs::rename(&found, target.join(to)).doing("moving", &found)?;
    }
    let place = target.join(MODULES);
    fs::create_dir_all(&place).doing("creating", &place)?;
    fs::rename(&modules, place.join(&release)).doing("moving", &modules)?;
    // Which module needs which is worked out where a kernel is installed, and not in the package.
    if tools::find("depmod").is_some() {
        let mut depmod = Command::new("depmod");
        process::output(depmod.arg("-b").arg(target).arg(&release), interrupts)?;
    }
    Ok(release)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::folder;

    /// A package with these files, each of which holds its name.
    fn package(to: &Path, files: &[&str]) -> PathBuf {
        let control = "Package: p\nVersion: 1\nArchitecture: all\nMaintainer: t\nDescription: t\n";
        let files = files.iter().map(|name| (*name, *name)).chain([("DEBIAN/control", control)]);
        let folder = folder(&files.collect::<Vec<_>>());
        let file = to.join("p.deb");
        let mut dpkg = Command::new("dpkg-deb");
        dpkg.args(["--root-owner-group", "--build"]).arg(folder.path()).arg(&file);
        assert!(dpkg.output().unwrap().status.success());
        file
    }

    #[test]
    fn newer_packages_have_the_kernel_beside_its_modules() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["vmlinuz.unsigned", "config", "kernel/a.ko.xz", "modules.builtin"]
            .map(|name| format!("usr/lib/modules/7.3.4-x/{name}"));
        let package = package(folder.path(), &names.each_ref().map(String::as_str));
        let target = folder.path().join("target");
        fs::create_dir(&target).unwrap();
        let interrupts = Interrupts::arm().unwrap();
        assert_eq!(image(&[package], &target, &interrupts).unwrap(), "7.3.4-x");
        assert_eq!(fs::read_to_string(target.join("linux")).unwrap(), names[0]);
        assert!(target.join("config").is_file());
        assert!(target.join("lib/modules/7.3.4-x/kernel/a.ko.xz").is_file());
        assert_eq!(children(&target).unwrap().len(), 3);
    }

    #[test]
    fn a_package_without_a_source_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let interrupts = Interrupts::arm().unwrap();
        let package = package(folder.path(), &["etc/x"]);
        let error = source(&package, &folder.path().join("target"), &interrupts).unwrap_err();
        assert!(error.to_string().contains(".deb is damaged"), "{error}");
    }
}
