//! Embeds the kernel patches, the configuration fragments and the module's sources, so that the
//! program works from any directory.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let kernel = root.join("../../kernel").canonicalize().expect("the repository has kernel/");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("set by cargo"));
    let series = export(&kernel, &out);
    let mut code = String::new();
    for (constant, release) in [("SERIES_7_3", "7.3"), ("SERIES_6_12", "6.12")] {
        let folder = series.join(release);
        writeln!(code, "pub(crate) const {constant}: &[Part] = &[").expect("memory");
        // The order in which they apply, as in `series.rs`.
        for part in ["unix", "net", "mm", "test", "um"] {
            embed(&mut code, part, &folder.join(part));
        }
        writeln!(code, "];").expect("memory");
    }
    for name in ["um", "um-6.12", "x86", "kasan", "kcsan", "module", "6.12"] {
        let config = kernel.join("config").join(format!("{name}.config"));
        println!("cargo::rerun-if-changed={}", config.display());
        let constant = name.to_uppercase().replace(['-', '.'], "_");
        writeln!(code, "pub(crate) const CONFIG_{constant}: &str = include_str!({config:?});")
            .expect("memory");
    }
    embed_module(&mut code, &kernel);
    fs::write(out.join("embedded.rs"), code).expect("writing embedded.rs");
}

/// The series with the files that its patches take from elsewhere in `kernel/`.
fn export(kernel: &Path, out: &Path) -> PathBuf {
    let script = kernel.join("../scripts/series.sh");
    for source in [&script, &kernel.join("series"), &kernel.join("asm"), &kernel.join("um")] {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    let series = out.join("series");
    let _ = fs::remove_dir_all(&series);
    let status = Command::new("sh").arg(&script).arg(&series).status();
    assert!(status.is_ok_and(|status| status.success()), "{} failed", script.display());
    series
}

/// A folder's name, and the name and the bytes of each of its patches, in the order of the names;
/// less those that `series.rs` leaves out.
fn embed(code: &mut String, part: &str, folder: &Path) {
    let mut patches: Vec<PathBuf> = fs::read_dir(folder)
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    patches.retain(|path| path.extension().is_some_and(|extension| extension == "patch"));
    patches.retain(|path| {
        !path.file_name().is_some_and(|name| name.to_string_lossy().contains("-selftests-"))
    });
    patches.sort();
    writeln!(code, "    ({part:?}, &[").expect("memory");
    for path in &patches {
        let name = path.file_name().expect("a file").to_string_lossy();
        writeln!(code, "        ({name:?}, include_bytes!({path:?})),").expect("memory");
    }
    writeln!(code, "    ]),").expect("memory");
}

/// A constant with the module's sources: path below `kernel/module` and bytes. The header of the
/// interface lies beside them, as in every package of the module.
fn embed_module(code: &mut String, kernel: &Path) {
    let folder = kernel.join("module");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    sources(&folder, &folder, &mut files);
    let header = kernel.join("../uapi/ntcopy/uapi.h").canonicalize().expect("uapi/ntcopy/uapi.h");
    files.push(("ntcopy/uapi.h".to_owned(), header));
    files.sort();
    writeln!(code, "pub(crate) const MODULE: &[(&str, &[u8])] = &[").expect("memory");
    for (name, path) in &files {
        println!("cargo::rerun-if-changed={}", path.display());
        writeln!(code, "    ({name:?}, include_bytes!({path:?})),").expect("memory");
    }
    writeln!(code, "];").expect("memory");
}

/// The sources below a folder, and nothing that a build left there.
fn sources(root: &Path, folder: &Path, files: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            sources(root, &path, files);
            continue;
        }
        let name = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
        let is_built = name.ends_with(".mod.c");
        let is_source = ["c", "h", "S"].map(|end| name.ends_with(&format!(".{end}")));
        let is_recipe = ["Kbuild", "Makefile", "dkms.conf"].contains(&name.as_str());
        if is_recipe || is_source.contains(&true) && !is_built {
            files.push((name, path));
        }
    }
}
