//! The headers of the distribution's kernels: unpacked from their packages, never installed.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cache::{Built, Cache, Part, SourceId};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::progress::Progress;
use crate::source::package::Apt;
use crate::source::unpack;
use crate::source::wanted::{Package, Wanted};

/// How the releases of the distribution's kernels end.
const ENDINGS: [&str; 2] = ["-cloud-amd64", "-amd64"];

/// The headers of a stock kernel that `ntcopy kernel build` has fetched: of the cache, else of the
/// mirror.
pub(super) fn headers(
    kernel: &Built,
    cache: &Cache,
    etc_apt: &Path,
    progress: &mut dyn Progress,
) -> Result<PathBuf> {
    let interrupts = Interrupts::arm().doing("taking over signals for", "the headers")?;
    let SourceId::Package { version, .. } = &kernel.meta.source else {
        return Err(Error::NotHere("a kernel that came from no package has no headers".into()));
    };
    let release = kernel.meta.release.as_str();
    let name = format!("{release}_{}", version.replace(':', "%3a"));
    let folder = cache.headers().join(name);
    if !is_usable(&folder, release) {
        let _lock = cache.lock(Part::Kernels, &interrupts, progress)?;
        // Whoever had the lock may have unpacked them.
        if !is_usable(&folder, release) {
            let packages = packages(kernel, version, (cache, etc_apt), &interrupts, progress)?;
            progress.begin("unpacking the headers", None);
            let unpacked = unpack(&packages, cache, &folder, release, &interrupts);
            progress.end();
            unpacked?;
        }
    }
    Ok(headers_in(&folder, release))
}

/// The headers' folder below the place where the packages were unpacked.
fn headers_in(folder: &Path, release: &str) -> PathBuf {
    folder.join(format!("usr/src/linux-headers-{release}"))
}

/// Whether all is there, and where it was when it was unpacked: paths are written into it.
fn is_usable(folder: &Path, release: &str) -> bool {
    let makefile = headers_in(folder, release).join("Makefile");
    let text = fs::read_to_string(makefile).unwrap_or_default();
    text.contains(&format!("{}/usr/src/", folder.display()))
}

/// The packages of the headers, downloaded unless the cache has them.
fn packages(
    kernel: &Built,
    version: &str,
    (cache, etc_apt): (&Cache, &Path),
    interrupts: &Interrupts,
    progress: &mut dyn Progress,
) -> Result<Vec<Package>> {
    let release = kernel.meta.release.as_str();
    let base = ENDINGS.iter().find_map(|ending| release.strip_suffix(ending)).unwrap_or(release);
    let packages: Vec<Package> = [
        (format!("linux-headers-{release}"), "amd64"),
        (format!("linux-headers-{base}-common"), "all"),
        (format!("linux-kbuild-{base}"), "amd64"),
    ]
    .map(|(name, architecture)| Package::named(name, version.to_owned(), architecture))
    .into();
    let mut apt = None;
    for package in packages.iter().filter(|package| !package.file(cache).is_file()) {
        let apt = match &mut apt {
            Some(apt) => apt,
            None => {
                let wanted = Wanted::image(kernel.kind);
                apt.insert(Apt::update(etc_apt, wanted, interrupts, progress)?)
            }
        };
        let offered = apt.show(std::slice::from_ref(&package.name), interrupts)?;
        if !offered.contains(package) {
            return Err(apt.no_package(package));
        }
        apt.download(package, cache, interrupts, progress)?;
    }
    Ok(packages)
}

fn unpack(
    packages: &[Package],
    cache: &Cache,
    folder: &Path,
    release: &str,
    interrupts: &Interrupts,
) -> Result<()> {
    let partial = cache.partial(&cache.headers())?;
    let out = partial.path().join("out");
    fs::create_dir_all(&out).doing("creating", &out)?;
    for package in packages {
        unpack::files(&package.file(cache), &out, interrupts)?;
    }
    settle(&out, folder, release)?;
    if folder.exists() {
        fs::rename(folder, partial.path().join("old")).doing("replacing", folder)?;
    }
    fs::rename(&out, folder).doing("moving the headers to", folder)
}

/// Writes the place where it is going to be into what refers to /usr/src.
fn settle(out: &Path, folder: &Path, release: &str) -> Result<()> {
    let headers = headers_in(out, release);
    let makefile = headers.join("Makefile");
    let text = fs::read_to_string(&makefile).doing("reading", &makefile)?;
    let text = text.replace("/usr/src/", &format!("{}/usr/src/", folder.display()));
    fs::write(&makefile, text).doing("writing", &makefile)?;
    // With it the build would call pahole, for types that only tracers want.
    let types = headers.join("vmlinux");
    if types.exists() {
        fs::remove_file(&types).doing("removing", &types)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_were_moved_are_unpacked_again() {
        let home = tempfile::tempdir().unwrap();
        let (folder, out) = (home.path().join("headers"), home.path().join("out"));
        let headers = headers_in(&out, "6.12.1");
        fs::create_dir_all(&headers).unwrap();
        fs::write(headers.join("Makefile"), "include /usr/src/common/Makefile\n").unwrap();
        fs::write(headers.join("vmlinux"), "types").unwrap();
        settle(&out, &folder, "6.12.1").unwrap();
        let text = fs::read_to_string(headers.join("Makefile")).unwrap();
        assert_eq!(text, format!("include {}/usr/src/common/Makefile\n", folder.display()));
        assert!(!headers.join("vmlinux").exists());
        assert!(!is_usable(&folder, "6.12.1"));
        fs::rename(&out, &folder).unwrap();
        assert!(is_usable(&folder, "6.12.1"));
        let moved = home.path().join("other");
        fs::rename(&folder, &moved).unwrap();
        assert!(!is_usable(&moved, "6.12.1"));
    }
}
