//! What happens between priming and probing.

use std::fs::File;
use std::hint::black_box;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt as _;

use ntcopy::socket::{self, Setting, Support};
use ntcopy::uapi;
use ntcopy::{Hint, Hints};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, ioctl_fionbio};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use rustix::pipe::{IoSliceRaw, SpliceFlags, splice, vmsplice};

use super::lines::{self, Cycle, Memory, PAGE};
use super::{Call, Kind, LINE_BYTES};
use crate::experiment::{Family, Mode};
use crate::run::{self, Failure, Pipe, Sink, inet};

/// Sources and destinations are taken in turns from this much: they are cold, as a server's are.
const AROUND_BYTES: usize = 64 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    Nothing,
    /// This number of lines of other memory is read.
    Read(usize),
    /// This number of the primed lines is flushed.
    Flushed(usize),
    /// This number of lines of other memory is written past the caches.
    Written(usize),
    Call(Call),
}

struct Link {
    ours: OwnedFd,
    theirs: OwnedFd,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Taker {
    Splice,
    Recv,
}

pub struct Triggers {
    source: Memory,
    destination: Memory,
    next: usize,
    file: File,
    sink: Sink,
    /// A call's own, with what opted it in.
    links: Vec<(Kind, Link)>,
}

impl Triggers {
    pub fn new(calls: &[Call]) -> Result<Triggers, Failure> {
        let source = Memory::new(AROUND_BYTES)?;
        let file = memfd_create("footprint", MemfdFlags::CLOEXEC);
        let file = File::from(file.map_err(Failure::os("cannot make a file"))?);
        file.write_all_at(source.bytes(), 0).map_err(Failure::io("cannot fill a file"))?;
        let mut triggers = Triggers {
            source,
            destination: Memory::new(AROUND_BYTES)?,
            next: 0,
            file,
            sink: Sink::new(Pipe::for_object(1 << 20)?)?,
            links: Vec::new(),
        };
        for call in calls {
            triggers.link(call.kind)?;
        }
        Ok(triggers)
    }

    fn link(&mut self, kind: Kind) -> Result<(), Failure> {
        let is_known = self.links.iter().any(|(known, _)| *known == kind);
        let family = match kind {
            Kind::Send | Kind::SendHinted | Kind::SendRead | Kind::Sendfile => Family::Unix,
            Kind::Tcp | Kind::TcpHinted => Family::Tcp,
            _ => return Ok(()),
        };
        if is_known {
            return Ok(());
        }
        let (ours, theirs) = inet::local_pair(family)?;
        // sendfile() has no flag for one call, and would wait for room that the same thread makes.
        for end in [&ours, &theirs] {
            ioctl_fionbio(end, true).map_err(Failure::os("cannot set O_NONBLOCK"))?;
        }
        let link = Link { ours, theirs };
        if kind.is_hinted() {
            let setting = Setting::From(uapi::MIN_BYTES.cast_unsigned());
            socket::enable(&link.ours, setting).map_err(Failure::os("cannot opt a socket in"))?;
        }
        self.links.push((kind, link));
        Ok(())
    }

    /// Chooses the pieces of source and destination for the next pull, and gives where they begin.
    /// Their lines are cold, but their pages are mapped: where a hypervisor keeps the page tables
    /// it would fill these in at the first use, and that displaces lines.
    pub fn aim(&mut self, trigger: Trigger) -> usize {
        let bytes = match trigger {
            Trigger::Nothing | Trigger::Flushed(_) => return self.next,
            Trigger::Read(count) | Trigger::Written(count) => count * LINE_BYTES,
            // A call has 16 MiB at most.
            Trigger::Call(call) => call.bytes as usize,
        };
        let at = self.place(bytes);
        self.source.map_pages(at..at + bytes);
        self.destination.map_pages(at..at + bytes);
        at
    }

    /// Does it once, with what begins there.
    pub fn pull(&mut self, trigger: Trigger, at: usize, primed: &Cycle) -> Result<(), Failure> {
        match trigger {
            Trigger::Nothing => {}
            Trigger::Read(count) => {
                lines::read(&self.source.bytes()[at..at + count * LINE_BYTES]);
            }
            Trigger::Flushed(count) => primed.flush(count),
            Trigger::Written(count) => {
                let lines = &mut self.destination.bytes_mut()[at..at + count * LINE_BYTES];
                lines::write_past_caches(lines);
            }
            Trigger::Call(call) => self.call(call, at)?,
        }
        Ok(())
    }

    /// Where the next piece of source and destination begins.
    fn place(&mut self, bytes: usize) -> usize {
        let rounded = bytes.next_multiple_of(PAGE);
        if self.next + rounded > AROUND_BYTES {
            self.next = 0;
        }
        let at = self.next;
        self.next += rounded;
        at
    }

    fn call(&mut self, call: Call, at: usize) -> Result<(), Failure> {
        let bytes = call.bytes as usize;
        let range = at..at + bytes;
        let source = &self.source.bytes()[range.clone()];
        let failed = || Failure::os(format!("cannot {call}"));
        match call.kind {
            Kind::Getpid => {
                black_box(rustix::process::getpid());
            }
            Kind::Scan => lines::read(source),
            Kind::Compare => {
                let other = &self.destination.bytes()[range];
                black_box(source == other);
            }
            Kind::Copy => self.destination.bytes_mut()[range].copy_from_slice(source),
            Kind::CopyNt => {
                let to = &mut self.destination.bytes_mut()[range];
                ntcopy::copy(to, source, Hints::NONTEMPORAL_DESTINATION);
            }
            Kind::CopyNtBoth => {
                let to = &mut self.destination.bytes_mut()[range];
                ntcopy::copy(to, source, Hints::NONTEMPORAL);
            }
            Kind::Fill => self.destination.bytes_mut()[range].fill(3),
            Kind::FillNt => {
                ntcopy::fill(&mut self.destination.bytes_mut()[range], 3, Hint::Nontemporal);
            }
            Kind::Touch => touch(bytes)?,
            Kind::Read => {
                let to = &mut self.destination.bytes_mut()[range];
                self.file.read_exact_at(to, at as u64).map_err(Failure::io("cannot read"))?;
            }
            Kind::Write => {
                self.file.write_all_at(source, at as u64).map_err(Failure::io("cannot write"))?;
            }
            Kind::Pipe => self.through_pipe(at, bytes).map_err(failed())?,
            Kind::Splice => self.splice_file(at, bytes).map_err(failed())?,
            Kind::Vmsplice => self.vmsplice(at, bytes).map_err(failed())?,
            Kind::Send | Kind::SendHinted | Kind::Tcp | Kind::TcpHinted => {
                self.stream(call.kind, at, bytes, Taker::Splice).map_err(failed())?;
            }
            Kind::SendRead => self.stream(call.kind, at, bytes, Taker::Recv).map_err(failed())?,
            Kind::Sendfile => self.stream(call.kind, at, bytes, Taker::Splice).map_err(failed())?,
        }
        Ok(())
    }

    /// Sends a piece, and takes it out at the other end.
    fn stream(&mut self, kind: Kind, at: usize, bytes: usize, taker: Taker) -> Result<(), Errno> {
        let link = self.links.iter().find(|(known, _)| *known == kind).map(|(_, link)| link);
        let link = link.ok_or(Errno::NOTCONN)?;
        let (mut sent, mut taken) = (0, 0);
        while taken < bytes {
            if sent < bytes {
                let rest = at + sent..at + bytes;
                let some = if kind == Kind::Sendfile {
                    let mut offset = rest.start as u64;
                    rustix::fs::sendfile(&link.ours, &self.file, Some(&mut offset), rest.len())
                } else {
                    send(&link.ours, &self.source.bytes()[rest], SendFlags::DONTWAIT)
                };
                sent += until_again(some)?;
            }
            while taken < sent {
                let some = match taker {
                    Taker::Splice => self.discard(&link.theirs, sent - taken),
                    Taker::Recv => {
                        let to = &mut self.destination.bytes_mut()[at + taken..at + sent];
                        recv(&link.theirs, to, RecvFlags::DONTWAIT).map(|(_, bytes)| bytes)
                    }
                };
                match until_again(some)? {
                    0 => break,
                    some => taken += some,
                }
            }
        }
        Ok(())
    }

    fn discard(&self, from: impl AsFd, most: usize) -> Result<usize, Errno> {
        let some = self.sink.fill(from, most, SpliceFlags::NONBLOCK)?;
        self.sink.empty(some)?;
        Ok(some)
    }

    fn through_pipe(&mut self, at: usize, bytes: usize) -> Result<(), Errno> {
        let most = self.sink.pipe.bytes as usize;
        for from in (at..at + bytes).step_by(most) {
            let range = from..(from + most).min(at + bytes);
            let mut left =
                rustix::io::write(&self.sink.pipe.write, &self.source.bytes()[range.clone()])?;
            let mut to = &mut self.destination.bytes_mut()[range];
            while left > 0 {
                let some = rustix::io::read(&self.sink.pipe.read, &mut *to)?;
                to = &mut to[some..];
                left -= some;
            }
        }
        Ok(())
    }

    fn splice_file(&self, at: usize, bytes: usize) -> Result<(), Errno> {
        let (mut offset, end) = (at as u64, (at + bytes) as u64);
        while offset < end {
            let left = (end - offset) as usize;
            let flags = SpliceFlags::MOVE;
            let some =
                splice(&self.file, Some(&mut offset), &self.sink.pipe.write, None, left, flags)?;
            self.sink.empty(some)?;
        }
        Ok(())
    }

    fn vmsplice(&self, at: usize, bytes: usize) -> Result<(), Errno> {
        let mut sent = 0;
        while sent < bytes {
            let piece = [IoSliceRaw::from_slice(&self.source.bytes()[at + sent..at + bytes])];
            // SAFETY: the write end of the pipe is given, so the kernel only reads the memory, and
            // SPLICE_F_GIFT is not set.
            let some = unsafe { vmsplice(&self.sink.pipe.write, &piece, SpliceFlags::empty()) }?;
            self.sink.empty(some)?;
            sent += some;
        }
        Ok(())
    }
}

/// How many bytes, and none where it is to be tried again.
fn until_again(result: Result<usize, Errno>) -> Result<usize, Errno> {
    match result {
        Err(Errno::AGAIN) => Ok(0),
        other => other,
    }
}

/// Maps memory, writes a byte in each page, and gives it back.
fn touch(bytes: usize) -> Result<(), Failure> {
    let map = memmap2::MmapOptions::new().len(bytes).map_anon();
    let mut map = map.map_err(Failure::io("cannot map memory"))?;
    map.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    black_box(&map);
    Ok(())
}

pub fn unavailable(call: Call) -> Result<Option<String>, Failure> {
    if call.kind == Kind::TcpHinted && socket::kernel_support() == Support::Module {
        return Ok(Some("the module takes no TCP".to_owned()));
    }
    if call.kind.is_hinted() { run::unavailable(Mode::Hinted) } else { Ok(None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_that_is_here_can_be_made_of_any_size() {
        for bytes in [1, 5000, 300 << 10] {
            let mut calls: Vec<Call> =
                Kind::ALL.iter().map(|kind| Call { kind: *kind, bytes }).collect();
            calls.retain(|call| unavailable(*call).unwrap().is_none());
            let mut triggers = Triggers::new(&calls).unwrap();
            let cycle = Cycle::new(64, 1).unwrap();
            for call in calls {
                let trigger = Trigger::Call(call);
                let at = triggers.aim(trigger);
                triggers.pull(trigger, at, &cycle).unwrap_or_else(|f| panic!("{call}: {f}"));
            }
        }
    }

    #[test]
    fn what_copies_copies() {
        for kind in
            [Kind::Copy, Kind::CopyNt, Kind::CopyNtBoth, Kind::Read, Kind::Pipe, Kind::SendRead]
        {
            let call = Call { kind, bytes: 70_000 };
            let mut triggers = Triggers::new(&[call]).unwrap();
            triggers.source.bytes_mut().fill(9);
            triggers.file.write_all_at(triggers.source.bytes(), 0).unwrap();
            triggers.call(call, 0).unwrap();
            assert!(triggers.destination.bytes()[..70_000].iter().all(|byte| *byte == 9), "{call}");
            assert_eq!(triggers.destination.bytes()[70_000], 1, "{call}");
        }
    }
}
