//! `cargo xtask test`: every test that one user-mode kernel is enough for.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::error::{Doing, Error};
use crate::guests;
use crate::programs::{self, Program};
use crate::running::{self, Watch};
use crate::sum::Sum;

/// Test programs that take longest come first, so that none of them is waited for alone.
const LONGEST: [&str; 4] = ["ntcopy-cli booted", "ntcopy-cli it", "proxyd it", "proxyd soak"];

/// Programs at a time: most of what tests do is wait.
const AT_ONCE: usize = 2;

pub fn run() -> Result<(), Error> {
    println!(
        "test: unit, property and model tests of every crate; the daemons over real sockets;\n\
         test: the program, and the suite in a user-mode kernel, which is built first if it is not\n\
         test: there. `make test-all` runs the rest; docs/design/testing.md lists it."
    );
    let begun = Instant::now();
    let _watch = Watch::begin()?;
    room()?;
    let (kernel, programs) = thread::scope(|scope| {
        let kernel = scope.spawn(|| guests::kernel("um"));
        let programs = programs::build();
        let kernel = kernel.join().unwrap_or_else(|_| Err(Error::Failed("a panic".to_owned())));
        (kernel, programs)
    });
    running::check()?;
    let mut programs = programs?;
    kernel?;
    println!("test: {} programs, built in {} s", programs.len(), begun.elapsed().as_secs());
    let last = LONGEST.len();
    programs.sort_by_key(|it| LONGEST.iter().position(|name| *name == it.name).unwrap_or(last));

    let begun = Instant::now();
    let sum = run_all(&programs)?;
    println!("test: all have run, in {} s", begun.elapsed().as_secs());
    sum.end("test", " (make test-all)")
}

/// What the first build of all tests leaves, and what a later one may.
const FIRST_BYTES: u64 = 5 << 30;
const LATER_BYTES: u64 = 1 << 30;

/// Fails where the disk would be full before the tests are built.
fn room() -> Result<(), Error> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or("target".into(), PathBuf::from);
    let target = programs::root().join(target);
    let needed = if target.join("debug/deps").exists() { LATER_BYTES } else { FIRST_BYTES };
    let disk = target.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    let room = rustix::fs::statvfs(disk).map_err(std::io::Error::from).doing("looking for room")?;
    let free = room.f_bavail.saturating_mul(room.f_frsize);
    if free >= needed {
        return Ok(());
    }
    let (free, needed, target) = (free >> 20, needed >> 20, target.display());
    let what = format!("{target}: {free} MiB free, and the tests need {needed} MiB there");
    Err(Error::NotHere(format!("{what}: make room, or set CARGO_TARGET_DIR to another disk")))
}

fn run_all(programs: &[Program]) -> Result<Sum, Error> {
    // Temporary files of tests that are ended go with it. Its path is short: sockets lie in it.
    let folder = tempfile::Builder::new().prefix("nt").tempdir().doing("making a folder")?;
    let queue = Mutex::new(programs.iter());
    let sum = Sum::default();
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || -> Result<(), Error> {
        while let Some(program) = next() {
            let mut command = Command::new(&program.path);
            command.arg("--show-output").current_dir(&program.folder);
            command.env("TMPDIR", folder.path()).env(programs::BUILT, "1");
            sum.run(&program.name, command)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(Error::Failed("a panic".to_owned())))
        })
    })?;
    let mut documentation = programs::cargo();
    documentation.args(["test", "--workspace", "--locked", "--quiet", "--doc"]);
    documentation.env("TMPDIR", folder.path());
    sum.run("examples of the documentation", documentation)?;
    Ok(sum)
}
