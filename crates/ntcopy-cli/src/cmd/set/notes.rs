//! What was found on the sockets that were set, so that it can be put back: a file for each program
//! that was named, by its number and start, a line for each socket, by its cookie.
//!
//! A line is written before its socket is set: whatever ends this program leaves nothing set that
//! nobody knows of.

use std::collections::HashMap;
use std::ffi::c_int;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ntcopy_inflight::Process;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::hold::Address;

/// A socket that was set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub cookie: u64,
    pub found: c_int,
    pub set: c_int,
    /// The address of a listener: what it accepts has its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listens: Option<Address>,
}

/// What all files say, by cookie.
#[derive(Default)]
pub struct All {
    last: HashMap<u64, Note>,
    /// All numbers of each listener: a connection may have one that its listener had before.
    listeners: Vec<Note>,
}

/// The file of a program, and what all such files say.
pub struct Notes {
    path: PathBuf,
    file: Rc<File>,
    all: All,
}

/// Where they are kept: until the next boot, as the sockets.
fn folder() -> io::Result<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Ok("/run/ntcopy".into());
    }
    let own = std::env::var_os("XDG_RUNTIME_DIR").filter(|folder| !folder.is_empty());
    let own = own.ok_or_else(|| io::Error::other("XDG_RUNTIME_DIR is not set"))?;
    Ok(Path::new(&own).join("ntcopy"))
}

fn name(process: &Process) -> String {
    format!("{}-{}.jsonl", process.pid, process.started)
}

/// Whether the process of a file's name has ended.
fn is_over(name: &str) -> bool {
    let numbers = name.strip_suffix(".jsonl").and_then(|name| name.split_once('-'));
    let numbers =
        numbers.and_then(|(pid, start)| Some((pid.parse().ok()?, start.parse::<u64>().ok()?)));
    numbers
        .is_some_and(|(pid, started)| Process::read(pid).map_or(true, |now| now.started != started))
}

impl All {
    /// Those of all programs that still run; the files of others are forgotten.
    fn read_in(folder: &Path) -> io::Result<All> {
        let mut all = All::default();
        for entry in fs::read_dir(folder)?.flatten() {
            if is_over(&entry.file_name().to_string_lossy()) {
                let _ = fs::remove_file(entry.path());
            } else if let Ok(text) = fs::read_to_string(entry.path()) {
                all.add(&text);
            }
        }
        Ok(all)
    }

    /// A line that was cut short is of a socket that was not set.
    fn add(&mut self, text: &str) {
        let notes = text.lines().filter_map(|line| serde_json::from_str::<Note>(line).ok());
        notes.for_each(|note| self.insert(note));
    }

    fn insert(&mut self, note: Note) {
        self.listeners.extend(note.listens.is_some().then(|| note.clone()));
        self.last.insert(note.cookie, note);
    }

    pub fn of(&self, cookie: u64) -> Option<&Note> {
        self.last.get(&cookie)
    }

    /// The listener that accepted a connection with this number and address.
    pub fn listener(&self, number: c_int, address: &Address) -> Option<&Note> {
        let accepted = |note: &&Note| note.set == number && note.listens.as_ref() == Some(address);
        self.listeners.iter().rev().find(accepted)
    }
}

impl Notes {
    /// Those of a program.
    pub fn open(process: &Process) -> io::Result<Notes> {
        let folder = folder()?;
        fs::create_dir_all(&folder)?;
        Notes::open_in(&folder, process)
    }

    /// Those of every program; none where none were ever kept.
    pub fn read_all() -> io::Result<All> {
        All::read_in(&folder()?)
    }

    fn open_in(folder: &Path, process: &Process) -> io::Result<Notes> {
        let path = folder.join(name(process));
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(&path)?;
        Ok(Notes { path, file: Rc::new(file), all: All::read_in(folder)? })
    }

    pub fn all(&self) -> &All {
        &self.all
    }

    /// Notes a socket that is about to be set. What was found at first stays.
    pub fn add(&mut self, mut note: Note) -> io::Result<()> {
        if let Some(before) = self.all.of(note.cookie).filter(|before| before.set == note.found) {
            note.found = before.found;
        }
        let mut line = serde_json::to_vec(&note)?;
        line.push(b'\n');
        (&*self.file).write_all(&line)?;
        self.all.insert(note);
        Ok(())
    }

    /// Nobody else looks or sets meanwhile.
    pub fn lock(&self) -> io::Result<Lock> {
        flock(&*self.file, FlockOperation::LockExclusive)?;
        Ok(Lock(Rc::clone(&self.file)))
    }

    /// Whether somebody has put back what was found, and forgotten it.
    pub fn are_gone(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
    }

    /// They are of no use any more.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(self.path)
    }
}

pub struct Lock(Rc<File>);

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = flock(&*self.0, FlockOperation::Unlock);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_first_is_kept_and_what_is_over_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let process = Process::read(std::process::id()).unwrap();
        let over = folder.path().join(format!("{}-{}.jsonl", process.pid, process.started + 1));
        fs::write(&over, "{\"cookie\":9,\"found\":0,\"set\":4096}\n").unwrap();
        let mut notes = Notes::open_in(folder.path(), &process).unwrap();
        assert!(!over.exists() && notes.all.of(9).is_none());

        let listens = Some(Address::Tcp(80));
        let note = Note { cookie: 7, found: 8192, set: 4096, listens: listens.clone() };
        notes.add(note.clone()).unwrap();
        notes.add(Note { found: 4096, set: 65_536, ..note.clone() }).unwrap();
        // Somebody else has set it meanwhile: that is what is put back.
        notes.add(Note { cookie: 8, found: 1, set: 4096, listens: None }).unwrap();
        notes.add(Note { cookie: 8, found: 5000, set: 4096, listens: None }).unwrap();
        (&*notes.file).write_all(b"{\"cookie\":10,\"fou").unwrap();

        let again = Notes::open_in(folder.path(), &process).unwrap();
        assert_eq!(again.all.of(7), Some(&Note { set: 65_536, ..note }));
        assert_eq!(again.all.of(8).map(|note| note.found), Some(5000));
        assert_eq!(again.all.of(10), None);
        let accepted = again.all.listener(65_536, &Address::Tcp(80)).map(|note| note.cookie);
        assert_eq!(accepted, Some(7));
        let accepted = again.all.listener(4096, &Address::Tcp(80)).map(|note| note.found);
        assert_eq!(accepted, Some(8192), "before it was set again");
        assert!(again.all.listener(8192, &Address::Tcp(80)).is_none());
        assert!(!notes.are_gone());
        again.remove().unwrap();
        assert!(notes.are_gone());
    }
}
