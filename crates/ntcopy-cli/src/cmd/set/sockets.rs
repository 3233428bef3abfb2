//! The sockets of a program that have not been looked at yet.

use std::collections::{BTreeMap, HashSet};
use std::ffi::c_int;
use std::io;
use std::os::fd::RawFd;
use std::rc::Rc;

use ntcopy::recommended::Kind;
use ntcopy_inflight::{Pid, Process};

use super::hold::{self, Address, Holder};
use super::refusal;
use super::tree::{self, Tree};
use super::way::Way;

/// A socket, by a process that has it.
pub struct Socket {
    pub pid: Pid,
    holder: Rc<Holder>,
    number: RawFd,
    inode: u64,
    pub cookie: u64,
    /// From how many bytes on its sends are hinted.
    pub bytes: c_int,
    /// None: of no kind that can be hinted.
    pub kind: Option<Kind>,
    pub listens: bool,
}

impl Socket {
    /// Another socket may have the descriptor's number by now, and then none is found.
    fn look(
        way: &Way,
        pid: Pid,
        holder: &Rc<Holder>,
        number: RawFd,
        inode: u64,
    ) -> io::Result<Socket> {
        let (cookie, bytes) = holder.hold(number, hold::cookie, |socket, _| way.number(socket))?;
        let (kind, listens) = holder.kind(number)?;
        Ok(Socket { pid, holder: Rc::clone(holder), number, inode, cookie, bytes, kind, listens })
    }

    /// What it is named by to people.
    pub fn name(&self) -> String {
        let what = match self.kind {
            Some(kind) => kind.family.name(),
            None => "another",
        };
        let at = self.address().map(|at| format!(" at {at}")).unwrap_or_default();
        format!("{what} socket{at} (descriptor {} of pid {})", self.number, self.pid)
    }

    pub fn address(&self) -> Option<Address> {
        self.holder.address(self.number).ok().flatten()
    }

    /// Sets it, if it is still there; says whether it was.
    pub fn set(&self, way: &Way, bytes: c_int) -> io::Result<bool> {
        let is_it = |cookie: &u64| *cookie == self.cookie;
        let set = self.holder.hold(self.number, hold::cookie, |socket, cookie| {
            if is_it(cookie) { way.set(socket, bytes) } else { Ok(()) }
        });
        match set {
            Ok((cookie, ())) => Ok(is_it(&cookie)),
            Err(error) if has_gone(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// What a look at a program remembers until the next.
#[derive(Default)]
pub struct Looks {
    seen: HashSet<u64>,
    /// Processes that may not be asked, and why.
    pub refused: BTreeMap<Pid, String>,
}

impl Looks {
    /// The sockets that are new, listeners first: what they accept from then on has their number.
    pub fn new_sockets(&mut self, way: &Way, tree: &Tree) -> Vec<Socket> {
        let (mut found, mut there) = (Vec::new(), HashSet::new());
        for process in tree.processes() {
            match self.of(way, process, &mut there) {
                Ok(new) => found.extend(new),
                Err(error) if has_gone(&error) => {}
                Err(error) => {
                    self.refused.entry(process.pid).or_insert_with(|| refusal::of(process, &error));
                }
            }
        }
        self.seen.retain(|inode| there.contains(inode));
        found.sort_by_key(|socket| !socket.listens);
        found
    }

    fn of(
        &mut self,
        way: &Way,
        process: &Process,
        there: &mut HashSet<u64>,
    ) -> io::Result<Vec<Socket>> {
        let sockets = tree::sockets(process.pid)?;
        let mut holder = None;
        let mut found = Vec::new();
        for (number, inode) in sockets {
            there.insert(inode);
            if self.seen.contains(&inode) {
                continue;
            }
            let holder = match &holder {
                Some(holder) => holder,
                None => holder.insert(Rc::new(open(process)?)),
            };
            match Socket::look(way, process.pid, holder, number, inode) {
                Ok(socket) => {
                    self.seen.insert(socket.inode);
                    found.push(socket);
                }
                Err(error) if has_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }
}

/// The process itself, not a later one of its number.
fn open(process: &Process) -> io::Result<Holder> {
    let holder = Holder::open(process.pid)?;
    if process.is_there() { Ok(holder) } else { Err(io::Error::from_raw_os_error(libc::ESRCH)) }
}

/// Whether process or descriptor have ended since they were seen.
fn has_gone(error: &io::Error) -> bool {
    let gone = [libc::EBADF, libc::ENOENT, libc::ENOTSOCK, libc::ESRCH];
    error.raw_os_error().is_some_and(|errno| gone.contains(&errno))
}
