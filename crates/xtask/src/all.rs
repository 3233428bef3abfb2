//! `cargo xtask test-all`: what is more than `make test`, in targets that can be run alone.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::error::Error;
use crate::programs::{self, Program, root};
use crate::running::{self, Watch};
use crate::sum::Sum;
use crate::{kernels, modules, mutations};

/// What a target does, in order.
enum Step {
    /// Tests of a program that `make test` leaves out, by the beginnings of their names.
    Tests(&'static str, &'static [&'static str]),
    /// A script with its arguments, of which `NTCOPY` is the program.
    Script(&'static [&'static str]),
    /// A command of this program, with the words that it was given.
    Do(fn(&Path, &[&str]) -> Result<(), Error>),
}

/// A group of tests: `make test-NAME`.
struct Target {
    name: &'static str,
    what: &'static str,
    /// Groups of scripts/setup.sh that it needs beside what `make test` does.
    setup: &'static [&'static str],
    /// Why it is no part of `make test-all`, if it is none.
    apart: Option<&'static str>,
    steps: &'static [Step],
}

use Step::{Do, Script, Tests};

const TARGETS: [Target; 16] = [
    Target {
        name: "612",
        what: "the suite in Linux 6.12, which has a series of its own",
        setup: &[],
        apart: None,
        steps: &[Tests("ntcopy-cli booted", &["um::the_kernel_of_the_long_term_series"])],
    },
    Target {
        name: "c",
        what: "the C library's tests built by clang, under sanitizers and valgrind",
        setup: &["c"],
        apart: None,
        steps: &[Tests("ntcopy-capi abi", &[]), Tests("ntcopy-cli booted", &["examples::"])],
    },
    Target {
        name: "library",
        what: "the library with musl, for aarch64, i686, and without std and a C compiler",
        setup: &[],
        apart: None,
        steps: &[Script(&["scripts/check-library.sh", "targets"])],
    },
    Target {
        name: "miri",
        what: "the library's pointers, followed by Miri",
        setup: &[],
        apart: None,
        steps: &[Script(&["scripts/check-library.sh", "miri"])],
    },
    Target {
        name: "programs",
        what: "memcached and nginx as they are, measured plain and under `ntcopy run`",
        setup: &["programs"],
        apart: None,
        steps: &[Tests("ntcopy-cli it", &["bench_app::", "bench_http::"])],
    },
    Target {
        name: "page",
        what: "reports in Chromium",
        setup: &["browser"],
        apart: None,
        steps: &[Tests("ntcopy-report browser", &[])],
    },
    Target {
        name: "mutants",
        what: "four mistakes in the kernel: would the suite notice?",
        setup: &["kernels"],
        apart: None,
        steps: &[Do(|ntcopy, _| mutations::run(ntcopy, &mutations::WORST))],
    },
    Target {
        name: "module",
        what: "ntcopy.ko under the library on Debian's kernels 6.12 and 7.3, in QEMU, and in a um kernel",
        setup: &["kernels"],
        apart: None,
        steps: &[Tests("ntcopy-cli booted", &["module_booted::the_module_"])],
    },
    Target {
        name: "module-suite",
        what: "the suite through ntcopy.ko on Debian's kernels 6.12 and 7.3, in QEMU",
        setup: &["kernels"],
        apart: Some("half an hour on an emulated CPU"),
        steps: &[Tests("ntcopy-cli booted", &["module_booted::the_suite_"])],
    },
    Target {
        name: "series",
        what: "both series: git am, checkpatch",
        setup: &[],
        apart: None,
        steps: &[
            Script(&["scripts/check-series.sh", "7.3"]),
            Script(&["scripts/check-series.sh", "6.12"]),
        ],
    },
    Target {
        name: "kernels",
        what: "the suite under KASAN, KCSAN and lockdep, with failing copies and allocations",
        setup: &["kernels"],
        apart: Some("builds four kernels; five hours"),
        steps: &[
            Do(kernels::run),
            Tests("ntcopy-cli booted", &["kernel_qemu::", "kernel_package::"]),
        ],
    },
    Target {
        name: "module-kasan",
        what: "ntcopy.ko: sparse, checkpatch, the suite through it with KASAN and lockdep",
        setup: &["kernels", "lint"],
        apart: Some("builds two kernels; an hour"),
        steps: &[Do(modules::run)],
    },
    Target {
        name: "upstream",
        what: "Linux's own network tests, hints ignored and every send hinted",
        setup: &["kernels", "upstream"],
        apart: Some("takes an hour"),
        steps: &[Script(&["scripts/upstream-tests.sh", "NTCOPY"])],
    },
    Target {
        name: "suites",
        what: "the test suites of memcached and Redis, plain and under `ntcopy run`",
        setup: &["suites"],
        apart: Some("takes hours"),
        steps: &[Script(&["scripts/program-suites.sh", "NTCOPY"])],
    },
    Target {
        name: "power",
        what: "ext4 and XFS at every point where power may go",
        setup: &["kernels", "power"],
        apart: Some("takes an hour"),
        steps: &[
            Script(&["scripts/power-loss.sh", "NTCOPY", "--self-test"]),
            Script(&["scripts/power-loss.sh", "NTCOPY"]),
        ],
    },
    Target {
        name: "dist",
        what: "the Debian packages: built twice the same, installed, upgraded, purged",
        setup: &["dist"],
        apart: Some("makes a Debian of its own, as root"),
        steps: &[Script(&["scripts/test-dist.sh"])],
    },
];

pub fn list() -> Result<(), Error> {
    for Target { name, what, apart, .. } in TARGETS {
        let apart = apart.map_or(String::new(), |why| format!(" (by itself: {why})"));
        println!("test-{name:<10} {what}{apart}");
    }
    Ok(())
}

/// Runs these targets, or all that are no part of another run. What follows `--` goes to scripts.
pub fn run(words: &[&str]) -> Result<(), Error> {
    let mut halves = words.splitn(2, |word| *word == "--");
    let (names, more) = (halves.next().unwrap_or(&[]), halves.next().unwrap_or(&[]));
    let chosen = chosen(names)?;
    println!("test-all: {}", chosen.iter().map(|it| it.name).collect::<Vec<_>>().join(", "));
    let _watch = Watch::begin()?;
    let programs = programs::build()?;
    let ntcopy = programs::ntcopy()?;
    let sum = Sum::default();
    let mut lines = Vec::new();
    for target in &chosen {
        println!("test-{}: {}", target.name, target.what);
        let begun = Instant::now();
        let before = sum.failures();
        let missing = one(target, more, &programs, &ntcopy, &sum)?;
        let (name, seconds) = (target.name, begun.elapsed().as_secs());
        lines.push(match missing {
            Some(why) => not_run(name, &why),
            None if sum.failures() > before => format!("FAILED  test-{name}, {seconds} s"),
            None => format!("ok      test-{name}, {seconds} s"),
        });
    }
    if names.is_empty() {
        lines.extend(TARGETS.iter().filter_map(|it| Some(not_run(it.name, it.apart?))));
    }
    for line in lines {
        println!("test-all: {line}");
    }
    sum.end("test-all", "")
}

fn not_run(name: &str, why: &str) -> String {
    format!("not run test-{name}: {why}; to run it: make test-{name}")
}

fn chosen(names: &[&str]) -> Result<Vec<&'static Target>, Error> {
    if names.is_empty() {
        return Ok(TARGETS.iter().filter(|target| target.apart.is_none()).collect());
    }
    let find = |name: &&str| {
        let bare = name.strip_prefix("test-").unwrap_or(name);
        TARGETS.iter().find(|target| target.name == bare).ok_or_else(|| {
            let known = TARGETS.map(|target| target.name).join(", ");
            Error::Usage(format!("no target is called '{name}'; there are: {known}"))
        })
    };
    names.iter().map(find).collect()
}

/// Why it cannot be run here, if so.
fn one(
    target: &Target,
    more: &[&str],
    programs: &[Program],
    ntcopy: &Path,
    sum: &Sum,
) -> Result<Option<String>, Error> {
    let groups: Vec<&str> = ["build"].iter().chain(target.setup).copied().collect();
    let setup = [&["scripts/setup.sh"], &groups[..]].concat();
    if let Some(why) = script(&setup, ntcopy)? {
        return Ok(Some(why));
    }
    for step in target.steps {
        let result = match step {
            Tests(name, filter) => tests(programs, name, filter, sum).map(|()| None),
            Script(words) => script(&[words, more].concat(), ntcopy),
            Do(command) => command(ntcopy, more).map(|()| None),
        };
        match result {
            Ok(Some(why)) | Err(Error::NotHere(why)) => return Ok(Some(why)),
            Ok(None) => {}
            Err(Error::Failed(why)) => sum.fail(why),
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

fn tests(programs: &[Program], name: &str, filter: &[&str], sum: &Sum) -> Result<(), Error> {
    let program = programs.iter().find(|program| program.name == name);
    let program = program.ok_or_else(|| Error::Failed(format!("there are no tests '{name}'")))?;
    let mut command = Command::new(&program.path);
    command.args(["--ignored", "--show-output"]).args(filter).current_dir(&program.folder);
    // Guests on an emulated CPU have no time to share.
    command.args(["--test-threads", "1"]).env(programs::BUILT, "1");
    sum.run(name, command)
}

/// Runs a script of the repository, and says why it cannot be run here, if it says so itself.
fn script(words: &[&str], program: &Path) -> Result<Option<String>, Error> {
    running::check()?;
    let mut command = Command::new(root().join(words[0]));
    command.args(words[1..].iter().map(|word| match *word {
        "NTCOPY" => program.as_os_str(),
        word => OsStr::new(word),
    }));
    command.current_dir(root());
    let mut last = String::new();
    let code = running::lines(command, |line| {
        println!("{line}");
        last = line.to_owned();
    })?;
    running::check()?;
    match code {
        Some(0) => Ok(None),
        Some(3) => Ok(Some(last)),
        code => Err(Error::Failed(format!("{} ended with {code:?}", words[0]))),
    }
}
