//! Processes, and the sockets that they have, from `/proc`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;

use crate::sockets::Inode;

pub type Pid = u32;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub pid: Pid,
    pub parent: Pid,
    pub name: String,
    /// Ticks from the boot to its start: tells it from a later process of the same number.
    pub started: u64,
}

impl Process {
    pub fn read(pid: Pid) -> io::Result<Process> {
        let text = String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/stat"))?).into_owned();
        parse(pid, &text).ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat: {text}")))
    }

    /// Whether it still runs.
    pub fn is_there(&self) -> bool {
        Process::read(self.pid).is_ok_and(|now| now.started == self.started)
    }
}

/// The name may hold spaces and parentheses. A process that ended and was not waited for is gone.
fn parse(pid: Pid, text: &str) -> Option<Process> {
    let (before, after) = (text.find('(')?, text.rfind(')')?);
    let fields: Vec<&str> = text.get(after + 1..)?.split_whitespace().collect();
    if matches!(fields.first(), None | Some(&("Z" | "X"))) {
        return None;
    }
    Some(Process {
        pid,
        name: text.get(before + 1..after)?.to_owned(),
        parent: fields.get(1)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// All that there are.
pub fn all() -> Vec<Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| Process::read(pid).ok()).collect()
}

/// A process's descriptors, as far as they matter here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descriptors {
    pub sockets: Vec<Inode>,
    /// Pipes of which it has both ends, as who splices has.
    pub pipes: usize,
}

/// The numbers of its threads; none of one that has ended.
pub fn threads(pid: Pid) -> Vec<Pid> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| task.file_name().to_str()?.parse().ok()).collect()
}

/// Whether its descriptors may be read; an error if not, or if it has ended.
pub fn may_be_read(pid: Pid) -> io::Result<()> {
    fs::read_dir(format!("/proc/{pid}/fd")).map(drop)
}

/// Needs the right to read them: the same user, or root.
pub fn descriptors(pid: Pid) -> io::Result<Descriptors> {
    let mut found = Descriptors::default();
    let mut ends: HashMap<u64, usize> = HashMap::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))? {
        // A descriptor may be closed meanwhile.
        let Ok(link) = entry.and_then(|entry| fs::read_link(entry.path())) else { continue };
        let Some(link) = link.to_str() else { continue };
        if let Some(inode) = numbered(link, "socket:[") {
            found.sockets.extend(Inode::try_from(inode));
        } else if let Some(pipe) = numbered(link, "pipe:[") {
            *ends.entry(pipe).or_default() += 1;
        }
    }
    found.pipes = ends.values().filter(|ends| **ends > 1).count();
    Ok(found)
}

fn numbered(link: &str, before: &str) -> Option<u64> {
    link.strip_prefix(before)?.strip_suffix(']')?.parse().ok()
}

/// The network namespace of a process, if it is not this process's own.
pub fn other_namespace(pid: Pid) -> io::Result<Option<File>> {
    let theirs = File::open(format!("/proc/{pid}/ns/net"))?;
    let (ours, there) = (fs::metadata("/proc/self/ns/net")?, theirs.metadata()?);
    Ok(((ours.dev(), ours.ino()) != (there.dev(), there.ino())).then_some(theirs))
}

/// Its number in the container that it runs in, if it does.
pub fn pid_in_container(pid: Pid) -> Option<Pid> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let numbers: Vec<&str> = line.split_whitespace().collect();
    if numbers.len() > 1 { numbers.last()?.parse().ok() } else { None }
}

/// What it wrote by write(), writev() and sendfile(), files included, sends not.
pub fn written_bytes(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("wchar: "))?.parse().ok()
}

/// Whether systemd has it in the unit of this name, a user's units included.
pub fn is_of_unit(pid: Pid, unit: &str) -> bool {
    let text = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
    text.lines().any(|line| line.split('/').any(|part| part == unit))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_name_with_parentheses_is_read_whole() {
        let fields = "S 7 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";
        let process = parse(9, &format!("9 (a) b (c)) {fields}\n")).unwrap();
        assert_eq!((process.name.as_str(), process.parent, process.started), ("a) b (c)", 7, 4242));
        assert_eq!(parse(9, &format!("9 (a) {}", fields.replace('S', "Z"))), None);
        assert_eq!(parse(9, "9 (a"), None);
    }

    #[test]
    fn sockets_and_pipes_of_this_process_are_found() {
        let pid = std::process::id();
        let before = descriptors(pid).unwrap().pipes;
        let (one, _other) = UnixStream::pair().unwrap();
        let _pipe = std::io::pipe().unwrap();
        let found = descriptors(pid).unwrap();
        let inode = rustix::fs::fstat(&one).unwrap().st_ino;
        assert!(found.sockets.iter().any(|socket| u64::from(*socket) == inode), "{found:?}");
        assert!(found.pipes > before, "{found:?}");
        let us = Process::read(pid).unwrap();
        assert!(us.is_there());
        assert!(!Process { started: us.started + 1, ..us }.is_there());
    }
}
