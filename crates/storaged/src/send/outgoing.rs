//! A response on its way out.

use std::io::IoSlice;
use std::ops::Range;
use std::sync::Arc;

use ntcopy::Hint;
use ntcopy::socket::{self, SendAncillaryBuffer, SendFlags, Setting, Support};
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

use super::Mode;
use crate::store::Object;

const CALL_BYTES: usize = 4 << 20;

/// A part of an object, at least a byte.
#[derive(Debug)]
pub struct Body {
    pub object: Arc<Object>,
    pub range: Range<u64>,
}

impl Body {
    /// The next bytes, for the kernel to read.
    fn slice(&self) -> Result<&[u8], Errno> {
        let all = self.object.mapped().ok_or(Errno::NOMEM)?;
        let bytes = &all[self.range.start as usize..self.range.end as usize];
        Ok(&bytes[..bytes.len().min(CALL_BYTES)])
    }
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
            (Mode::Nt, _) | (_, Setting::Flagged) => Setting::Flagged,
            _ => Setting::None,
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
    body: Option<Body>,
    /// The way that its body goes.
    pub mode: Mode,
    support: Support,
}

impl Outgoing {
    /// A head, and the way its body goes.
    pub fn new(head: Vec<u8>, body: Option<Body>, mode: Mode) -> Outgoing {
        Outgoing { head, head_sent: 0, body, mode, support: Support::None }
    }

    /// Sets the socket up; where that fails the body goes another way: decided before its first byte.
    pub fn set_up(&mut self, to: BorrowedFd<'_>, set: &mut Set) {
        let Some(body) = &self.body else { return };
        match set.change(to, self.mode) {
            Ok(()) => self.support = set.support,
            Err(_) => self.mode = Mode::Copy,
        }
        // What can't be mapped can still be sent.
        if self.mode != Mode::Sendfile && body.slice().is_err() {
            self.mode = Mode::Sendfile;
        }
    }

    /// The object, which is sent no more.
    pub fn take_object(&mut self) -> Option<Arc<Object>> {
        self.body.take().map(|body| body.object)
    }

    pub fn left(&self) -> u64 {
        self.body.as_ref().map_or(0, |body| body.range.end - body.range.start)
    }

    /// Whether everything is in the socket.
    pub fn is_done(&self) -> bool {
        self.head_sent == self.head.len() && self.left() == 0
    }

    /// Sends the next piece, and says how many bytes went. EAGAIN says that the socket has no room.
    /// After another error the connection must end: the peer is gone, or the object can't be read
    /// any more.
    pub fn advance(&mut self, to: BorrowedFd<'_>) -> Result<usize, Errno> {
        match self.call(to) {
            // The file is shorter than it was.
            Ok(0) if !self.is_done() => Err(Errno::IO),
            result => result,
        }
    }

    fn call(&mut self, to: BorrowedFd<'_>) -> Result<usize, Errno> {
        let body_follows = self.left() > 0;
        let copies = matches!(self.mode, Mode::Copy | Mode::Nt);
        if self.head_sent < self.head.len() && !(copies && body_follows) {
            let more = if body_follows { SendFlags::MORE } else { SendFlags::empty() };
            let head = &self.head[self.head_sent..];
            let sent = rustix::net::send(to, head, SendFlags::NOSIGNAL | more)?;
            self.head_sent += sent;
            return Ok(sent);
        }
        match self.mode {
            Mode::Auto | Mode::Copy => self.send_copied(to, Hint::Auto),
            Mode::Nt => self.send_copied(to, Hint::Nontemporal),
            Mode::Sendfile => self.send_file(to),
        }
    }

    /// **The send with the hint.** Head and body in one call, as long as there is head: a second
    /// call costs more than the few lines of a hinted head that the peer has to fetch from memory.
    fn send_copied(&mut self, to: BorrowedFd<'_>, hint: Hint) -> Result<usize, Errno> {
        let body = self.body.as_mut().ok_or(Errno::INVAL)?;
        let bytes = body.slice()?;
        let sent = if self.head_sent == self.head.len() {
            socket::send(to, bytes, SendFlags::NOSIGNAL, hint, self.support)?
        } else {
            let slices = [IoSlice::new(&self.head[self.head_sent..]), IoSlice::new(bytes)];
            let mut none = SendAncillaryBuffer::default();
            socket::sendmsg(to, &slices, &mut none, SendFlags::NOSIGNAL, hint, self.support)?
        };
        let of_head = sent.min(self.head.len() - self.head_sent);
        self.head_sent += of_head;
        body.range.start += (sent - of_head) as u64;
        Ok(sent)
    }

    fn send_file(&mut self, to: BorrowedFd<'_>) -> Result<usize, Errno> {
        let Body { object, range } = self.body.as_mut().ok_or(Errno::INVAL)?;
        let bytes = (range.end - range.start).min(CALL_BYTES as u64) as usize;
        // Moves the range's start by what it sent. A peer that is gone is EPIPE: the signal is
        // ignored.
        match rustix::fs::sendfile(to, &object.file, Some(&mut range.start), bytes) {
            // Not from this file system: then as any other bytes.
            Err(Errno::INVAL | Errno::NOSYS) => {
                self.mode = Mode::Copy;
                object.map(range);
                self.send_copied(to, Hint::Auto)
            }
            result => result,
        }
    }
}
