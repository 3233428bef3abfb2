//! What the tests of the program share.

// Each of the two test programs uses a part of it.
#![allow(dead_code)]

pub mod counted;
pub mod guest;
pub mod house;
pub mod preload;
pub mod signal;
pub mod store;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Once;
use std::time::{Duration, Instant};

use ntcopy_record::Record;

/// The program that is tested.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_ntcopy");

/// What the program does with these arguments.
pub fn ntcopy(arguments: &[&str]) -> Output {
    let mut program = Command::new(PROGRAM);
    program.args(arguments).stdin(Stdio::null()).output().expect("the program starts")
}

/// The program in a folder that is its user's home as well, and where nothing else is set.
pub fn at_home(folder: &Path, arguments: &[&str]) -> Command {
    let mut program = Command::new(PROGRAM);
    program.args(arguments).current_dir(folder).env("HOME", folder).stdin(Stdio::null());
    for name in ["XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "GLIBC_TUNABLES"] {
        program.env_remove(name);
    }
    for name in ["NTCOPY_PROFILE", "NTCOPY_SURVEY_STORE", "NTCOPY_CACHE"] {
        program.env_remove(name);
    }
    program
}

/// What it does there.
pub fn in_home(folder: &Path, arguments: &[&str]) -> Output {
    at_home(folder, arguments).output().expect("the program starts")
}

/// What a script prints in the user-mode kernel that knows the flag, where it must end well.
pub fn in_um(script: &str) -> String {
    good(&ntcopy(&["kernel", "boot", "--timeout", "120", "--", "sh", "-c", script]))
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub fn stderr(output: &Output) -> String {
    text(&output.stderr)
}

/// The standard output of a run that must end well.
pub fn good(output: &Output) -> String {
    let (out, said) = (text(&output.stdout), stderr(output));
    assert!(output.status.success(), "{:?}\n{out}\n{said}", output.status);
    out
}

/// What a run that must end with this code says on standard error: each of these parts is in it.
#[track_caller]
pub fn ends(output: &Output, code: i32, parts: &[&str]) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{}\n{said}", text(&output.stdout));
    for part in parts {
        assert!(said.contains(part), "{part} in {said}");
    }
    said
}

/// `ntcopy bench` of little, with a record in `out`. What is tested is whether it works: lockdep may
/// be on.
pub fn bench(arguments: &[&str], out: &Path) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("bench").args(arguments).args(["--quick", "--allow-not-a-timing", "--out"]);
    command.arg(out).env("NTCOPY_PROFILE", "none").stdin(Stdio::null());
    command
}

/// What a benchmark printed, and what it recorded.
pub fn tried(arguments: &[&str]) -> (Output, Record) {
    let place = tempfile::tempdir().expect("a folder");
    let out = place.path().join("record");
    let output = bench(arguments, &out).output().expect("the program starts");
    let record = Record::read(&out).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    (output, record)
}

/// What a benchmark that must end well, and whole, recorded and printed.
pub fn measured(arguments: &[&str]) -> (Record, String) {
    let (output, record) = tried(arguments);
    let text = good(&output);
    assert!(record.complete && record.errors.is_empty(), "{arguments:?}: {:?}", record.errors);
    (record, text)
}

/// Whether this kernel takes hints; a test of one that does not has nothing to look at then.
pub fn has_flag() -> bool {
    let has_flag = ntcopy::socket::kernel_support() != ntcopy::socket::Support::None;
    if has_flag {
        println!("this kernel has the flag");
    }
    has_flag
}

/// Whether a run ended with 3, which must say why; the test then has no more to look at.
pub fn is_not_available(output: &Output, why: &str) -> bool {
    let is_missing = output.status.code() == Some(3);
    if is_missing {
        // Progress stands before the reason.
        let text = ends(output, 3, &[why]);
        println!("not run: {}", text.lines().find(|line| line.contains(why)).unwrap_or(&text));
    }
    is_missing
}

pub fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// The user-mode kernel that tests boot is there, built if it has to be.
pub fn kernel_built() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        good(&ntcopy(&["kernel", "build"]));
    });
}

/// The repository.
pub fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Has cargo build a library as this test was built, and gives the folder.
pub fn built(package: &str) -> &'static Path {
    cargo_build(&["-p", package, "--lib"])
}

/// An example, or the programs of packages, as [`built`] has it. `cargo xtask test` has built them
/// with the workspace's tests: by themselves they would be built again, with other features of what
/// they share.
pub fn beside(what: &[&str]) -> &'static Path {
    match std::env::var_os(xtask::programs::BUILT) {
        Some(_) => profile(),
        None => cargo_build(what),
    }
}

fn profile() -> &'static Path {
    Path::new(PROGRAM).parent().expect("a folder of the program")
}

fn cargo_build(what: &[&str]) -> &'static Path {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--locked"]).args(what).arg("--target-dir");
    cargo.arg(profile().parent().expect("the target folder"));
    if profile().ends_with("release") {
        cargo.arg("--release");
    }
    good(&cargo.output().expect("cargo, which runs this test"));
    profile()
}

/// storaged and proxyd are beside the program.
pub fn daemons_built() {
    static BUILT: Once = Once::new();
    BUILT.call_once(|| {
        beside(&["-p", "storaged", "-p", "proxyd"]);
    });
}

/// Waits until it holds; a child that is given must not end before.
pub fn wait_until(mut child: Option<&mut Child>, holds: impl Fn() -> bool) {
    /// Far beyond anything that is waited for, on a busy machine too.
    const PATIENCE: Duration = Duration::from_secs(300);
    let begun = Instant::now();
    while !holds() {
        let ended = child.as_mut().and_then(|child| child.try_wait().unwrap());
        assert!(ended.is_none(), "it ended before that: {ended:?}");
        assert!(begun.elapsed() < PATIENCE, "it does not come to that");
        std::thread::sleep(Duration::from_millis(10));
    }
}
