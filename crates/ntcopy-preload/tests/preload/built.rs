//! The library, and the C programs that try it, made once for all tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{env, fs};

const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

/// The compilers that the programs are made by; clang may be missing.
pub const COMPILERS: [&str; 2] = ["gcc", "clang"];

/// This crate's folder.
pub fn crate_dir() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn scratch() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("preload");
    fs::create_dir_all(&folder).expect("a folder under the target folder");
    folder
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must succeed, and gives its standard output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    good(command, &output)
}

/// The standard output of a command that must have succeeded.
pub fn good(command: &Command, output: &Output) -> String {
    let said = text(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}\n{said}", output.status);
    text(&output.stdout)
}

/// The library, linked of what cargo builds of the sources as they are, as this program was built.
///
/// `cargo test` alone may leave an older one, or none: nothing links a static library.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let program = env::current_exe().expect("a path of this program");
        let profile = program.ancestors().nth(2).expect("a folder of the profile");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "-q", "--locked", "-p", "ntcopy-preload", "--target-dir"]);
        cargo.arg(profile.parent().expect("the target folder")).current_dir(crate_dir());
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        run(&mut cargo);
        let rust = profile.join("libntcopy_preload.a");
        run(Command::new(crate_dir().join("link.sh")).arg(rust).arg(scratch()));
        scratch().join("libntcopy-preload.so")
    })
}

/// Makes one file of the C sources, once, and gives its path; none where the compiler is missing.
fn compile(compiler: &str, source: &str, more: &[&str], extension: &str) -> Option<PathBuf> {
    static DONE: Mutex<BTreeMap<PathBuf, bool>> = Mutex::new(BTreeMap::new());
    let made = scratch().join(format!("{source}-{compiler}{extension}"));
    // Held while compiling. What one test could not compile is for that test to report.
    let mut done = DONE.lock().unwrap_or_else(PoisonError::into_inner);
    let is_there = *done.entry(made.clone()).or_insert_with(|| {
        if Command::new(compiler).arg("--version").output().is_err() {
            println!("not run: no {compiler} here; Debian: apt-get install gcc clang");
            return false;
        }
        let mut command = Command::new(compiler);
        command.args(WARNINGS).args(["-O1", "-g", "-pthread", "-D_GNU_SOURCE"]).args(more);
        command.arg("-I").arg(crate_dir().join("../../uapi"));
        command.arg(crate_dir().join(format!("tests/c/{source}.c"))).arg("-o").arg(&made);
        run(command.arg("-ldl"));
        true
    });
    is_there.then_some(made)
}

/// A program of the C sources; none, with a sentence, where the compiler is missing.
pub fn program(compiler: &str, source: &str) -> Option<PathBuf> {
    compile(compiler, source, &[], "")
}

/// A shared library of the C sources.
pub fn shared(source: &str) -> PathBuf {
    compile("gcc", source, &["-shared", "-fPIC"], ".so").expect("gcc builds everything here")
}

/// A program in an environment of its own, with these libraries before it.
pub fn alone(path: &Path, preloads: &[&Path]) -> Command {
    let names: Vec<_> = preloads.iter().map(|path| path.to_str().expect("UTF-8")).collect();
    let mut command = Command::new(path);
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
    if !names.is_empty() {
        command.env("LD_PRELOAD", names.join(" "));
        command.env("NTCOPY_PRELOAD_FILTERS", filters().to_string());
    }
    command
}

/// How many filters of system calls these tests are under themselves, as in a container.
pub fn filters() -> u32 {
    let status = fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find_map(|line| line.strip_prefix("Seccomp_filters:"));
    line.map_or(0, |count| count.trim().parse().expect("a number"))
}

/// A program on a kernel that another one plays (`tests/c/fake.c`), with these libraries before it.
pub fn played(kernel: &str, path: &Path, preloads: &[&Path]) -> Command {
    let mut command = alone(&program("gcc", "fake").expect("gcc"), preloads);
    command.env("NTCOPY_PRELOAD_FILTERS", (filters() + 1).to_string());
    command.arg(kernel).arg(path);
    command
}

/// A program on a kernel that takes the option, under the library.
pub fn under(path: &Path) -> Command {
    played("taken", path, &[library()])
}
