//! Would the suite notice? Puts one deliberate mistake at a time into the patched kernel, builds it
//! again, runs a program of kernel/selftests in it, and demands that the test named beside the
//! mistake fails.
//!
//! A kernel with a mistake is kept in the cache's folder mutants/, by the kernel that it was made of
//! and by its row of the table: only what is new is built. Kernels of another series go when
//! the first of this one is made.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use ntcopy_kernel::{Boot, BuildOptions, Built, Cache, Kind, Output, progress};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::error::{Doing, Error};
use crate::guests::kernel;
use crate::programs::root;
use crate::running::said;
use crate::selftests;

/// No fence, a wrong byte at a page's end, a hint kept for TLS, a counter not bumped.
pub const WORST: [&str; 4] =
    ["no-fence", "wrong-byte-at-page-end", "hint-kept-for-tls", "counter-not-bumped"];

/// The program of the table that is no program of the suite but looks at the machine code.
const FENCES: &str = "fences";

/// A table of kernel/selftests/mutations.toml.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mistake {
    what: String,
    file: String,
    /// As perl makes it of the whole file.
    change: String,
    /// What the kernel's command line has then beside the rest.
    append: Option<String>,
    /// A program, and its test that must fail.
    test: (String, String),
}

/// Those that there are, by name.
fn table() -> Result<BTreeMap<String, Mistake>, Error> {
    let file = root().join("kernel/selftests/mutations.toml");
    let text = fs::read_to_string(&file).doing(format!("reading {}", file.display()))?;
    toml::from_str(&text).map_err(|error| Error::Failed(format!("{}: {error}", file.display())))
}

/// Tries these mistakes, or all.
pub fn run(ntcopy: &Path, names: &[&str]) -> Result<(), Error> {
    let mut mistakes = table()?;
    if let Some(unknown) = names.iter().find(|name| !mistakes.contains_key(**name)) {
        return Err(Error::Failed(format!("there is no mistake '{unknown}' in the table")));
    }
    mistakes.retain(|name, _| names.is_empty() || names.contains(&name.as_str()));
    let good = kernel("um")?;
    said(&mut fences(&good.path), "the kernel without a mistake")?;
    let folder = Cache::locate()?.root().join("mutants").join(&good.key);
    let work = tempfile::tempdir().doing("making a folder")?;
    let mut mutants = Mutants { ntcopy, good, folder, work, source: None };
    let mut missed = Vec::new();
    for (name, mistake) in &mistakes {
        let Mistake { what, test: (program, test), .. } = mistake;
        if mutants.is_noticed(name, mistake)? {
            println!("mutations: {name} ({what}): noticed by {program}, {test}");
        } else {
            println!("mutations: {name} ({what}): NOT noticed by {program}, {test}");
            missed.push(name.as_str());
        }
    }
    if missed.is_empty() {
        println!("mutations: all {} noticed", mistakes.len());
        return Ok(());
    }
    Err(Error::Failed(format!("not noticed: {}", missed.join(", "))))
}

/// What looks for the fences of a kernel.
fn fences(kernel: &Path) -> Command {
    let mut script = Command::new(root().join("scripts/check-fences.py"));
    script.arg(kernel);
    script
}

struct Mutants<'a> {
    ntcopy: &'a Path,
    good: Built,
    folder: PathBuf,
    work: TempDir,
    /// The patched source with all its objects, once it was needed.
    source: Option<PathBuf>,
}

impl Mutants<'_> {
    fn is_noticed(&mut self, name: &str, mistake: &Mistake) -> Result<bool, Error> {
        let kernel = self.kernel(name, mistake)?;
        let (program, test) = &mistake.test;
        if program == FENCES {
            let begins = format!("check-fences: {test}");
            let names = |line: &str| {
                let rest = line.strip_prefix(&begins)?.split_once(": ")?.0;
                rest.chars().all(|c| c == '.' || c.is_ascii_alphanumeric()).then_some(())
            };
            let output = fences(&kernel).output().doing("running scripts/check-fences.py")?;
            let said = String::from_utf8_lossy(&output.stderr);
            return Ok(said.lines().any(|line| names(line).is_some()));
        }
        let said = self.boot(&kernel, mistake)?;
        let fails = |line: &str| {
            let mut words = line.strip_prefix("not ok ")?.split(' ');
            (words.nth(1) == Some(test)).then_some(())
        };
        if said.lines().any(|line| fails(line).is_some()) {
            return Ok(true);
        }
        println!("{said}");
        Ok(false)
    }

    /// What the test said on its outputs.
    fn boot(&self, kernel: &Path, mistake: &Mistake) -> Result<String, Error> {
        let program = self.work.path().join(&mistake.test.0);
        if !program.exists() {
            selftests::build(self.work.path(), &[&mistake.test.0])?;
        }
        let mutant = Built { path: kernel.to_owned(), ..self.good.clone() };
        let mut boot = Boot::new(&mutant, [&program]).env("NTCOPY_SELFTEST_BIG_MIB", "2");
        (boot.init, boot.output) = (Some(self.ntcopy.into()), Output::Capture);
        boot.timeout = Some(Duration::from_secs(300));
        boot.arguments.extend(mistake.append.clone());
        // A kernel that breaks down has told no test's failure.
        let outcome = match boot.run() {
            Ok(outcome) => outcome,
            Err(ntcopy_kernel::Error::Interrupted(_)) => return Err(Error::Interrupted),
            Err(error) => return Ok(error.to_string()),
        };
        Ok([&outcome.stdout[..], &outcome.stderr].map(String::from_utf8_lossy).concat())
    }

    /// The kernel with this mistake, built if it is not kept.
    fn kernel(&mut self, name: &str, mistake: &Mistake) -> Result<PathBuf, Error> {
        let key = Sha256::digest(format!("{mistake:?}"));
        let key: String = key[..6].iter().map(|byte| format!("{byte:02x}")).collect();
        let kept = self.folder.join(format!("{name}-{key}"));
        if kept.exists() {
            return Ok(kept);
        }
        let source = self.source()?;
        let file = source.join(&mistake.file);
        let original = fs::read(&file).doing(format!("reading {}", file.display()))?;
        let mut perl = Command::new("perl");
        perl.args(["-0pi", "-e", &mistake.change]).arg(&file);
        perl.status().doing("running perl")?;
        let is_changed = fs::read(&file).doing("reading what was changed")? != original;
        let made = if is_changed { make(&source) } else { Ok(()) };
        fs::write(&file, original).doing("taking the mistake out again")?;
        made?;
        if !is_changed {
            let what = format!("{name} changes nothing in {}", mistake.file);
            return Err(Error::Failed(format!("{what}: the code has moved on")));
        }
        // Half of one must never be found there.
        let half = self.folder.join(format!(".partial-{}", std::process::id()));
        fs::copy(source.join("linux"), &half).doing("keeping a mutant")?;
        fs::rename(&half, &kept).doing("keeping a mutant")?;
        Ok(kept)
    }

    fn source(&mut self) -> Result<PathBuf, Error> {
        if let Some(source) = &self.source {
            return Ok(source.clone());
        }
        let options = BuildOptions::from_env(Kind::Um)?;
        let (folder, mut progress) = (self.work.path(), progress::for_stderr());
        let source = ntcopy_kernel::compile_into(&options, folder, progress.as_mut())?;
        let mutants = self.folder.parent().unwrap_or(Path::new("/")).to_owned();
        for old in fs::read_dir(&mutants).into_iter().flatten().flatten() {
            if old.path() != self.folder {
                let _ = fs::remove_dir_all(old.path());
            }
        }
        fs::create_dir_all(&self.folder).doing("making a folder for mutants")?;
        self.source = Some(source.clone());
        Ok(source)
    }
}

/// Compiles what has changed.
fn make(source: &Path) -> Result<(), Error> {
    let options = BuildOptions::from_env(Kind::Um)?;
    let mut make = ntcopy_kernel::make(&options, source);
    make.arg(format!("-j{}", options.jobs));
    said(&mut make, "a mistake does not compile").map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_can_be_read_and_the_worst_are_in_it() {
        let mistakes = table().expect("whole");
        assert!(WORST.iter().all(|name| mistakes.contains_key(*name)));
    }
}
