//! Programs that were started: read as they speak, and ended with all that they started.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process, set_child_subreaper};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::error::{Doing, Error};

/// How long a program may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(10);

/// Whether a signal asked this to end.
fn flag() -> &'static Arc<AtomicBool> {
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    FLAG.get_or_init(Arc::default)
}

pub fn is_interrupted() -> bool {
    flag().load(Ordering::SeqCst)
}

pub fn check() -> Result<(), Error> {
    if is_interrupted() { Err(Error::Interrupted) } else { Ok(()) }
}

/// While it lives, signals do not end this process but are noted, and whatever was started is ended,
/// orphans too; at its end, what is left of that.
pub struct Watch(Arc<AtomicBool>);

impl Watch {
    pub fn begin() -> Result<Self, Error> {
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(flag()))
                .doing("watching for signals")?;
        }
        // What loses its parent becomes a child of this process, and is found.
        set_child_subreaper(Some(getpid()))
            .map_err(std::io::Error::from)
            .doing("becoming the parent of orphans")?;
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        thread::spawn(move || {
            while !is_over.load(Ordering::SeqCst) {
                if is_interrupted() {
                    end_descendants();
                }
                thread::sleep(Duration::from_millis(100));
            }
        });
        Ok(Self(over))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        end_descendants();
    }
}

/// Asks everything below this process to end, and kills what does not.
fn end_descendants() {
    let begun = Instant::now();
    let mut asked = Vec::new();
    loop {
        let left = descendants(std::process::id());
        if left.is_empty() || begun.elapsed() > 2 * PATIENCE {
            return;
        }
        for pid in left {
            let is_late = begun.elapsed() > PATIENCE;
            if is_late || !asked.contains(&pid) {
                asked.push(pid);
                let signal = if is_late { Signal::KILL } else { Signal::TERM };
                let _ = Pid::from_raw(pid).map(|pid| kill_process(pid, signal));
            }
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// Processes below one, its children first, that have not ended.
pub fn descendants(of: u32) -> Vec<i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let parents: Vec<(i32, i32)> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![of as i32];
    let mut at = 0;
    while at < found.len() {
        let above = found[at];
        found.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
        at += 1;
    }
    found.split_off(1)
}

/// The parent of a process that has not ended.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut words = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = words.next()?;
    if state == "Z" { None } else { words.next()?.parse().ok() }
}

/// Runs a command, gives each line of both its outputs as it comes, and its exit code at the end.
pub fn lines(mut command: Command, mut each: impl FnMut(&str)) -> Result<Option<i32>, Error> {
    let name = Path::new(command.get_program()).display().to_string();
    let (reader, writer) = std::io::pipe().doing("making a pipe")?;
    let both = writer.try_clone().doing("making a pipe")?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(writer)
        .stderr(both)
        .spawn()
        .doing(format!("starting {name}"))?;
    // It holds the ends that are written to.
    drop(command);
    for line in BufReader::new(reader).split(b'\n') {
        each(&String::from_utf8_lossy(&line.doing(format!("reading from {name}"))?));
    }
    Ok(child.wait().doing(format!("waiting for {name}"))?.code())
}

/// What a command says on both its outputs; where it fails an error with that, and with what failed.
pub fn said(command: &mut Command, what: &str) -> Result<String, Error> {
    let output = command.stdin(Stdio::null()).output().doing(format!("running {command:?}"))?;
    let said = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
    if output.status.success() { Ok(said) } else { Err(Error::Failed(format!("{what}:\n{said}"))) }
}
