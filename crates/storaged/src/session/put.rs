//! A PUT: the loop reads its body, and threads that may wait for the disk write it.

use std::sync::Arc;

use httpd::{Body as Incoming, Conn, Framing, HEAD_BYTES, Pace, TimedOut, Turn};

use super::BROKEN;
use crate::answer::{Answer, Asked};
use crate::request::Request;
use crate::shared::{Shared, Work, Worker};
use crate::store::{StoreError, Upload};

/// Bytes that are read of a body at a time.
const READ_BYTES: u64 = 256 << 10;
/// From so many bytes on, what came of a body is written.
const WRITE_BYTES: usize = 64 << 10;
const TOO_LARGE: &str = "the object is too large (see --object-max)";

/// An upload, as long as no thread works on it.
struct Held<'a> {
    shared: &'a Shared,
    upload: Option<Upload>,
}

impl Held<'_> {
    /// Has what came of the body written; `None` if that met a mistake of the daemon's.
    async fn write(&mut self) -> Option<Result<(), StoreError>> {
        let mut upload = self.upload.take()?;
        let write = move || {
            let done = upload.write();
            (upload, done)
        };
        let (upload, done) = self.shared.wait(Work::Write, write).await?;
        self.upload = Some(upload);
        Some(done)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(upload) = self.upload.take() {
            self.shared.store.let_go(upload);
        }
    }
}

/// A PUT, and whom to answer.
pub(super) struct Put<'a> {
    pub(super) worker: &'a Worker,
    pub(super) conn: &'a mut Conn,
    pub(super) asked: Asked,
}

impl Put<'_> {
    /// The answer; `None` if the client is gone meanwhile.
    pub(super) async fn answer(mut self, key: String, request: &Request) -> Option<Answer> {
        let Put { worker, asked, .. } = self;
        let (shared, config) = (&worker.shared, &worker.shared.config);
        let length = if let Framing::Length(bytes) = request.framing { bytes } else { 0 };
        if length > config.object_max {
            return Some(self.last().error(413, TOO_LARGE));
        }
        let (store, Request { conditions, content_type, .. }) =
            (Arc::clone(&shared.store), request.clone());
        let begin = move || {
            // Looked at again when the object gets its name; this saves sending a body in vain.
            store.check(&key, &conditions)?;
            Upload::begin(store, key, content_type, length)
        };
        let mut held = match shared.wait(Work::Open, begin).await {
            Some(Ok(upload)) => Held { shared, upload: Some(upload) },
            Some(Err(error)) => return Some(worker.failed(self.last(), &error)),
            None => return Some(self.last().error(500, BROKEN)),
        };
        let mut body = Incoming::new(request.framing);
        if request.expects_continue && self.conn.input.is_empty() && !body.is_done() {
            self.conn.say(b"HTTP/1.1 100 Continue\r\n\r\n", config.send_timeout).await?;
        }
        if let Err(answer) = self.receive(&mut body, &mut held).await {
            return answer;
        }
        let (upload, conditions) = (held.upload.take()?, request.conditions.clone());
        let stored = shared.wait(Work::Change, move || upload.commit(&conditions)).await;
        Some(worker.done(asked, stored, |stored| asked.stored(&stored)))
    }

    /// Until the body is here, where the next request begins is not known.
    fn last(&self) -> Asked {
        Asked { keep_alive: false, ..self.asked }
    }

    /// Takes all of a body; the last of it may be pending then. An error is what to answer instead,
    /// or that the client is gone.
    async fn receive(
        &mut self,
        body: &mut Incoming,
        held: &mut Held<'_>,
    ) -> Result<(), Option<Answer>> {
        let (worker, last) = (self.worker, self.last());
        let Conn { input, stream, ticket, .. } = &mut *self.conn;
        let options = &worker.shared.config.options;
        let (mut pace, mut turn) = (Pace::new(options.body_timeout), Turn::default());
        while !body.is_done() {
            let upload = held.upload.as_mut().ok_or(None)?;
            let before = upload.bytes();
            let Ok(taken) = body.unframe(input, &mut upload.pending) else {
                return Err(Some(last.error(400, "the chunked body is malformed")));
            };
            if taken == 0 {
                // Little of what follows the body.
                let most = body.next_bytes().saturating_add(HEAD_BYTES as u64).min(READ_BYTES);
                match pace.within(input.fill(stream, most as usize)).await {
                    Ok(Ok(bytes)) if bytes > 0 => {}
                    Ok(_) => return Err(None),
                    Err(TimedOut) => {
                        ticket.counts().timeouts.up();
                        return Err(Some(last.error(408, "the body took too long")));
                    }
                }
                continue;
            }
            if upload.bytes() > worker.shared.config.object_max {
                return Err(Some(last.error(413, TOO_LARGE)));
            }
            worker.counters().received.add(upload.bytes() - before);
            pace.moved(taken as u64);
            if upload.pending.len() >= WRITE_BYTES && !body.is_done() {
                match held.write().await {
                    // The disk's time is not the client's.
                    Some(Ok(())) => pace.again(),
                    Some(Err(error)) => return Err(Some(worker.failed(last, &error))),
                    None => return Err(Some(last.error(500, BROKEN))),
                }
            }
            turn.moved(taken as u64).await;
        }
        Ok(())
    }
}
