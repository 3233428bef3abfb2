//! Sends an answer, and says what became of it.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;

use httpd::{Conn, Pace, TimedOut, Turn};
use rustix::fd::AsFd;
use rustix::io::Errno;

use crate::send::Outgoing;
use crate::shared::Worker;

/// A response on its way out; counted and logged with its end, whatever brings that about.
pub(super) struct Sending<'a> {
    pub(super) worker: &'a Worker,
    pub(super) conn: &'a mut Conn,
    /// What was asked for; empty if that is not known.
    pub(super) name: String,
    pub(super) started: Instant,
    pub(super) status: u16,
    pub(super) in_head: u64,
    pub(super) body_bytes: u64,
    pub(super) outgoing: Outgoing,
}

impl Sending<'_> {
    /// In as many pieces as the peer needs; an error if the connection can't go on.
    pub(super) async fn send(mut self) -> Result<(), ()> {
        let patience = self.worker.shared.config.send_timeout;
        let (mut pace, mut sent, mut turn) = (Pace::new(patience), 0, Turn::default());
        while !self.outgoing.is_done() {
            let socket = Arc::clone(self.conn.stream.socket());
            let (stream, outgoing) = (&mut self.conn.stream, &mut self.outgoing);
            let room = poll_fn(|cx| stream.poll_out(cx, |to| outgoing.advance(to.as_fd())));
            match pace.drained(socket, sent, room).await {
                Ok(Ok(bytes)) => {
                    sent += bytes as u64;
                    pace.moved(bytes as u64);
                    turn.moved(bytes as u64).await;
                }
                Ok(Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN)) => return Err(()),
                Ok(Err(errno)) => {
                    tracing::error!(request = ?self.name, %errno, "a response was cut off");
                    return Err(());
                }
                Err(TimedOut) => {
                    self.conn.ticket.counts().timeouts.up();
                    return Err(());
                }
            }
        }
        Ok(())
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let counters = self.worker.counters();
        self.conn.ticket.counts().answered(self.status);
        let is_whole = self.outgoing.is_done();
        if !is_whole {
            counters.aborted.up();
        }
        let (mode, sent) = (self.outgoing.mode, self.body_bytes - self.outgoing.left());
        if self.body_bytes > 0 {
            counters.sent(mode, sent);
        }
        tracing::debug!(
            peer = ?self.conn.peer,
            request = ?self.name,
            status = self.status,
            body_bytes = sent + self.in_head,
            us = self.started.elapsed().as_micros() as u64,
            mode = (self.body_bytes > 0).then(|| tracing::field::debug(mode)),
            whole = is_whole,
            "answered"
        );
        if let Some(object) = self.outgoing.take_object() {
            self.worker.shared.store.release(object);
        }
    }
}
