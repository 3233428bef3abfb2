//! The guest's first process.
//!
//! `ntcopy kernel guest-init SPEC` runs as process 1 of the booted kernel. It mounts what a
//! program expects, does what the host ordered, passes output on, and switches the guest off.

mod child;
mod overlay;
mod setup;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::system::{RebootCommand, reboot};

use crate::boot::spec::{Answer, CONTROL_LINE, Spec};

/// Runs the guest, and never comes back: with the orders carried out it switches off.
///
/// Called in any other process than the first it only says so, and exits with code 2.
pub fn init(spec: &Path) -> ! {
    if std::process::id() != 1 {
        eprintln!("ntcopy: guest-init is the first process of a booted kernel, and nothing else");
        std::process::exit(2);
    }
    if let Err(error) = run(spec) {
        // The control line is what failed, or the orders; the console is what is left.
        eprintln!("ntcopy: guest-init: {error}");
    }
    rustix::fs::sync();
    let _ = reboot(RebootCommand::PowerOff);
    // Process 1 that ends is a panic, which ends the guest as well.
    std::process::exit(1);
}

/// A failure in the guest is a text for the host.
type Result<T> = std::result::Result<T, String>;

fn run(spec: &Path) -> Result<()> {
    // What is needed of the host's tree is opened before /dev and /run are mounted over it.
    let text = std::fs::read(spec).map_err(|error| format!("{}: {error}", spec.display()))?;
    let spec: Spec = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let kept = setup::keep_host(&spec.writable);
    let home = Path::new(&spec.directory);
    let directory = kept.and_then(|()| setup::enter(home));
    setup::mount_all()?;
    let control = setup::raw_line(spec.lines, CONTROL_LINE)?;
    let obeyed = directory
        .and_then(|()| overlay::cover(&spec.scratch, &spec.writable))
        .and_then(|()| enter_covered(home, &spec.scratch))
        .and_then(|()| setup::bind_modules(&spec))
        .and_then(|()| setup::obey(&spec));
    let answer = match obeyed {
        Ok(()) => {
            say(&control, &Answer::Ready)?;
            match child::run(&spec) {
                Ok((code, sent_bytes)) => Answer::Exit { code, sent_bytes },
                Err(text) => Answer::Error(text),
            }
        }
        Err(text) => Answer::Error(text),
    };
    report_leaks();
    // The host may read files that the command wrote as soon as it has the answer, and switch an
    // emulated machine off.
    rustix::fs::sync();
    say(&control, &answer)
}

/// Goes to the directory again where an overlay lies over it now.
fn enter_covered(directory: &Path, scratch: &[OsString]) -> Result<()> {
    match scratch.iter().any(|folder| directory.starts_with(folder)) {
        true => setup::enter(directory),
        false => Ok(()),
    }
}

/// Sends a line to the host and waits until it is out.
fn say(mut control: &File, answer: &Answer) -> Result<()> {
    std::io::Write::write_all(&mut control, answer.line().as_bytes())
        .and_then(|()| setup::drain(control))
        .map_err(|error| format!("the control line: {error}"))
}

/// Where kmemleak is asked what was allocated and lost.
const KMEMLEAK: &str = "/sys/kernel/debug/kmemleak";

/// kmemleak names no object that is younger than this (MSECS_MIN_AGE of mm/kmemleak.c), and a
/// little more.
const MIN_LEAK_AGE: Duration = Duration::from_millis(5200);

/// Prints what was lost to the console, where the host looks for it. The command and all that it
/// left behind have ended.
fn report_leaks() {
    if !Path::new(KMEMLEAK).exists() {
        return;
    }
    if let Err(error) = scan_for_leaks() {
        eprintln!("BUG: kmemleak could not be asked: {error}");
    }
}

fn scan_for_leaks() -> io::Result<()> {
    // The first scan notes what an object holds; only one that holds the same at the second is
    // named.
    fs::write(KMEMLEAK, "scan")?;
    std::thread::sleep(MIN_LEAK_AGE);
    fs::write(KMEMLEAK, "scan")?;
    eprint!("{}", String::from_utf8_lossy(&fs::read(KMEMLEAK)?));
    Ok(())
}
