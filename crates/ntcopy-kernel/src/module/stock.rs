//! The headers of the distribution's kernels: unpacked from their packages, never installed.
//!
//! They are made for their own system's compiler and C library. Where this system is older, both
//! come from packages too, and every program of theirs is started through their own loader.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::{Built, Cache, SourceId};
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::Release;
use crate::progress::Progress;
use crate::source::package::Apt;
use crate::source::unpack;
use crate::source::wanted::{Package, Wanted};
use crate::tools;

/// What a module for a stock kernel is built against.
pub(super) struct StockHeaders {
    pub(super) dir: PathBuf,
    /// Where this system has none that would do.
    pub(super) compiler: Option<String>,
}

/// How the releases of the distribution's kernels end.
const ENDINGS: [&str; 2] = ["-cloud-amd64", "-amd64"];

/// What a compiler of a newer system needs beside itself, and the kernel's tools too.
const LIBRARIES: &[&str] =
    &["libc6", "libelf1t64", "libgmp10", "libisl23", "libmpc3", "libmpfr6", "libzstd1", "zlib1g"];

/// Programs of the kernel's build tools that need a C library as new as their own.
const KBUILD_PROGRAMS: [&str; 2] =
    ["scripts/mod/modpost.real-lsb-64", "tools/objtool/objtool.real-x86"];

/// The headers of a stock kernel that `ntcopy kernel build` has fetched: of the cache, else of the
/// mirror.
pub(super) fn headers(
    kernel: &Built,
    cache: &Cache,
    etc_apt: &Path,
    progress: &mut dyn Progress,
) -> Result<StockHeaders> {
    let interrupts = Interrupts::arm().doing("taking over signals for", "the headers")?;
    let SourceId::Package { version, .. } = &kernel.meta.source else {
        return Err(Error::NotHere("a kernel that came from no package has no headers".into()));
    };
    let name = format!("{}_{}", kernel.meta.release, version.replace(':', "%3a"));
    let folder = cache.headers().join(name);
    let wanted = Wanted::headers(kernel.kind);
    let mut work = Work { cache, etc_apt, wanted, folder, apt: None, interrupts: &interrupts };
    if !work.is_usable(&kernel.meta.release) {
        let _lock = cache.lock(&interrupts, progress)?;
        // Whoever had the lock may have unpacked them.
        if !work.is_usable(&kernel.meta.release) {
            work.unpack(&kernel.meta.release, version, progress)?;
        }
    }
    Ok(work.found(&kernel.meta.release))
}

/// What is under way.
struct Work<'a> {
    cache: &'a Cache,
    etc_apt: &'a Path,
    wanted: Wanted,
    /// Where it is going to be.
    folder: PathBuf,
    /// Asked once, and only if need be.
    apt: Option<Apt>,
    interrupts: &'a Interrupts,
}

/// The headers' folder below the place where the packages were unpacked.
fn headers_in(folder: &Path, release: &str) -> PathBuf {
    folder.join(format!("usr/src/linux-headers-{release}"))
}

impl Work<'_> {
    /// Whether all is there, and where it was when it was unpacked: paths are written into it.
    fn is_usable(&self, release: &str) -> bool {
        let makefile = headers_in(&self.folder, release).join("Makefile");
        let text = fs::read_to_string(makefile).unwrap_or_default();
        text.contains(&format!("{}/usr/src/", self.folder.display()))
    }

    fn found(&self, release: &str) -> StockHeaders {
        let compiler = self.folder.join("bin/gcc");
        StockHeaders {
            dir: headers_in(&self.folder, release),
            compiler: compiler.is_file().then(|| compiler.display().to_string()),
        }
    }

    fn unpack(&mut self, release: &str, version: &str, progress: &mut dyn Progress) -> Result<()> {
        let parent = self.cache.headers();
        fs::create_dir_all(&parent).doing("creating", &parent)?;
        let partial = self.cache.partial(&parent)?;
        let out = partial.path().join("out");
        fs::create_dir_all(&out).doing("creating", &out)?;
        let base = ENDINGS.iter().find_map(|ending| release.strip_suffix(ending));
        let base = base.unwrap_or(release);
        for (name, architecture) in [
            (format!("linux-headers-{release}"), "amd64"),
            (format!("linux-headers-{base}-common"), "all"),
            (format!("linux-kbuild-{base}"), "amd64"),
        ] {
            let package = Package::named(name, version.to_owned(), architecture);
            let package = self.fetched(package, progress)?;
            self.unpack_package(&package, &out, progress)?;
        }
        self.settle(&out, release)?;
        let kbuild = out.join(format!("usr/lib/linux-kbuild-{base}"));
        let major = gcc_major(&headers_in(&out, release))?;
        if self.wanted.release() == Release::Newest && !runs_here(&kbuild, major) {
            self.bring_compiler(&out, major, &kbuild, progress)?;
        }
        if self.folder.exists() {
            let old = partial.path().join("old");
            fs::rename(&self.folder, &old).doing("replacing", &self.folder)?;
        }
        fs::rename(&out, &self.folder).doing("moving the headers to", &self.folder)
    }

    /// The package, downloaded unless the cache has it.
    fn fetched(&mut self, package: Package, progress: &mut dyn Progress) -> Result<Package> {
        if package.file(self.cache).is_file() {
            return Ok(package);
        }
        let (cache, interrupts) = (self.cache, self.interrupts);
        let apt = self.apt(progress)?;
        let offered = apt.show(std::slice::from_ref(&package.name), interrupts)?;
        let found = offered.into_iter().find(|offer| offer.version == package.version);
        let found = found.ok_or_else(|| apt.no_package(&package))?;
        apt.download(&found, cache, interrupts, progress)?;
        Ok(found)
    }

    fn apt(&mut self, progress: &mut dyn Progress) -> Result<&Apt> {
        if self.apt.is_none() {
            let apt = Apt::update(self.etc_apt, self.wanted, self.interrupts, progress)?;
            self.apt = Some(apt);
        }
        Ok(self.apt.as_ref().expect("set above"))
    }

    fn unpack_package(
        &self,
        package: &Package,
        out: &Path,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let file = package.file(self.cache);
        progress.begin(&format!("unpacking {}", package.name), None);
        let unpacked = unpack::files(&file, out, self.interrupts);
        progress.end();
        unpacked
    }

    /// Writes the place where it is going to be into what refers to /usr/src.
    fn settle(&self, out: &Path, release: &str) -> Result<()> {
        let headers = headers_in(out, release);
        let makefile = headers.join("Makefile");
        let text = fs::read_to_string(&makefile).doing("reading", &makefile)?;
        let place = format!("{}/usr/src/", self.folder.display());
        let text = text.replace("/usr/src/", &place);
        fs::write(&makefile, text).doing("writing", &makefile)?;
        // With it the build would call pahole, for types that only tracers want.
        let types = headers.join("vmlinux");
        if types.exists() {
            fs::remove_file(&types).doing("removing", &types)?;
        }
        Ok(())
    }

    /// Unpacks the compiler of the headers' own system with its libraries into `foreign/`, and puts
    /// a script for each program that is to run here into `bin/`, or in the program's place.
    fn bring_compiler(
        &mut self,
        out: &Path,
        major: u64,
        kbuild: &Path,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let compiler = ["gcc", "cpp"].map(|name| format!("{name}-{major}-x86-64-linux-gnu"));
        let names: Vec<String> =
            compiler.into_iter().chain(LIBRARIES.iter().map(|&name| name.into())).collect();
        let (cache, interrupts) = (self.cache, self.interrupts);
        let apt = self.apt(progress)?;
        let mut packages = Vec::new();
        for name in &names {
            let offered = apt.show(std::slice::from_ref(name), interrupts)?;
            let missing = || apt.no_package(&Package::named(name.clone(), "any".into(), "amd64"));
            packages.push(offered.into_iter().next().ok_or_else(missing)?);
        }
        for package in packages.iter().filter(|package| !package.file(cache).is_file()) {
            apt.download(package, cache, interrupts, progress)?;
        }
        for package in &packages {
            self.unpack_package(package, &out.join("foreign"), progress)?;
        }
        self.write_scripts(out, major, kbuild)
    }

    fn write_scripts(&self, out: &Path, major: u64, kbuild: &Path) -> Result<()> {
        let foreign = self.folder.join("foreign");
        let bin = out.join("bin");
        fs::create_dir_all(&bin).doing("creating", &bin)?;
        let internal = foreign.join(format!("usr/libexec/gcc/x86_64-linux-gnu/{major}"));
        for program in ["cc1", "collect2"] {
            write_script(&bin.join(program), &script(&foreign, &internal.join(program), ""))?;
        }
        // It would look for the rest of itself where it was meant to be installed.
        let own = format!("-B{}/bin/ -no-canonical-prefixes", self.folder.display());
        let gcc = foreign.join(format!("usr/bin/x86_64-linux-gnu-gcc-{major}"));
        write_script(&bin.join("gcc"), &script(&foreign, &gcc, &own))?;
        for program in KBUILD_PROGRAMS.map(|name| kbuild.join(name)) {
            let real = program.with_extension("elf");
            fs::rename(&program, &real).doing("renaming", &program)?;
            let below = real.strip_prefix(out).unwrap_or(&real);
            write_script(&program, &script(&foreign, &self.folder.join(below), ""))?;
        }
        Ok(())
    }
}

/// Whether the kernel's own tools run with this system's C library, and their compiler is here.
fn runs_here(kbuild: &Path, gcc_major: u64) -> bool {
    let mut tool = Command::new(kbuild.join(KBUILD_PROGRAMS[0]));
    let output = tool.stdin(Stdio::null()).output();
    let is_started =
        output.is_ok_and(|output| !String::from_utf8_lossy(&output.stderr).contains("GLIBC_"));
    is_started && tools::find(&format!("gcc-{gcc_major}")).is_some()
}

/// The major version of the compiler that the kernel was built with.
fn gcc_major(headers: &Path) -> Result<u64> {
    let path = headers.join("include/config/auto.conf");
    let text = fs::read_to_string(&path).doing("reading", &path)?;
    let value = text.lines().find_map(|line| line.strip_prefix("CONFIG_GCC_VERSION="));
    let version: Option<u64> = value.and_then(|value| value.parse().ok());
    version
        .map(|version| version / 10_000)
        .filter(|major| *major > 0)
        .ok_or_else(|| Error::NotHere(format!("{} names no gcc", path.display())))
}

/// A script that starts a program through the loader of its own system.
fn script(foreign: &Path, program: &Path, arguments: &str) -> String {
    let libraries = foreign.join("usr/lib/x86_64-linux-gnu");
    format!(
        "#!/bin/sh\nexec '{lib}/ld-linux-x86-64.so.2' --library-path '{lib}' --argv0 '{program}' \
         '{program}' {arguments} \"$@\"\n",
        lib = libraries.display(),
        program = program.display()
    )
}

fn write_script(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).doing("writing", path)?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(path, executable).doing("writing", path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_starts_its_program_and_passes_its_words_on() {
        let folder = tempfile::tempdir().unwrap();
        // This system's loader and echo stand for another system's.
        let libraries = folder.path().join("usr/lib/x86_64-linux-gnu");
        fs::create_dir_all(&libraries).unwrap();
        let loader = Path::new("/lib64/ld-linux-x86-64.so.2");
        if !loader.exists() {
            println!("not run: {} is not here", loader.display());
            return;
        }
        std::os::unix::fs::symlink(loader, libraries.join("ld-linux-x86-64.so.2")).unwrap();
        let path = folder.path().join("it");
        let echo = tools::find("echo").unwrap();
        write_script(&path, &script(folder.path(), &echo, "first")).unwrap();
        let said = Command::new(&path).args(["a b", "$c"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&said.stdout), "first a b $c\n");
    }

    #[test]
    fn headers_that_were_moved_are_unpacked_again() {
        let home = tempfile::tempdir().unwrap();
        let cache = Cache::at(home.path());
        let interrupts = Interrupts::arm().unwrap();
        let folder = home.path().join("headers/it");
        let work = Work {
            cache: &cache,
            etc_apt: home.path(),
            wanted: Wanted::headers(crate::kind::Kind::Stock(Release::V6_12)),
            folder: folder.clone(),
            apt: None,
            interrupts: &interrupts,
        };
        let out = home.path().join("out");
        let headers = headers_in(&out, "6.12.1");
        fs::create_dir_all(&headers).unwrap();
        fs::write(headers.join("Makefile"), "include /usr/src/common/Makefile\n").unwrap();
        fs::write(headers.join("vmlinux"), "types").unwrap();
        work.settle(&out, "6.12.1").unwrap();
        let text = fs::read_to_string(headers.join("Makefile")).unwrap();
        assert_eq!(text, format!("include {}/usr/src/common/Makefile\n", folder.display()));
        assert!(!headers.join("vmlinux").exists());
        assert!(!work.is_usable("6.12.1"));
        fs::create_dir_all(folder.parent().unwrap()).unwrap();
        fs::rename(&out, &folder).unwrap();
        assert!(work.is_usable("6.12.1"));
        let moved = home.path().join("headers/other");
        fs::rename(&folder, &moved).unwrap();
        assert!(!Work { folder: moved, ..work }.is_usable("6.12.1"));
    }
}
