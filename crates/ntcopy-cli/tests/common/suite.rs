//! The suite of `kernel/selftests`: built, run in a booted kernel, its TAP judged.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Output};

use xtask::selftests;

use super::text;

/// The programs of the suite, and how many tests each has. One that runs fewer has lost some.
pub const PROGRAMS: [(&str, usize); 10] = [
    ("options", 80),
    ("counters", 26),
    ("bytes", 441),
    ("edges", 208),
    ("gone", 72),
    ("holes", 36),
    ("flags", 109),
    ("control", 8),
    ("calls", 256),
    ("ntcopy_pages", 90),
];

/// The programs that try the module itself, where it is what takes the hints.
pub const MODULE_PROGRAMS: [&str; 5] =
    ["module", "module_life", "module_memory", "module_races", "module_replace"];

/// Skips that are right in every kernel: a socket that is both ends has no other end, and a
/// user-mode kernel has no huge pages.
const SKIPS_ANYWHERE: [&str; 2] = ["one socket is both ends", "no such huge pages here"];

/// A kernel that the suite runs in.
pub struct Kernel {
    /// Arguments of `ntcopy kernel boot` that choose it.
    pub arguments: &'static [&'static str],
    /// What it lacks, as the reason of a skipped test begins.
    pub lacks: &'static [&'static str],
    /// The size of the biggest send, in MiB: 64 where the kernel is fast.
    pub big_mib: u32,
    /// When to give up, in seconds.
    pub limit_s: u32,
}

/// How a program of the suite ended.
#[derive(Default)]
struct Report {
    plan: Option<usize>,
    passed: usize,
    skipped: Vec<String>,
    failed: Vec<String>,
    exit: Option<i32>,
}

impl Report {
    fn read(lines: &[&str]) -> Self {
        let mut report = Self::default();
        for line in lines {
            if let Some(plan) = line.strip_prefix("1..") {
                report.plan = plan.split(' ').next().and_then(|count| count.parse().ok());
            } else if line.starts_with("not ok ") || line.starts_with("Bail out!") {
                report.failed.push((*line).to_owned());
            } else if line.starts_with("ok ") {
                match line.split_once("# SKIP ") {
                    Some((_, reason)) => report.skipped.push(reason.to_owned()),
                    None => report.passed += 1,
                }
            } else if let Some(code) = line.strip_prefix("# exit ") {
                report.exit = code.parse().ok();
            }
        }
        report
    }

    /// What is wrong with it, a line each. Without a number of tests its own plan is one.
    fn faults(&self, name: &str, tests: Option<usize>, kernel: &Kernel) -> String {
        let mut text = String::new();
        let ran = self.passed + self.skipped.len() + self.failed.len();
        let tests = tests.or(self.plan).unwrap_or_default();
        if self.plan != Some(tests) || ran != tests || self.passed == 0 {
            let _ = writeln!(text, "{name}: {ran} tests of plan {:?}, not {tests}", self.plan);
        }
        if self.exit != Some(0) {
            let _ = writeln!(text, "{name}: exit code {:?}", self.exit);
        }
        for line in &self.failed {
            let _ = writeln!(text, "{name}: {line}");
        }
        let expected = |reason: &&String| {
            let mut known = SKIPS_ANYWHERE.iter().chain(kernel.lacks);
            !known.any(|start| reason.starts_with(start))
        };
        for reason in self.skipped.iter().filter(expected) {
            let _ = writeln!(text, "{name}: skipped for no reason that is known here: {reason}");
        }
        text
    }
}

/// Runs the programs one after another, with a module if there is one.
const RUN_ALL: &str = r##"
    [ -z "$2" ] || "$1" module load "$2" >&2 || exit
    cd "$3"; shift 3
    for program; do
        echo "# program $program"; ./"$program" 2>&1; echo "# exit $?"
    done"##;

fn run(folder: &Path, programs: &[&str], kernel: &Kernel, module: Option<&Path>) -> Output {
    let limit = kernel.limit_s.to_string();
    let program = env!("CARGO_BIN_EXE_ntcopy");
    Command::new(program)
        .args(["kernel", "boot", "--timeout", &limit])
        .args(kernel.arguments)
        .args(["--", "sh", "-c", RUN_ALL, "run-all", program])
        .arg(module.unwrap_or(Path::new("")))
        .arg(folder)
        .args(programs)
        .env("NTCOPY_SELFTEST_BIG_MIB", kernel.big_mib.to_string())
        .output()
        .expect("the program that this package builds can be run")
}

fn section<'a>(output: &'a str, program: &str) -> Vec<&'a str> {
    let begin = format!("# program {program}");
    let lines = output.lines().skip_while(|line| *line != begin).skip(1);
    lines.take_while(|line| !line.starts_with("# program ")).collect()
}

/// Runs the whole suite, and panics with everything that is not as it must be.
pub fn must_pass(kernel: &Kernel) {
    let programs = PROGRAMS.map(|(name, tests)| (name, Some(tests)));
    check(kernel, None, &programs);
}

/// Runs what the suite has of sockets, on a kernel without the patches that clear and copy pages.
pub fn must_pass_with_sockets(kernel: &Kernel) {
    check(kernel, None, &of_sockets());
}

/// Runs what the suite has of sockets, and the module's own programs, on a kernel with the module.
pub fn must_pass_through(module: &Path, kernel: &Kernel) {
    let mut programs = of_sockets();
    programs.extend(MODULE_PROGRAMS.map(|name| (name, None)));
    check(kernel, Some(module), &programs);
}

fn of_sockets() -> Vec<(&'static str, Option<usize>)> {
    let of_sockets = PROGRAMS.iter().filter(|(name, _)| *name != "ntcopy_pages");
    of_sockets.map(|(name, tests)| (*name, Some(*tests))).collect()
}

fn check(kernel: &Kernel, module: Option<&Path>, programs: &[(&str, Option<usize>)]) {
    let names: Vec<&str> = programs.iter().map(|(name, _)| *name).collect();
    let folder = tempfile::tempdir().expect("a folder for the suite");
    selftests::build(folder.path(), &names).expect("the suite can be built");
    let output = run(folder.path(), &names, kernel, module);
    let (said, errors) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{:?}\n{said}\n{errors}", output.status);
    let mut faults = String::new();
    for (name, tests) in programs {
        let report = Report::read(&section(&said, name));
        println!("{name}: {} passed, {} skipped", report.passed, report.skipped.len());
        faults += &report.faults(name, *tests, kernel);
    }
    assert!(faults.is_empty(), "{faults}\n{said}\n{errors}");
}
