//! A program's processes, and the sockets that they have.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::fd::RawFd;

use ntcopy_inflight::Pid;
use ntcopy_inflight::processes::{self, Process};

/// A process and those that came of it, also those whose parent has ended since they were seen.
pub struct Tree {
    pub root: Process,
    all: HashMap<Pid, Process>,
}

impl Tree {
    pub fn of(pid: Pid) -> io::Result<Tree> {
        let root = Process::read(pid)?;
        let mut tree = Tree { all: HashMap::from([(pid, root.clone())]), root };
        tree.look();
        Ok(tree)
    }

    /// Looks who has ended, and who has come.
    pub fn look(&mut self) {
        self.all.retain(|_, process| process.is_there());
        let mut parents: Vec<Pid> = self.all.keys().copied().collect();
        let mut by_parent = None;
        while let Some(parent) = parents.pop() {
            let children = children(parent).unwrap_or_else(|| {
                let all = by_parent.get_or_insert_with(|| by_parent_of(processes::all()));
                all.get(&parent).cloned().unwrap_or_default()
            });
            for child in children {
                if !self.all.contains_key(&child)
                    && let Ok(process) = Process::read(child)
                {
                    self.all.insert(child, process);
                    parents.push(child);
                }
            }
        }
    }

    pub fn processes(&self) -> impl Iterator<Item = &Process> {
        self.all.values()
    }

    pub fn is_over(&self) -> bool {
        self.all.is_empty()
    }
}

/// What the kernel lists as its children, if it does (`CONFIG_PROC_CHILDREN`).
fn children(pid: Pid) -> Option<Vec<Pid>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let text = fs::read_to_string(thread.path().join("children")).ok()?;
        children.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<Pid>().ok()));
    }
    Some(children)
}

fn by_parent_of(all: Vec<Process>) -> HashMap<Pid, Vec<Pid>> {
    let mut by_parent: HashMap<Pid, Vec<Pid>> = HashMap::new();
    for process in all {
        by_parent.entry(process.parent).or_default().push(process.pid);
    }
    by_parent
}

/// A process's sockets: the number of a descriptor, and that of the socket.
pub fn sockets(pid: Pid) -> io::Result<Vec<(RawFd, u64)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(format!("/proc/{pid}/fd"))?.flatten() {
        // A descriptor may be closed meanwhile.
        let Ok(link) = fs::read_link(entry.path()) else { continue };
        let inode = link.to_str().and_then(|link| link.strip_prefix("socket:[")?.strip_suffix(']'));
        let inode = inode.and_then(|inode| inode.parse().ok());
        let number = entry.file_name().to_str().and_then(|name| name.parse().ok());
        found.extend(number.zip(inode));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_grandchild_stays_when_its_parent_has_gone() {
        let script = "(sleep 600 >/dev/null & echo $!; read go <&3); echo gone; read go <&3";
        let mut shell = Command::new("sh");
        let (ours, theirs) = UnixStream::pair().unwrap();
        shell.args(["-c", &format!("exec 3<&0; {script}")]);
        shell.stdin(std::os::fd::OwnedFd::from(theirs)).stdout(Stdio::piped());
        let mut shell = shell.spawn().unwrap();
        let mut said = BufReader::new(shell.stdout.take().unwrap()).lines();
        let mut line = || said.next().unwrap().unwrap();
        let grandchild: Pid = line().parse().unwrap();
        let mut tree = Tree::of(shell.id()).unwrap();
        assert!(tree.processes().any(|process| process.pid == grandchild));
        (&ours).write_all(b"\n").unwrap();
        assert_eq!(line(), "gone");
        tree.look();
        assert!(tree.processes().any(|process| process.pid == grandchild));
        let sleeping = rustix::process::Pid::from_raw(grandchild.cast_signed()).unwrap();
        rustix::process::kill_process(sleeping, rustix::process::Signal::KILL).unwrap();
        drop(ours);
        shell.wait().unwrap();
    }

    #[test]
    fn the_sockets_of_this_process_are_found() {
        let (one, _other) = UnixStream::pair().unwrap();
        let inode = rustix::fs::fstat(&one).unwrap().st_ino;
        assert!(sockets(std::process::id()).unwrap().contains(&(one.as_raw_fd(), inode)));
    }
}
