//! A response on its way out, and the pipes for vmsplice, which are kept for the next one.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use ntcopy::Hint;
use ntcopy::socket::{self, SendAncillaryBuffer, SendFlags, Setting, Support};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::pipe::{
    IoSliceRaw, PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice, vmsplice,
};

use super::Mode;
use crate::store::Object;

/// Most bytes of one call: others get their turn.
const CALL_BYTES: usize = 4 << 20;
/// Bytes that are read at a time where a mapping could not be.
const RESCUE_BYTES: usize = 64 << 10;

#[derive(Debug)]
pub enum Body {
    /// There are none, or they are in the head's buffer.
    None,
    File(Arc<Object>, Range<u64>),
}

impl Body {
    pub fn left(&self) -> u64 {
        match self {
            Body::None => 0,
            Body::File(_, range) => range.end - range.start,
        }
    }

    fn advance(&mut self, bytes: usize) {
        if let Body::File(_, range) = self {
            range.start += bytes as u64;
        }
    }

    /// The next bytes, for the kernel to read.
    fn slice(&self) -> Result<&[u8], Errno> {
        let Body::File(object, range) = self else { return Ok(&[]) };
        let bytes = &object.region()?.bytes()[range.start as usize..range.end as usize];
        Ok(&bytes[..bytes.len().min(CALL_BYTES)])
    }
}

/// How far [`Outgoing::advance`] came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Everything is in the socket.
    Done,
    /// This number of bytes went, and there is room for more.
    Some(usize),
    Blocked,
}

#[derive(Debug, Default)]
pub struct Sender {
    pipes: Pipes,
    /// Mappings that failed under a send, and were read instead.
    pub rescued: u64,
}

/// Bytes of a file, from its reading to their sending.
#[derive(Debug, Default)]
struct Rescue {
    buffer: Vec<u8>,
    sent: usize,
}

/// Which sends of a connection's socket are hinted, and who takes that.
#[derive(Debug, Clone, Copy)]
pub struct Set {
    setting: Setting,
    support: Support,
}

impl Set {
    /// How every socket begins.
    pub const NONE: Set = Set { setting: Setting::None, support: Support::None };

    /// Sets the socket to what a mode needs, unless it is. One that takes flagged sends stays so:
    /// the other modes' sends carry no flag.
    fn change(&mut self, to: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
        let setting = match (mode, self.setting) {
            (Mode::Nt, _) => Setting::Obey,
            (Mode::Adaptive, _) | (_, Setting::Flagged) => Setting::Flagged,
            (Mode::Copy | Mode::Sendfile | Mode::Vmsplice, _) => Setting::None,
        };
        if self.setting != setting {
            *self = Set { setting, support: socket::enable(to, setting)? };
        }
        Ok(())
    }
}

#[derive(Debug)]
pub struct Outgoing {
    head: Vec<u8>,
    head_sent: usize,
    body: Body,
    mode: Mode,
    support: Support,
    pipe: Option<Pipe>,
    /// Bytes that were read because the mapping could not be.
    rescue: Option<Rescue>,
}

impl Outgoing {
    /// A head, and the way its body goes.
    pub fn new(head: Vec<u8>, body: Body, mode: Mode) -> Outgoing {
        let support = Support::None;
        Outgoing { head, head_sent: 0, body, mode, support, pipe: None, rescue: None }
    }

    /// Sets the socket and the pipe up. Where that fails the body is copied: decided before its
    /// first byte. Returns the way that it goes.
    pub fn prepare(&mut self, to: BorrowedFd<'_>, set: &mut Set, sender: &mut Sender) -> Mode {
        match set.change(to, self.mode) {
            Ok(()) => self.support = set.support,
            Err(_) => self.mode = Mode::Copy,
        }
        if self.mode == Mode::Vmsplice {
            match sender.pipes.take() {
                Ok(pipe) => self.pipe = Some(pipe),
                Err(_) => self.mode = Mode::Copy,
            }
        }
        // A file that can't be mapped can still be sent.
        if !matches!(self.mode, Mode::Sendfile)
            && matches!(self.body, Body::File(..))
            && self.body.left() > 0
            && self.body.slice().is_err()
        {
            self.recycle(sender);
            self.mode = Mode::Sendfile;
        }
        self.mode
    }

    pub fn recycle(&mut self, sender: &mut Sender) {
        if let Some(pipe) = self.pipe.take() {
            sender.pipes.put(pipe);
        }
    }

    /// Sends the next piece.
    ///
    /// # Errors
    ///
    /// The peer is gone, or the object can't be read any more. What was sent stands, so the
    /// connection must end.
    pub fn advance(&mut self, to: BorrowedFd<'_>, sender: &mut Sender) -> Result<Progress, Errno> {
        let sent = match self.call(to, sender) {
            Ok(0) if self.is_done() => return Ok(Progress::Done),
            // The file is shorter than it was.
            Ok(0) => return Err(Errno::IO),
            Ok(sent) => sent,
            Err(Errno::AGAIN) => return Ok(Progress::Blocked),
            Err(Errno::INTR) => 0,
            Err(errno) => return Err(errno),
        };
        Ok(if self.is_done() { Progress::Done } else { Progress::Some(sent) })
    }

    /// Body bytes that are not in the socket.
    pub fn left(&self) -> u64 {
        let in_pipe = self.pipe.as_ref().map_or(0, |pipe| pipe.filled as u64);
        self.body.left() + in_pipe
    }

    fn is_done(&self) -> bool {
        self.head_sent == self.head.len()
            && self.body.left() == 0
            && self.pipe.as_ref().is_none_or(|pipe| pipe.filled == 0)
    }

    fn call(&mut self, to: BorrowedFd<'_>, sender: &mut Sender) -> Result<usize, Errno> {
        let body_follows = self.body.left() > 0;
        let copies = matches!(self.mode, Mode::Copy | Mode::Nt | Mode::Adaptive);
        let together = copies && body_follows && self.rescue.is_none();
        if self.head_sent < self.head.len() && !together {
            let more = if body_follows { SendFlags::MORE } else { SendFlags::empty() };
            let head = &self.head[self.head_sent..];
            let sent = rustix::net::send(to, head, SendFlags::NOSIGNAL | more)?;
            self.head_sent += sent;
            return Ok(sent);
        }
        if self.rescue.is_some() {
            return self.send_rescued(to);
        }
        let result = match self.mode {
            // With `Nt` the socket has the hint, else the call.
            Mode::Copy | Mode::Nt => self.send_copied(to, Hint::Auto),
            Mode::Adaptive => self.send_copied(to, Hint::Nontemporal),
            Mode::Sendfile => self.send_file(to),
            Mode::Vmsplice => self.send_pages(to),
        };
        match result {
            // A page of the mapping could not be had: reading tells why, or gets it after all.
            Err(Errno::FAULT) => {
                sender.rescued += 1;
                self.rescue = Some(Rescue::default());
                self.call(to, sender)
            }
            result => result,
        }
    }

    /// Head and body in one call, as long as there is head: a second call costs more than the few
    /// lines of a hinted head that the peer has to fetch from memory.
    fn send_copied(&mut self, to: BorrowedFd<'_>, hint: Hint) -> Result<usize, Errno> {
        let body = self.body.slice()?;
        let sent = if self.head_sent == self.head.len() {
            socket::send(to, body, SendFlags::NOSIGNAL, hint, self.support)?
        } else {
            let slices = [IoSlice::new(&self.head[self.head_sent..]), IoSlice::new(body)];
            let mut none = SendAncillaryBuffer::default();
            socket::sendmsg(to, &slices, &mut none, SendFlags::NOSIGNAL, hint, self.support)?
        };
        let of_head = sent.min(self.head.len() - self.head_sent);
        self.head_sent += of_head;
        self.body.advance(sent - of_head);
        Ok(sent)
    }

    fn send_file(&mut self, to: BorrowedFd<'_>) -> Result<usize, Errno> {
        let Body::File(object, range) = &mut self.body else { return Err(Errno::INVAL) };
        let bytes = (range.end - range.start).min(CALL_BYTES as u64) as usize;
        // Moves the range's start by what it sent. A peer that is gone is EPIPE: the signal is
        // ignored.
        match rustix::fs::sendfile(to, object.file(), Some(&mut range.start), bytes) {
            // Not from this file system: then as any other bytes.
            Err(Errno::INVAL | Errno::NOSYS) => {
                self.mode = Mode::Copy;
                self.send_copied(to, Hint::Auto)
            }
            result => result,
        }
    }

    /// Pages into the pipe, and out of it into the socket.
    fn send_pages(&mut self, to: BorrowedFd<'_>) -> Result<usize, Errno> {
        let pipe = self.pipe.as_mut().ok_or(Errno::INVAL)?;
        if pipe.filled == 0 {
            let bytes = self.body.slice()?;
            let slices = [IoSliceRaw::from_slice(bytes)];
            // SAFETY: the pages are a region's (region.rs): they are not written to as long as
            // anyone holds them, so the pipe may, beyond the region's own life.
            pipe.filled = unsafe { vmsplice(&pipe.write, &slices, SpliceFlags::NONBLOCK)? };
            self.body.advance(pipe.filled);
        }
        let flags = SpliceFlags::NONBLOCK | SpliceFlags::MOVE;
        let sent = splice(&pipe.read, None, to, None, pipe.filled, flags)?;
        pipe.filled -= sent;
        Ok(sent)
    }

    /// By way of a buffer: reads what the mapping did not give.
    fn send_rescued(&mut self, to: BorrowedFd<'_>) -> Result<usize, Errno> {
        let Body::File(object, range) = &mut self.body else { return Err(Errno::FAULT) };
        let Some(rescue) = &mut self.rescue else { return Err(Errno::INVAL) };
        if rescue.sent == rescue.buffer.len() {
            let bytes = (RESCUE_BYTES as u64).min(range.end - range.start) as usize;
            rescue.sent = 0;
            rescue.buffer.resize(bytes, 0);
            let read = rustix::io::pread(object.file(), &mut rescue.buffer[..], range.start);
            rescue.buffer.truncate(*read.as_ref().unwrap_or(&0));
            read?;
        }
        let rest = &rescue.buffer[rescue.sent..];
        if rest.is_empty() {
            return Ok(0);
        }
        let bytes = rustix::net::send(to, rest, SendFlags::NOSIGNAL)?;
        rescue.sent += bytes;
        range.start += bytes as u64;
        Ok(bytes)
    }
}

/// What a pipe is made to hold, if the system allows it: an object of 1 MiB in one round.
const PIPE_BYTES: usize = 1 << 20;
const KEPT: usize = 32;

#[derive(Debug)]
pub struct Pipe {
    pub read: OwnedFd,
    pub write: OwnedFd,
    /// Bytes in it.
    pub filled: usize,
}

#[derive(Debug, Default)]
pub struct Pipes(Vec<Pipe>);

impl Pipes {
    pub fn take(&mut self) -> Result<Pipe, Errno> {
        if let Some(pipe) = self.0.pop() {
            return Ok(pipe);
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        // Above fs.pipe-max-size, or the user's share of pipe memory, it keeps its 64 KiB.
        let _ = fcntl_setpipe_size(&write, PIPE_BYTES);
        Ok(Pipe { read, write, filled: 0 })
    }

    /// Keeps a pipe; one with bytes in it is closed, so that they reach no other client.
    pub fn put(&mut self, pipe: Pipe) {
        if pipe.filled == 0 && self.0.len() < KEPT {
            self.0.push(pipe);
        }
    }
}
