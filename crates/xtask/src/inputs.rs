//! A hash of all that a run of the suite in a booted kernel depends on: what is given (the kernel,
//! the module, words), what the suite is built of, what boots it (the sources of ntcopy's kernel
//! part and of the program, their dependencies and compiler, QEMU), and this machine (CPU, running
//! kernel, C library, NTCOPY_ variables). A cached result is valid while the hash is unchanged.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use ntcopy_kernel::Cache;
use sha2::{Digest, Sha256};

use crate::error::{Doing, Error};
use crate::programs::root;

/// Subcommands that those which boot a kernel and load a module do not use.
const ELSEWHERE: [&str; 6] = ["bench", "survey", "advise", "footprint", "try", "records"];

const MACHINE: [&str; 4] = ["model name", "microcode", "flags", "cache size"];

const EMULATORS: [&str; 3] =
    ["/usr/bin/qemu-system-x86_64", "/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd"];

const C_LIBRARIES: [&str; 2] = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/ld-linux-x86-64.so.2"];

pub fn hash(files: &[&Path], words: &[&str]) -> Result<String, Error> {
    let mut hash = Sha256::new();
    for file in files {
        add(&mut hash, file)?;
    }
    for word in words {
        add_text(&mut hash, word);
    }
    for file in sources()? {
        add_text(&mut hash, &file.display().to_string());
        add(&mut hash, &root().join(file))?;
    }
    for package in harness()? {
        add_text(&mut hash, &package.display().to_string());
    }
    add_text(&mut hash, &said(crate::programs::cargo().args(["--version", "--verbose"]))?);
    add_text(&mut hash, &said(Command::new("cc").arg("--version"))?);
    add_text(&mut hash, &said(Command::new("uname").arg("-srv"))?);
    for line in machine()? {
        add_text(&mut hash, &line);
    }
    for file in EMULATORS.iter().chain(&C_LIBRARIES).map(Path::new).filter(|it| it.exists()) {
        add(&mut hash, file)?;
    }
    let digits = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    Ok(digits[..32].to_owned())
}

fn add(hash: &mut Sha256, file: &Path) -> Result<(), Error> {
    let bytes = fs::read(file).doing(format!("reading {}", file.display()))?;
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
    Ok(())
}

fn add_text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u64).to_le_bytes());
    hash.update(text);
}

fn said(command: &mut Command) -> Result<String, Error> {
    let output = command.output().doing(format!("running {command:?}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What the program that boots, and the programs that it runs, are built of; below the repository.
fn sources() -> Result<Vec<PathBuf>, Error> {
    let mut found: Vec<PathBuf> = ["Cargo.toml", "Cargo.lock"].map(PathBuf::from).into();
    for folder in ["uapi", "kernel/selftests", "crates/xtask/src"] {
        below(Path::new(folder), &mut found)?;
    }
    for package in ["ntcopy", "ntcopy-kernel", "ntcopy-cli"] {
        let package = Path::new("crates").join(package);
        found.push(package.join("Cargo.toml"));
        below(&package.join("src"), &mut found)?;
    }
    let commands = Path::new("crates/ntcopy-cli/src/cmd");
    found.retain(|file| {
        let first = file.strip_prefix(commands).ok().and_then(|rest| rest.iter().next());
        let name = first.map(Path::new).and_then(Path::file_stem);
        name.is_none_or(|name| !ELSEWHERE.iter().any(|other| name == *other))
    });
    for file in found.iter().filter(|file| file.starts_with(commands)) {
        let name = file.strip_prefix(commands).unwrap_or(file).display().to_string();
        if name.starts_with("kernel") || name.starts_with("module") {
            let text = fs::read_to_string(root().join(file)).doing(format!("reading {name}"))?;
            if let Some(other) = ELSEWHERE.iter().find(|other| text.contains(&format!("{other}::")))
            {
                let what = format!("{name} uses {other}, which the hash of a boot leaves out");
                return Err(Error::Failed(what));
            }
        }
    }
    found.sort();
    Ok(found)
}

fn below(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let entries =
        fs::read_dir(root().join(folder)).doing(format!("reading {}", folder.display()))?;
    for entry in entries {
        let entry = entry.doing(format!("reading {}", folder.display()))?;
        let path = folder.join(entry.file_name());
        if entry.path().is_dir() {
            below(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

/// The packages, or the tree, that the suite's harness is out of.
fn harness() -> Result<Vec<PathBuf>, Error> {
    let tree = std::env::var_os("NTCOPY_LINUX").filter(|tree| !tree.is_empty());
    if let Some(tree) = tree {
        return Ok(vec![tree.into()]);
    }
    Ok(crate::selftests::packages(&Cache::locate()?))
}

fn machine() -> Result<Vec<String>, Error> {
    let text = fs::read_to_string("/proc/cpuinfo").doing("reading /proc/cpuinfo")?;
    let first = text.lines().take_while(|line| !line.is_empty());
    let of_cpu = first.filter(|line| MACHINE.iter().any(|name| line.starts_with(name)));
    let mut lines: Vec<String> = of_cpu.map(str::to_owned).collect();
    lines.push(std::thread::available_parallelism().map_or(1, usize::from).to_string());
    let mut set: Vec<String> = std::env::vars()
        .filter(|(name, _)| name.starts_with("NTCOPY_") && name != "NTCOPY_ANEW")
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    set.sort();
    lines.append(&mut set);
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_a_file_and_where_one_ends_make_another_hash() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("kernel");
        fs::write(&file, "one").expect("room");
        let first = hash(&[&file], &["ab", "c"]).expect("a hash");
        assert_eq!(first, hash(&[&file], &["ab", "c"]).expect("a hash"));
        assert_ne!(first, hash(&[&file], &["a", "bc"]).expect("a hash"));
        fs::write(&file, "two").expect("room");
        assert_ne!(first, hash(&[&file], &["ab", "c"]).expect("a hash"));
    }

    #[test]
    fn what_boots_is_hashed_and_what_measures_is_not() {
        let sources = sources().expect("the sources");
        let has = |name: &str| sources.iter().any(|file| file.starts_with(name));
        assert!(has("crates/ntcopy-kernel/src/boot.rs") && has("kernel/selftests"));
        assert!(has("crates/ntcopy-cli/src/cmd/kernel.rs"));
        assert!(!has("crates/ntcopy-cli/src/cmd/bench"));
    }
}
