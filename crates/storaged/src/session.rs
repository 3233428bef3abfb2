//! One connection, from its first byte to its end.

mod list;
mod put;
mod sending;

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use httpd::{Conn, Refusal};
use ntcopy::socket::Support;
use rustix::fd::AsFd;
use rustix::process::getppid;
use tokio::net::UnixStream;

use self::list::list;
use self::put::Put;
use self::sending::Sending;
use crate::answer::{Answer, Asked};
use crate::condition::{Current, Verdict};
use crate::key::key_of;
use crate::plan::plan;
use crate::request::{Method, Request, parse};
use crate::send::{Mode, Outgoing, Response, Set, choose};
use crate::shared::{Work, Worker};
use crate::store::{CONDITION, StoreError};

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
    // What `sendfile` sends needs no mapping.
    if let Some(body) = body.as_ref().filter(|_| mode != Mode::Sendfile)
        && !body.object.is_mapped(&body.range)
    {
        let (object, range) = (Arc::clone(&body.object), body.range.clone());
        worker.shared.wait(Work::Open, move || object.map(&range)).await;
    }
    let mut outgoing = Outgoing::new(head, body, mode);
    outgoing.set_up(conn.stream.as_fd(), set);
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
        Method::Put => Box::pin(Put { worker, conn, asked }.answer(key, request)).await,
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
    worker.done(asked, object, |object| {
        let (status, range) = plan(request, &object.meta);
        let answer = asked.object(status, range, &object);
        shared.store.release(object);
        answer
    })
}
