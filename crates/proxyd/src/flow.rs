//! One direction of an exchange: what is left to read, what waits to be written, and the pipe
//! between, if the bytes are spliced.
//!
//! Order is kept by one rule: what waits in `out` goes before what is in the pipe, and while the
//! pipe holds bytes nothing is added to `out`.
//!
//! Chunked bodies are spliced too. Their framing has to be read, and what is read past it has to
//! be copied; a peek would cost a second look at the same bytes and a second call. Reads near
//! framing are therefore small (`FRAMING_READ_BYTES`): what they bring of the next chunk is copied,
//! and the rest of its inside, if it is large, is spliced.

use std::pin::pin;
use std::task::{Context, Poll, ready};

use httpd::splice::{Pipe, Pool};
use httpd::{Body, Event, Framing, Input, TURN_BYTES};
use rustix::io::Errno;

use crate::conn::{Conn, errno};

/// Bodies, and the insides of chunks, of at least this number of bytes are spliced: below, a copy
/// costs less than the two calls of a splice.
const SPLICE_MIN_BYTES: u64 = 16 << 10;
/// What may wait in memory for a slow reader: a record of TLS.
const OUT_BYTES: usize = 16 << 10;
/// The same where pipes have run out: connections are many then.
const CROWDED_BYTES: usize = 4 << 10;
/// A read that looks for framing, where what follows can be spliced.
const FRAMING_READ_BYTES: usize = 512;

/// A pipe that a slow sink draws from is filled again once this number of bytes is free in it, so
/// that the source sees how fast the sink is, and not how slowly a whole pipe empties.
const REFILL_BYTES: usize = 64 << 10;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FlowError {
    #[error("reading the body: {0}")]
    Source(Errno),
    #[error("closed in the middle of the body")]
    SourceEnded,
    #[error("closed")]
    Sink,
    #[error("{0}")]
    Chunk(&'static str),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    /// Everything was read and handed to the kernel.
    Done,
    /// It is another session's turn; nothing is in the way.
    Again,
}

#[derive(Debug)]
pub(crate) struct Flow {
    left: Body,
    /// Whether it is written in the chunks in which it came, without their extensions and trailers;
    /// else the payload alone.
    framed: bool,
    pub(crate) out: Input,
    pipe: Option<Pipe>,
    /// Whether it may splice: decided before the first byte, and only ever withdrawn.
    may_splice: bool,
    /// Bytes that the sink took, framing included.
    pub(crate) sent: u64,
    /// Bytes of the source's stream that are gone from it, framing included: none of them can be
    /// had a second time.
    pub(crate) consumed: u64,
    /// Bytes of the body that came through a pipe.
    pub(crate) spliced: u64,
    /// Bytes of the body that came through a buffer.
    pub(crate) copied: u64,
    /// Bytes that may wait in `out`.
    room: usize,
    /// Of the last chunk whose size was read.
    chunk_bytes: u64,
}

impl Flow {
    pub(crate) fn new() -> Flow {
        Flow {
            left: Body::Length(0),
            framed: false,
            out: Input::default(),
            pipe: None,
            may_splice: false,
            sent: 0,
            consumed: 0,
            spliced: 0,
            copied: 0,
            room: OUT_BYTES,
            chunk_bytes: SPLICE_MIN_BYTES,
        }
    }

    /// Gives it its body.
    pub(crate) fn start(&mut self, framing: Framing, framed: bool, may_splice: bool) {
        self.left = Body::new(framing);
        self.framed = framed;
        self.may_splice = may_splice;
    }

    /// Bytes of the body that were taken from the source.
    pub(crate) fn body_bytes(&self) -> u64 {
        self.spliced + self.copied
    }

    pub(crate) fn is_read(&self) -> bool {
        self.left.is_done()
    }

    pub(crate) fn release(&mut self, pipes: &mut Pool) {
        if let Some(pipe) = self.pipe.take() {
            pipes.put(pipe);
        }
    }

    /// Whether nothing of what was read waits for the sink.
    pub(crate) fn is_drained(&self) -> bool {
        self.out.is_empty() && self.held() == 0
    }

    /// Whether the pipe holds something, and takes more of the same. A chunked body's does not:
    /// what follows a chunk is framing, and goes another way.
    fn may_refill(&self) -> bool {
        let plain = matches!(self.left, Body::Length(_) | Body::UntilClose);
        let room = |pipe: &Pipe| pipe.held > 0 && pipe.held + REFILL_BYTES <= pipe.capacity;
        plain && self.out.is_empty() && self.pipe.as_ref().is_some_and(room)
    }

    fn held(&self) -> usize {
        self.pipe.as_ref().map_or(0, |pipe| pipe.held)
    }

    /// Moves what can be moved; pending while an event has to come first.
    pub(crate) fn poll_flow(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Conn,
        input: &mut Input,
        sink: &mut Conn,
        pipes: &mut Pool,
    ) -> Poll<Result<Pass, FlowError>> {
        let mut budget = TURN_BYTES;
        loop {
            let before = self.consumed;
            let filled = (self.held() == 0 || self.may_refill())
                && self.out.bytes.len() < self.room
                && (self.out.is_empty() || sink.socket().writable)
                && self.fill(cx, source, input, pipes)?;
            let flushed = self.flush(cx, sink)?;
            if self.is_read() && self.out.is_empty() && self.held() == 0 {
                ready!(sink.poll_flush(cx)).map_err(|_| FlowError::Sink)?;
                return Poll::Ready(Ok(Pass::Done));
            }
            if !filled && !flushed {
                return Poll::Pending;
            }
            budget = budget.saturating_sub(self.consumed - before + 1);
            if budget == 0 {
                return Poll::Ready(Ok(Pass::Again));
            }
        }
    }

    /// Writes what waits; true if any of it went.
    pub(crate) fn flush(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut Conn,
    ) -> Result<bool, FlowError> {
        let sent_before = self.sent;
        // What an encrypting layer still holds goes first, even if nothing follows yet.
        if let Poll::Ready(Err(_)) = sink.poll_flush(cx) {
            return Err(FlowError::Sink);
        }
        while !self.out.is_empty() {
            let more = self.held() > 0;
            let Poll::Ready(sent) = sink.poll_send(cx, &self.out.bytes, more) else {
                self.out.bytes.shrink_to_fit();
                return Ok(self.sent > sent_before);
            };
            let bytes = sent.map_err(|_| FlowError::Sink)?;
            self.out.consume(bytes);
            self.sent += bytes as u64;
        }
        while let Some(pipe) = self.pipe.as_mut().filter(|pipe| pipe.held > 0) {
            let Poll::Ready(moved) = sink.poll_splice_from(cx, pipe) else { break };
            self.sent += moved.map_err(|_| FlowError::Sink)? as u64;
        }
        Ok(self.sent > sent_before)
    }

    /// Reads once; true if there was anything. The pipe is empty, or takes more of the same.
    fn fill(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Conn,
        input: &mut Input,
        pipes: &mut Pool,
    ) -> Result<bool, FlowError> {
        if self.left.is_done() {
            return Ok(false);
        }
        if let Body::Chunked(_) = self.left {
            return self.fill_chunked(cx, source, input, pipes);
        }
        let left = self.left.next_bytes();
        if !input.is_empty() {
            self.take_buffered(input, left);
            return Ok(true);
        }
        if (self.held() > 0 || (self.may_splice && left >= SPLICE_MIN_BYTES))
            && let Some(moved) = self.splice(cx, source, left, pipes)?
        {
            return Ok(moved);
        }
        let room = self.room.saturating_sub(self.out.bytes.len());
        if room == 0 {
            return Ok(false);
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(room);
        let filled = pin!(self.out.fill(source, most)).poll(cx);
        match filled {
            Poll::Pending => Ok(false),
            Poll::Ready(came) => match came.map_err(|error| FlowError::Source(errno(&error)))? {
                0 => self.ended(),
                bytes => {
                    self.copied += bytes as u64;
                    self.took(bytes as u64);
                    Ok(true)
                }
            },
        }
    }

    /// Body bytes that came together with a head.
    fn take_buffered(&mut self, input: &mut Input, left: u64) {
        let take = input.bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        self.out.bytes.extend_from_slice(&input.bytes[..take]);
        input.consume(take);
        self.copied += take as u64;
        self.took(take as u64);
    }

    fn took(&mut self, bytes: u64) {
        self.consumed += bytes;
        self.left.took(bytes);
    }

    fn ended(&mut self) -> Result<bool, FlowError> {
        if !matches!(self.left, Body::UntilClose) {
            return Err(FlowError::SourceEnded);
        }
        self.left = Body::Length(0);
        Ok(true)
    }

    /// Splices up to `limit` bytes of payload into the pipe; `None` if that can't be had, and
    /// never will for this flow.
    fn splice(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Conn,
        limit: u64,
        pipes: &mut Pool,
    ) -> Result<Option<bool>, FlowError> {
        if self.pipe.is_none() {
            self.pipe = pipes.take();
        }
        let Some(pipe) = self.pipe.as_mut() else {
            (self.may_splice, self.room) = (false, CROWDED_BYTES);
            return Ok(None);
        };
        let was_empty = pipe.held == 0;
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match source.poll_splice_into(cx, pipe, limit) {
            Poll::Pending => Ok(Some(false)),
            // It is left for when what came before it is gone.
            Poll::Ready(Ok(0) | Err(_)) if !was_empty => Ok(Some(false)),
            Poll::Ready(Ok(0)) => self.ended().map(Some),
            Poll::Ready(Ok(bytes)) => {
                self.spliced += bytes as u64;
                self.took(bytes as u64);
                Ok(Some(true))
            }
            Poll::Ready(Err(errno)) => Err(FlowError::Source(errno)),
        }
    }

    fn fill_chunked(
        &mut self,
        cx: &mut Context<'_>,
        source: &mut Conn,
        input: &mut Input,
        pipes: &mut Pool,
    ) -> Result<bool, FlowError> {
        let decoded = self.decode(input)?;
        if self.left.is_done() || (decoded && self.out.bytes.len() >= self.room) {
            return Ok(true);
        }
        let inside = self.left.next_bytes();
        if self.may_splice
            && input.is_empty()
            && inside >= SPLICE_MIN_BYTES
            && let Some(moved) = self.splice(cx, source, inside, pipes)?
        {
            return Ok(moved || decoded);
        }
        // Behind a small chunk is another, most likely.
        let wanted = if self.may_splice && self.chunk_bytes >= SPLICE_MIN_BYTES {
            inside.min(self.room as u64) as usize + FRAMING_READ_BYTES
        } else {
            self.room
        };
        // What could not be decoded is the beginning of a line, and short.
        let filled = pin!(input.fill(source, wanted)).poll(cx);
        match filled {
            Poll::Pending => Ok(decoded),
            Poll::Ready(Ok(0)) => Err(FlowError::SourceEnded),
            Poll::Ready(Ok(_)) => {
                self.decode(input)?;
                Ok(true)
            }
            Poll::Ready(Err(error)) => Err(FlowError::Source(errno(&error))),
        }
    }

    /// Decodes what has come, as far as there is room for it; true if there was anything.
    fn decode(&mut self, input: &mut Input) -> Result<bool, FlowError> {
        let Body::Chunked(chunks) = &mut self.left else { return Ok(false) };
        let (out, framed, mut used) = (&mut self.out.bytes, self.framed, 0);
        while out.len() < self.room && !chunks.is_done() {
            let rest = &input.bytes[used..];
            if framed {
                let (taken, content) = chunks.plain(&rest[..rest.len().min(self.room - out.len())]);
                out.extend_from_slice(&rest[..taken]);
                self.copied += content as u64;
                used += taken;
                if taken > 0 {
                    self.chunk_bytes = 0;
                    continue;
                }
            }
            let (taken, event) = chunks.next(rest).map_err(FlowError::Chunk)?;
            used += taken;
            match event {
                Event::More => break,
                Event::Data(bytes) => {
                    out.extend_from_slice(&rest[..bytes]);
                    self.copied += bytes as u64;
                }
                Event::Size(size) => {
                    self.chunk_bytes = size;
                    if framed {
                        write_size(size, out);
                    }
                }
                Event::ChunkEnd if framed => out.extend_from_slice(b"\r\n"),
                Event::End if framed => out.extend_from_slice(b"0\r\n\r\n"),
                Event::ChunkEnd | Event::End => {}
            }
        }
        self.consumed += used as u64;
        if used > 0 {
            input.consume(used);
        }
        Ok(used > 0)
    }
}

/// The line of a chunk. A body of crumbs has a million of them, which `write!` makes dear.
fn write_size(size: u64, out: &mut Vec<u8>) {
    let digits = (u64::BITS - size.leading_zeros()).div_ceil(4);
    let digit = |at: u32| b"0123456789abcdef"[(size >> (4 * at)) as usize % 16];
    out.extend((0..digits).rev().map(digit));
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
#[path = "flow_tests.rs"]
mod tests;
