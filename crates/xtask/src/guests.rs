//! Boots in which programs of the suite run: what they say goes into files, and is judged.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ntcopy_kernel::{Boot, BuildOptions, Built, Kind, Outcome, Output, progress};
use tempfile::TempDir;

use crate::error::{Doing, Error};
use crate::programs::root;
use crate::tap::Report;
use crate::{running, selftests};

/// The size of the biggest send, in MiB: an emulated CPU that checks each access is slow.
const BIG_MIB: &str = "4";

/// Runs programs of a folder one after another; 1 if any of them failed.
const EACH: &str = r##"cd "$1" && shift && code=0
    for program; do
        echo "# program $program"; ./"$program" 2>&1; ended=$?
        echo "# exit $ended"; [ $ended = 0 ] || code=1
    done; exit $code"##;

/// A command with the module loaded; then it goes, and nothing holds it.
const THROUGH: &str = r##"ntcopy=$1; "$ntcopy" module load "$2" || exit
    shift 2; code=0; "$@" 2>&1 || code=1
    echo "references left: $(cat /sys/module/ntcopy/refcnt)"
    "$ntcopy" module unload || code=1
    echo "taint: $(cat /proc/sys/kernel/tainted)"
    exit $code"##;

/// Where boots of one command are run and kept.
pub struct Guests {
    /// The program that is the guests' first process.
    ntcopy: PathBuf,
    /// The suite's programs, in a folder of this run's own.
    bin: TempDir,
    logs: PathBuf,
}

impl Guests {
    /// Builds these programs of the suite. What guests say is kept in out/NAME.
    pub fn new(ntcopy: &Path, name: &str, programs: &[&str]) -> Result<Self, Error> {
        let logs = root().join("out").join(name);
        fs::create_dir_all(&logs).doing("making a folder for what guests say")?;
        let bin = tempfile::tempdir().doing("making a folder for the suite")?;
        selftests::build(bin.path(), programs)?;
        Ok(Self { ntcopy: ntcopy.to_owned(), bin, logs })
    }

    pub fn log(&self, kernel: &Built, name: &str) -> PathBuf {
        let kernel = kernel.kind.name().replace([':', '+'], "-");
        self.logs.join(format!("{kernel}-{name}.log"))
    }

    /// A program of the suite, as guests find it.
    pub fn program(&self, name: &str) -> String {
        self.bin.path().join(name).display().to_string()
    }

    /// The command that runs programs of the suite one after another.
    pub fn each(&self, programs: &[&str]) -> Vec<String> {
        let bin = self.bin.path().display().to_string();
        words(&[&["sh", "-c", EACH, "each", &bin][..], programs].concat())
    }

    /// A command with the module loaded before it, and gone after it.
    pub fn through(&self, module: &Path, command: &[String]) -> Vec<String> {
        let [ntcopy, module] =
            [self.ntcopy.as_path(), module].map(|path| path.display().to_string());
        [&words(&["sh", "-c", THROUGH, "through", &ntcopy, &module])[..], command].concat()
    }

    /// The command of kernel/selftests/faults.sh, whose program is built for it.
    pub fn sends_while_calls_fail(&self) -> Result<Vec<String>, Error> {
        selftests::build(self.bin.path(), &["soak"])?;
        let script = root().join("kernel/selftests/faults.sh");
        let [script, bin] = [&script, self.bin.path()].map(|path| path.display().to_string());
        Ok(words(&["sh", &script, &bin, "1"]))
    }

    /// A command in a kernel, with two CPUs and three hours.
    pub fn command(&self, kernel: &Built, words: &[impl AsRef<OsStr>]) -> Boot {
        let mut boot = Boot::new(kernel, words);
        (boot.init, boot.output) = (Some(self.ntcopy.clone()), Output::Capture);
        (boot.cpus, boot.timeout) = (2, Some(Duration::from_secs(10_800)));
        boot.env("NTCOPY_SELFTEST_BIG_MIB", BIG_MIB)
    }

    /// Boots, keeps what was said, and says what came of it.
    pub fn run(&self, kernel: &Built, name: &str, boot: Boot) -> Result<Tried, Error> {
        running::check()?;
        let log = self.log(kernel, name);
        println!("{}: {name} runs; its output: {}", kernel.kind, log.display());
        let begun = Instant::now();
        let outcome = boot.run()?;
        fs::write(&log, &outcome.stdout).doing("writing what a guest said")?;
        fs::write(log.with_extension("log.err"), faults(&outcome))
            .doing("writing a guest's faults")?;
        let tried = Tried::of(&outcome);
        println!(
            "{}: {name}: {} passed, {} skipped, {} failed; exit code {}, {} s",
            kernel.kind,
            tried.report.passed,
            tried.report.skipped.len(),
            tried.report.failed.len(),
            outcome.code,
            begun.elapsed().as_secs()
        );
        Ok(tried)
    }
}

/// A command of words that live on.
pub fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

/// What a boot of the suite's programs came to.
pub struct Tried {
    report: Report,
    pub stdout: String,
    /// Why it is no good; empty if it is.
    pub faults: String,
}

impl Tried {
    fn of(outcome: &Outcome) -> Self {
        let stdout = String::from_utf8_lossy(&outcome.stdout).into_owned();
        let report = Report::read(stdout.lines());
        let mut wrong: String = report.failed.iter().map(|line| format!("{line}\n")).collect();
        if outcome.code != 0 || !outcome.fault_reports.is_empty() || report.passed == 0 {
            wrong += &faults(outcome);
            wrong += &format!("exit code {}\n", outcome.code);
        }
        Self { report, stdout, faults: wrong }
    }

    /// An error unless it was good.
    pub fn must_pass(self, what: &str) -> Result<Self, Error> {
        if self.faults.is_empty() {
            return Ok(self);
        }
        Err(Error::Failed(format!("{what}:\n{}", self.faults)))
    }
}

/// What the host was told, and what the guest's kernel said of itself.
fn faults(outcome: &Outcome) -> String {
    let mut text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    for report in &outcome.fault_reports {
        text += &report.lines.join("\n");
        text.push('\n');
    }
    text
}

/// A kernel of this name, from the cache or built.
pub fn kernel(name: &str) -> Result<Built, Error> {
    let options = BuildOptions::from_env(Kind::parse(name)?)?;
    Ok(ntcopy_kernel::build(&options, progress::for_stderr().as_mut())?)
}

/// `ntcopy.ko` for a kernel of this name, and that kernel.
pub fn module(name: &str) -> Result<(Built, PathBuf), Error> {
    let options = BuildOptions::from_env(Kind::parse(name)?)?;
    Ok(ntcopy_kernel::module::build_for(&options, None, progress::for_stderr().as_mut())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(code: u8, stdout: &str) -> Outcome {
        Outcome { code, stdout: stdout.into(), stderr: Vec::new(), fault_reports: Vec::new() }
    }

    #[test]
    fn a_boot_is_good_where_something_passed_and_nothing_failed() {
        let good = Tried::of(&outcome(0, "ok 1 a\nok 2 b # SKIP no such family\n"));
        assert_eq!((good.report.passed, good.report.skipped.len()), (1, 1));
        assert!(good.must_pass("suite").is_ok());
        for (code, said) in [(0, ""), (1, "ok 1 a\n"), (0, "ok 1 a\nnot ok 2 b\n")] {
            assert!(Tried::of(&outcome(code, said)).must_pass("suite").is_err(), "{said}");
        }
    }
}
