//! What runs on a node: the asked experiments, one after the other, each in a process of its own,
//! and what came of them on standard output.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use ntcopy_record::FILE_NAME;

use super::lines::{self, Tail};
use super::{Ask, NodeFacts, Received, frame};
use crate::summary::Dimms;

/// How often a running experiment is looked after.
const LOOK: Duration = Duration::from_millis(50);

/// What a node came to.
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
///
/// # Errors
///
/// When the reader of the frames has gone, or the folder cannot be used.
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
pub(super) fn terminate(child: &Child) {
    if let Ok(pid) = i32::try_from(child.id())
        && let Some(pid) = rustix::process::Pid::from_raw(pid)
    {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

/// The memory modules, as the firmware's tables list them; none where they may not be read.
#[must_use]
pub fn dimms() -> Option<Dimms> {
    dimms_in(Path::new("/sys/firmware/dmi/entries"))
}

fn dimms_in(entries: &Path) -> Option<Dimms> {
    let mut tables: Vec<PathBuf> = fs::read_dir(entries)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|n| n.starts_with("17-"))
        })
        .collect();
    tables.sort();
    let mut dimms = Dimms { slots: 0, populated: 0, speed_mt_per_s: None };
    for table in tables {
        // One that may not be read: nothing is known then.
        let (is_populated, speed) = memory_device(&fs::read(table.join("raw")).ok()?)?;
        dimms.slots += 1;
        if is_populated {
            dimms.populated += 1;
            let slowest = [dimms.speed_mt_per_s, speed].into_iter().flatten().min();
            dimms.speed_mt_per_s = slowest;
        }
    }
    (dimms.slots > 0).then_some(dimms)
}

/// A memory device of the SMBIOS tables (type 17; DSP0134, 7.18): whether there is a module, and
/// the million transfers a second that it is run at, if the table has them.
fn memory_device(table: &[u8]) -> Option<(bool, Option<u32>)> {
    let word = |at: usize| Some(u16::from_le_bytes(table.get(at..at + 2)?.try_into().ok()?));
    let length = usize::from(*table.get(1)?);
    let size = word(0x0c)?;
    // "Configured Memory Speed", from SMBIOS 2.7 on; before that "Speed".
    let configured = if length >= 0x22 { word(0x20) } else { None };
    let speed = configured.filter(|speed| *speed != 0).or_else(|| word(0x15));
    Some((size != 0, speed.filter(|speed| !matches!(speed, 0 | 0xffff)).map(u32::from)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(size: u16, speed: u16, configured: u16) -> Vec<u8> {
        let mut table = vec![0; 0x28];
        (table[0], table[1]) = (17, 0x28);
        table[0x0c..0x0e].copy_from_slice(&size.to_le_bytes());
        table[0x15..0x17].copy_from_slice(&speed.to_le_bytes());
        table[0x20..0x22].copy_from_slice(&configured.to_le_bytes());
        table
    }

    #[test]
    fn modules_are_counted_and_the_slowest_tells() {
        let folder = tempfile::tempdir().unwrap();
        let tables = [table(0x8000, 4800, 4400), table(0, 0, 0), table(0x8000, 4800, 0)];
        for (number, table) in tables.iter().enumerate() {
            let entry = folder.path().join(format!("17-{number}"));
            fs::create_dir(&entry).unwrap();
            fs::write(entry.join("raw"), table).unwrap();
        }
        fs::create_dir(folder.path().join("16-0")).unwrap();
        let expected = Dimms { slots: 3, populated: 2, speed_mt_per_s: Some(4400) };
        assert_eq!(dimms_in(folder.path()), Some(expected));
    }

    #[test]
    fn what_cannot_be_read_is_not_known() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(dimms_in(folder.path()), None);
        fs::create_dir(folder.path().join("17-0")).unwrap();
        assert_eq!(dimms_in(folder.path()), None);
        fs::write(folder.path().join("17-0/raw"), [17, 40]).unwrap();
        assert_eq!(dimms_in(folder.path()), None);
    }
}
