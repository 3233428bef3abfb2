//! One connection, from its first byte to its end.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use httpd::{Body as Incoming, Conn, Framing, HEAD_BYTES, Pace, Refusal, TimedOut, Turn};
use ntcopy::socket::Support;
use percent_encoding::percent_decode_str;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::process::getppid;
use tokio::net::UnixStream;

use crate::answer::{Answer, Asked};
use crate::condition::{Current, Verdict};
use crate::key::key_of;
use crate::plan::plan;
use crate::request::{Method, Request, parse};
use crate::send::{Outgoing, Response, Set, choose};
use crate::shared::{Work, Worker};
use crate::store::{CONDITION, Query, Store, StoreError, Upload};

/// Bytes that are read of a body at a time.
const READ_BYTES: u64 = 256 << 10;
/// Most objects of one page of a list.
const LIST_MAX: usize = 1000;
const BROKEN: &str = "this request met a mistake of the daemon's";

/// Waits for a request, answers it, and again, until one is the last.
pub async fn session(worker: Rc<Worker>, mut conn: Conn) {
    let mut set = Set::NONE;
    loop {
        let patience = worker.shared.config.options.head_timeout;
        let Some(head) = conn.head(patience).await else { return };
        // What is needed for a while only, is held for a while only: idle connections are many.
        match Box::pin(exchange(&worker, &mut conn, &mut set, head)).await {
            Some(true) => {}
            Some(false) => break,
            None => return,
        }
    }
    conn.stream.end_sending();
    Box::pin(conn.linger()).await;
}

/// Answers what has come, and says whether another request may follow; `None` if the connection
/// can't go on.
async fn exchange(
    worker: &Worker,
    conn: &mut Conn,
    set: &mut Set,
    head: Result<usize, Refusal>,
) -> Option<bool> {
    let started = Instant::now();
    let is_head = conn.input.bytes.starts_with(b"HEAD ");
    let request = head.and_then(|bytes| {
        let request = parse(&conn.input.bytes[..bytes]);
        conn.input.consume(bytes);
        request
    });
    let (answer, cpu_reads, name) = match request {
        Ok(request) => {
            let answer = Box::pin(answer(worker, conn, &request)).await?;
            (answer, request.cpu_reads, request.name)
        }
        // Where it ends is not known.
        Err(Refusal { status, reason }) => {
            let asked = Asked { is_head, keep_alive: false };
            (asked.error(status, reason), false, String::new())
        }
    };
    let Answer { status, head, in_head, body, keep_alive } = answer;
    let body_bytes = body.as_ref().map_or(0, |body| body.range.end - body.range.start);
    let hints = worker.shared.hints != Support::None;
    let config = &worker.shared.config;
    let response = Response { bytes: body_bytes, cpu_reads, hints };
    let mode = choose(config.mode, config.min_bytes, response);
    let outgoing = Outgoing::new(head, body, mode, conn.stream.as_fd(), set);
    let sending = Sending { worker, conn, name, started, status, in_head, body_bytes, outgoing };
    sending.send().await.ok().map(|()| keep_alive)
}

impl Worker {
    /// The answer for an error of the store, which the log has.
    fn failed(&self, asked: Asked, error: &StoreError) -> Answer {
        let (status, why) = error.answer();
        match (error, status) {
            (_, 404 | 412) => tracing::debug!(%error),
            (StoreError::Damaged { .. }, _) => {
                self.counters().damaged.up();
                tracing::error!(%error, "a damaged object was asked for");
            }
            (_, 503 | 507) => tracing::warn!(%error),
            _ => tracing::error!(%error),
        }
        asked.error(status, why)
    }

    /// What the store found, answered; or why it did not.
    fn done<T>(
        &self,
        asked: Asked,
        result: Option<Result<T, StoreError>>,
        answer: impl FnOnce(T) -> Answer,
    ) -> Answer {
        match result {
            Some(Ok(found)) => answer(found),
            Some(Err(error)) => self.failed(asked, &error),
            None => asked.error(500, BROKEN),
        }
    }
}

/// Makes the answer, by way of the disk where need be; `None` if the client is gone meanwhile.
async fn answer(worker: &Worker, conn: &mut Conn, request: &Request) -> Option<Answer> {
    let shared = &worker.shared;
    let keep_alive = request.keep_alive && !conn.ticket.is_draining();
    let asked = Asked { is_head: request.method == Method::Head, keep_alive };
    let reads = matches!(request.method, Method::Get | Method::Head);
    if request.path == "/" && reads {
        // Who is behind a proxy can't be told: not every one says that it is one.
        if !shared.config.public_lists && !is_of_parent(conn) {
            return Some(asked.error(403, "the list of what is here is not public"));
        }
        return Some(match request.conditions.judge(Some(&Current::default())) {
            Verdict::Hold => list(worker, asked, request).await,
            Verdict::Fail => asked.error(412, CONDITION),
            Verdict::Known => asked.bare(304),
        });
    }
    // What the client sends behind a refused head is not looked for.
    let last = Asked { keep_alive: false, ..asked };
    // Part of an upload, a list of versions: elsewhere a query says what is to be changed.
    if !reads && request.query.is_some() {
        return Some(last.error(400, "a PUT or a DELETE here has no query"));
    }
    let key = match key_of(&request.path) {
        Ok(key) => key,
        Err(why) => return Some(last.error(400, why)),
    };
    match request.method {
        Method::Get | Method::Head => Some(get(worker, asked, key, request).await),
        // Apart from the others, which need much less.
        Method::Put => Box::pin(put(worker, conn, asked, key, request)).await,
        Method::Delete => {
            let (store, conditions) = (Arc::clone(&shared.store), request.conditions.clone());
            let gone = shared.wait(Work::Change, move || store.delete(&key, &conditions)).await;
            Some(worker.done(asked, gone, |()| asked.bare(204)))
        }
    }
}

/// Whether the process that started the daemon asks, as a test of it does: no proxy is that.
fn is_of_parent(conn: &Conn) -> bool {
    let peer = || {
        let socket = conn.stream.as_fd().try_clone_to_owned().ok()?;
        UnixStream::from_std(socket.into()).ok()?.peer_cred().ok()?.pid()
    };
    conn.peer.is_none() && getppid().is_some_and(|it| peer() == Some(it.as_raw_nonzero().get()))
}

async fn get(worker: &Worker, asked: Asked, key: String, request: &Request) -> Answer {
    let shared = &worker.shared;
    let object = match shared.store.cached(&key) {
        Some(object) => Some(Ok(object)),
        None => {
            let store = Arc::clone(&shared.store);
            shared.wait(Work::Open, move || store.get(&key)).await
        }
    };
    worker.done(asked, object, |object| asked.object(plan(request, &object.meta), &object))
}

async fn put(
    worker: &Worker,
    conn: &mut Conn,
    asked: Asked,
    key: String,
    request: &Request,
) -> Option<Answer> {
    const TOO_LARGE: &str = "the object is too large (see --object-max)";
    let (shared, config) = (&worker.shared, &worker.shared.config);
    // Until the body is here, where the next request begins is not known.
    let last = Asked { keep_alive: false, ..asked };
    let length = if let Framing::Length(bytes) = request.framing { bytes } else { 0 };
    if length > config.object_max {
        return Some(last.error(413, TOO_LARGE));
    }
    let (store, Request { conditions, content_type, .. }) =
        (Arc::clone(&shared.store), request.clone());
    let begin = move || {
        // Looked at again when the object gets its name; this saves sending a body in vain.
        store.check(&key, &conditions)?;
        Upload::begin(store, key, content_type, length)
    };
    let mut upload = match shared.wait(Work::Open, begin).await {
        Some(Ok(upload)) => upload,
        other => return Some(worker.done(last, other, |_: Upload| last.error(500, BROKEN))),
    };
    let mut body = Incoming::new(request.framing);
    if request.expects_continue && conn.input.is_empty() && !body.is_done() {
        conn.say(b"HTTP/1.1 100 Continue\r\n\r\n", config.send_timeout).await?;
    }
    let (mut pace, mut turn) = (Pace::new(config.options.body_timeout), Turn::default());
    while !body.is_done() {
        let mut content = Vec::new();
        let Ok(taken) = body.unframe(&mut conn.input, &mut content) else {
            return Some(last.error(400, "the chunked body is malformed"));
        };
        if taken == 0 {
            // Little of what follows the body.
            let most = body.next_bytes().saturating_add(HEAD_BYTES as u64).min(READ_BYTES);
            match pace.within(conn.input.fill(&mut conn.stream, most as usize)).await {
                Ok(Ok(bytes)) if bytes > 0 => {}
                Ok(_) => return None,
                Err(TimedOut) => {
                    conn.ticket.counts().timeouts.up();
                    return Some(last.error(408, "the body took too long"));
                }
            }
            continue;
        }
        if upload.bytes + content.len() as u64 > config.object_max {
            return Some(last.error(413, TOO_LARGE));
        }
        if !content.is_empty()
            && let Err(error) = upload.write(&content)
        {
            return Some(worker.failed(last, &error));
        }
        worker.counters().received.add(content.len() as u64);
        pace.moved(taken as u64);
        turn.moved(taken as u64).await;
    }
    let conditions = request.conditions.clone();
    let stored = shared.wait(Work::Change, move || upload.commit(&conditions)).await;
    Some(worker.done(asked, stored, |stored| asked.stored(&stored)))
}

async fn list(worker: &Worker, asked: Asked, request: &Request) -> Answer {
    let query = match list_query(request.query.as_deref().unwrap_or_default()) {
        Ok(query) => query,
        Err(why) => return Asked { keep_alive: false, ..asked }.error(400, why),
    };
    let store = Arc::clone(&worker.shared.store);
    let listed = worker.shared.wait(Work::List, move || list_page(&store, &query)).await;
    worker.done(asked, listed, |json| asked.page("application/json", &json))
}

fn list_query(text: &str) -> Result<Query, &'static str> {
    let mut query = Query { prefix: String::new(), after: String::new(), limit: LIST_MAX };
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8();
        let value = value.map_err(|_| "the query is not UTF-8")?.into_owned();
        match name {
            "prefix" => query.prefix = value,
            "after" => query.after = value,
            "limit" => {
                let limit = value.parse().ok().filter(|limit| (1..=LIST_MAX).contains(limit));
                query.limit = limit.ok_or("limit is a number, 1 to 1000")?;
            }
            _ => return Err("the query has prefix, after and limit, and nothing else"),
        }
    }
    Ok(query)
}

fn list_page(store: &Store, query: &Query) -> Result<Vec<u8>, StoreError> {
    let (objects, more) = store.list(query)?;
    let next = objects.last().filter(|_| more).map(|(key, _)| key);
    let object = |(key, meta): &(String, crate::store::Meta)| {
        serde_json::json!({
            "key": key,
            "bytes": meta.bytes,
            "etag": meta.etag(),
            "modified": httpd::http_date(meta.stored_at()),
        })
    };
    let objects: Vec<_> = objects.iter().map(object).collect();
    let json = serde_json::json!({ "objects": objects, "next": next }).to_string();
    Ok((json + "\n").into_bytes())
}

/// A response on its way out; counted and logged with its end, whatever brings that about.
struct Sending<'a> {
    worker: &'a Worker,
    conn: &'a mut Conn,
    /// What was asked for; empty if that is not known.
    name: String,
    started: Instant,
    status: u16,
    in_head: u64,
    body_bytes: u64,
    outgoing: Outgoing,
}

impl Sending<'_> {
    /// In as many pieces as the peer needs; an error if the connection can't go on.
    async fn send(mut self) -> Result<(), ()> {
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
    }
}
