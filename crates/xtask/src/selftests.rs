//! Builds the programs of kernel/selftests outside of a kernel tree. The harness that they are
//! written for is the kernel's own: it comes from NTCOPY_LINUX, or from the source package that
//! `ntcopy kernel build` keeps, and is kept beside it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ntcopy_kernel::{Cache, cached_sources};

use crate::error::{Doing, Error};
use crate::programs::root;
use crate::running::said;

const HEADERS: [&str; 2] = ["kselftest.h", "kselftest_harness.h"];

/// What each program is linked with.
const COMMON: [&str; 9] = [
    "scene.c",
    "scene_io.c",
    "stat.c",
    "hint.c",
    "family.c",
    "family_other.c",
    "device.c",
    "ring.c",
    "acts.c",
];

/// Builds programs into a folder; every warning is an error.
pub fn build(folder: &Path, programs: &[&str]) -> Result<(), Error> {
    let include = include()?;
    let suite = root().join("kernel/selftests");
    fs::create_dir_all(folder).doing("making a folder for the suite")?;
    for program in programs {
        let mut compiler = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
        compiler.current_dir(&suite);
        compiler.args(["-O2", "-D_GNU_SOURCE=", "-Wall", "-Wextra", "-Werror", "-I."]);
        compiler.arg("-I").arg(root().join("uapi")).arg("-I").arg(&include);
        compiler.arg(format!("{program}.c"));
        let rest = format!("{program}_acts.c");
        if suite.join(&rest).exists() {
            compiler.arg(rest);
        }
        compiler.args(COMMON).arg("-o").arg(folder.join(program)).arg("-lpthread");
        said(&mut compiler, &format!("kernel/selftests/{program}.c"))?;
    }
    Ok(())
}

/// The folder with the harness.
fn include() -> Result<PathBuf, Error> {
    let tree = std::env::var_os("NTCOPY_LINUX").filter(|tree| !tree.is_empty());
    let folder = match tree {
        Some(tree) => PathBuf::from(tree).join("tools/testing/selftests"),
        None => {
            let cache = Cache::locate()?;
            let packages = cached_sources(&cache)?;
            let package = packages.first().ok_or_else(|| {
                let fix = "run 'ntcopy kernel build' first, or set NTCOPY_LINUX";
                Error::NotHere(format!("no kernel source: {fix}"))
            })?;
            unpacked(&cache, package)?
        }
    };
    match HEADERS.iter().find(|header| !folder.join(header).exists()) {
        Some(header) => Err(Error::NotHere(format!("{} has no {header}", folder.display()))),
        None => Ok(folder),
    }
}

/// Unpacks the two headers of a package, once: it takes a while to get at them.
fn unpacked(cache: &Cache, package: &Path) -> Result<PathBuf, Error> {
    let folder = cache.root().join("selftests");
    let name = package.file_stem().unwrap_or_default();
    let include = folder.join(name);
    if include.is_dir() {
        return Ok(include);
    }
    fs::create_dir_all(&folder).doing("making a folder of the cache")?;
    let half = tempfile::tempdir_in(&folder).doing("making a folder of the cache")?;
    let headers = HEADERS.map(|header| format!("*/tools/testing/selftests/{header}"));
    unpack(package, &headers, "4", half.path())?;
    // Another run may have been faster: what it has is the same.
    if fs::rename(half.path(), &include).is_err() && !include.is_dir() {
        return Err(Error::Failed(format!("{} cannot be written", include.display())));
    }
    Ok(include)
}

/// What `unpack` does with a package, a folder, how many leading folders to leave off, and names.
const UNPACK: &str = r#"package=$1 to=$2 strip=$3 && shift 3
    dpkg-deb --fsys-tarfile "$package" |
        tar x -O --wildcards './usr/src/linux-source-*.tar.xz' |
        tar xJ --wildcards -C "$to" --strip-components="$strip" "$@""#;

/// Unpacks files of a source package, less so many leading folders.
pub fn unpack(package: &Path, names: &[String], strip: &str, to: &Path) -> Result<(), Error> {
    let mut shell = Command::new("sh");
    shell.args(["-c", UNPACK, "unpack"]).args([package, to]).arg(strip).args(names);
    said(&mut shell, &format!("unpacking {}", package.display())).map(drop)
}
