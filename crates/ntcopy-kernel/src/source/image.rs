//! Taking a kernel out of the distribution's packages of it, which are never installed.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::unpack::start;
use crate::cache::{MODULES, children};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::{process, tools};

/// Unpacks kernel (`linux`), configuration (`config`) and modules (`lib/modules/RELEASE`) into
/// `target`, and gives the release. All may be in one package, or in several.
pub(crate) fn unpack(
    packages: &[PathBuf],
    target: &Path,
    interrupts: &Interrupts,
) -> Result<String> {
    let damaged = |package: &Path, what: &str| Error::Damaged {
        path: package.to_path_buf(),
        reason: what.into(),
    };
    for package in packages {
        let mut dpkg = Command::new("dpkg-deb");
        let dpkg = dpkg.arg("--fsys-tarfile").arg(package).stdin(Stdio::null());
        let (mut dpkg, files) = start(dpkg.stderr(Stdio::null()))?;
        let unpacked = entries(files, target, interrupts);
        if !dpkg.wait()?.success() {
            return Err(damaged(package, "dpkg-deb cannot read it"));
        }
        unpacked?;
    }
    let release = children(&target.join(MODULES))?
        .first()
        .and_then(|path| path.file_name())
        .map(|name| name.to_string_lossy().into_owned());
    let first = packages.first().map_or(target, PathBuf::as_path);
    let release = release.ok_or_else(|| damaged(first, "there are no modules in it"))?;
    if !target.join("linux").is_file() {
        return Err(damaged(first, "there is no kernel in it"));
    }
    // Which module needs which is worked out where a kernel is installed, and not in the package.
    if tools::find("depmod").is_some() {
        let mut depmod = Command::new("depmod");
        process::output(depmod.arg("-b").arg(target).arg(&release), interrupts)?;
    }
    Ok(release)
}

/// Unpacks what is wanted of a package's files.
fn entries(files: impl Read, target: &Path, interrupts: &Interrupts) -> Result<()> {
    let mut archive = tar::Archive::new(files);
    let entries = archive.entries().doing("unpacking to", target)?;
    for entry in entries {
        interrupts.check()?;
        let mut entry = entry.doing("unpacking to", target)?;
        let path = entry.path().doing("unpacking to", target)?.to_string_lossy().into_owned();
        let path = path.trim_start_matches("./");
        // Newer packages know that /lib is a link.
        let path = path.strip_prefix("usr/").unwrap_or(path);
        let Some(place) = place(path) else { continue };
        let place = target.join(place);
        if entry.header().entry_type().is_file() {
            let parent = place.parent().unwrap_or(target);
            fs::create_dir_all(parent).doing("creating", parent)?;
            entry.unpack(&place).doing("unpacking to", &place)?;
        }
    }
    // The rest is padding; dpkg-deb is to end by itself.
    std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).doing("unpacking to", target)?;
    Ok(())
}

/// Where a file goes that is wanted. Packages have the kernel in boot/ or beside its modules.
fn place(path: &str) -> Option<&str> {
    let is_in_boot = path.starts_with("boot/");
    let below_modules = path.strip_prefix("lib/modules/").filter(|_| !path.contains(".."));
    let name = match below_modules {
        Some(rest) => rest.split_once('/')?.1,
        None => path.strip_prefix("boot/")?,
    };
    match name {
        "vmlinuz" | "vmlinuz.unsigned" => Some("linux"),
        "config" => Some("config"),
        _ if is_in_boot && name.starts_with("vmlinuz-") => Some("linux"),
        _ if is_in_boot && name.starts_with("config-") => Some("config"),
        _ => below_modules.map(|_| path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files of a package, as `dpkg-deb --fsys-tarfile` gives them.
    fn files(names: &[&str]) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        for name in names {
            let mut header = tar::Header::new_gnu();
            header.set_size(name.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, name, name.as_bytes()).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpacked(names: &[&str]) -> tempfile::TempDir {
        let target = tempfile::tempdir().unwrap();
        let interrupts = Interrupts::arm().unwrap();
        entries(files(names).as_slice(), target.path(), &interrupts).unwrap();
        target
    }

    #[test]
    fn kernel_configuration_and_modules_are_taken_and_nothing_else() {
        let target = unpacked(&[
            "boot/vmlinuz-6.12.117+deb12-cloud-amd64",
            "boot/config-6.12.117+deb12-cloud-amd64",
            "boot/System.map-6.12.117+deb12-cloud-amd64",
            "lib/modules/6.12.117+deb12-cloud-amd64/kernel/net/tls/tls.ko.xz",
            "usr/share/doc/linux-image/copyright",
        ]);
        let place = |name: &str| target.path().join(name);
        assert!(fs::read_to_string(place("linux")).unwrap().contains("vmlinuz"));
        assert!(place("config").is_file());
        let module = "lib/modules/6.12.117+deb12-cloud-amd64/kernel/net/tls/tls.ko.xz";
        assert!(place(module).is_file());
        assert_eq!(children(target.path()).unwrap().len(), 3);
    }

    #[test]
    fn a_package_of_a_merged_system_is_unpacked_the_same_way() {
        let folder = "usr/lib/modules/7.3.4";
        let names = ["vmlinuz.unsigned", "config", "modules.builtin", "kernel/a.ko.xz"];
        let names = names.map(|name| format!("{folder}/{name}"));
        let target = unpacked(&names.each_ref().map(String::as_str));
        for place in ["linux", "config", "lib/modules/7.3.4/kernel/a.ko.xz"] {
            assert!(target.path().join(place).is_file(), "{place}");
        }
        assert!(target.path().join("lib/modules/7.3.4/modules.builtin").is_file());
    }

    #[test]
    fn a_file_that_is_no_package_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("x.deb");
        fs::write(&package, "not a package").unwrap();
        let interrupts = Interrupts::arm().unwrap();
        let error = unpack(&[package], &folder.path().join("target"), &interrupts).unwrap_err();
        assert!(error.to_string().contains("x.deb is damaged"), "{error}");
    }
}
