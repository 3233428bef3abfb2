//! What runs on a node: the asked experiments, one after the other, each in a process of its own,
//! and what came of them on standard output.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use ntcopy_record::FILE_NAME;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::lines::{self, Tail};
use super::{Ask, NodeFacts, Received, frame};

/// How often a running experiment is looked after.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Experiments whose question is answered.
    pub answered: usize,
    /// Those that failed.
    pub failed: usize,
    /// Those in which a byte was wrong; they count as failed too.
    pub wrong_byte: usize,
}

/// Measures, and prints the frames to `out`. `program` is this ntcopy; `folder` takes the records
/// in the meantime.
pub fn measure(
    program: &Path,
    ask: &Ask,
    facts: &NodeFacts,
    folder: &Path,
    cancelled: &dyn Fn() -> bool,
    out: &mut dyn Write,
) -> io::Result<Tally> {
    let mut tally = Tally::default();
    for experiment in &ask.experiments {
        if cancelled() {
            break;
        }
        let asked = ask.key(experiment);
        let place = folder.join(experiment);
        match one(program, &ask.words(experiment), &place, cancelled)? {
            Ok((code, raw)) => {
                let record = Received { facts: facts.clone(), asked, code, raw };
                tally.answered += usize::from(record.is_whole());
                tally.failed += usize::from(!record.is_whole());
                tally.wrong_byte += usize::from(code == 4);
                frame::write_record(out, &record)?;
            }
            Err(why) => {
                tally.failed += 1;
                frame::write_failure(out, &asked, &why)?;
            }
        }
        // Room for the next one; temporary folders on a node are often small.
        let _ = fs::remove_dir_all(&place);
    }
    if !cancelled() {
        frame::write_done(out)?;
    }
    Ok(tally)
}

/// One experiment: its exit code and the bytes of its record, or why there is none.
fn one(
    program: &Path,
    words: &[String],
    place: &Path,
    cancelled: &dyn Fn() -> bool,
) -> io::Result<Result<(i32, Vec<u8>), String>> {
    let mut child = Command::new(program)
        .arg("bench")
        .args(words)
        .arg("--out")
        .arg(place)
        .stdin(Stdio::null())
        // Its table is for people, and standard output is for frames.
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take();
    let listener = thread::spawn(move || {
        let mut tail = Tail::default();
        if let Some(stderr) = stderr {
            lines::each(stderr, |line| {
                // Whoever watches the node's own output sees how it goes on.
                eprintln!("{line}");
                tail.push(line);
            });
        }
        tail
    });
    let code = wait(&mut child, cancelled)?;
    let tail = listener.join().unwrap_or_default();
    let raw = fs::read(place.join(FILE_NAME)).ok().filter(|raw| raw.ends_with(b"\n"));
    Ok(match raw {
        Some(raw) => Ok((code, raw)),
        None if tail.text().is_empty() => Err(format!("it ended with {code} and no record")),
        None => Err(tail.text()),
    })
}

/// Waits for the experiment's end; passes on that it is to stop. A signal's number counts as
/// shells have it.
fn wait(child: &mut Child, cancelled: &dyn Fn() -> bool) -> io::Result<i32> {
    use std::os::unix::process::ExitStatusExt as _;
    let mut is_told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            let signal = status.signal().map(|signal| 128 + signal);
            return Ok(status.code().or(signal).unwrap_or(1));
        }
        if cancelled() && !is_told {
            terminate(child);
            is_told = true;
        }
        thread::sleep(LOOK);
    }
}

/// Asks a child to end; it may not be there any more.
fn terminate(child: &Child) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Asks a child that leads a process group, and all that it started there.
pub(super) fn terminate_group(child: &Child) {
    if let Some(pid) = Pid::from_raw(child.id().cast_signed()) {
        let _ = kill_process_group(pid, Signal::TERM);
    }
}
