//! A client's connection: one exchange after the other, so that pipelined requests are answered
//! in order. While one is under way the next is not read: that is the client's back-pressure.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::ready;

use httpd::{Refusal, Reply, Request, parse_request};
use ntcopy::socket::enable;
use tokio::time::{Instant, timeout};

use crate::conn::Conn;
use crate::exchange::{Asked, Next, Timer, exchange};
use crate::forward::{Facts, write_request};
use crate::paths::admit;
use crate::request::Method;
use crate::tls;
use crate::worker::Worker;

/// A client's connection after its handshake.
struct Client {
    worker: Rc<Worker>,
    conn: httpd::Conn<Conn>,
    timer: Timer,
}

/// Serves a connection, from its first byte to its end.
pub(crate) async fn serve(worker: Rc<Worker>, conn: httpd::Conn) {
    // What is needed for a while only, is held for a while only: idle connections are many.
    let Some(mut client) = Box::pin(Client::open(worker, conn)).await else { return };
    loop {
        let Some(head) = client.head().await else { return };
        let asked = match client.understand(head) {
            Ok(asked) => asked,
            Err(answer) => return Box::pin(client.answer(answer)).await,
        };
        let is_head = asked.method == Method::Head;
        let Client { worker, conn, timer } = &mut client;
        match Box::pin(exchange(worker, conn, asked, timer)).await {
            Next::Keep => {}
            Next::Close => return,
            Next::Goodbye => return Box::pin(client.goodbye()).await,
            Next::Answer(error) => {
                let answer = Answer { status: error.status, text: error.to_string(), is_head };
                return Box::pin(client.answer(answer)).await;
            }
        }
    }
}

struct Answer {
    status: u16,
    text: String,
    is_head: bool,
}

impl Client {
    async fn open(worker: Rc<Worker>, conn: httpd::Conn) -> Option<Client> {
        let httpd::Conn { stream, input, peer, door, ticket } = conn;
        // Each of its sends is hinted from now on: for them the copy into the kernel is the last time
        // that this machine looks at the bytes.
        if let Some(setting) = worker.shared.hint
            && let Err(errno) = enable(&stream, setting)
        {
            tracing::debug!(%errno, "a connection is closed unserved");
            return None;
        }
        let stream = if worker.shared.is_tls(door) {
            let shared = &worker.shared;
            let accept = tls::accept(stream, shared.tls()?);
            let patience = shared.config.options.head_timeout;
            let Ok(Ok(conn)) = timeout(patience, accept).await else {
                worker.counters.handshakes_failed.up();
                return None;
            };
            conn
        } else {
            Conn::Plain(stream)
        };
        let conn = httpd::Conn { stream, input, peer, door, ticket };
        Some(Client { worker, conn, timer: Timer::default() })
    }

    /// The length of the next request's head, which is at the start of the input; `None` if the
    /// connection has ended.
    async fn head(&mut self) -> Option<Result<usize, Refusal>> {
        let head = self.conn.head(self.worker.shared.config.options.head_timeout).await;
        if head.is_none() {
            self.leave().await;
        }
        head
    }

    /// What is to be passed on of a request; or what answers it instead, and ends the connection
    /// with that, since where the next request would begin is anybody's guess.
    fn understand(&mut self, head: Result<usize, Refusal>) -> Result<Asked, Answer> {
        let started = Instant::now();
        let shared = &self.worker.shared;
        let input = &self.conn.input.bytes;
        let is_head = input.starts_with(b"HEAD ");
        let refuse = |refusal: Refusal, name: &str| self.refuse(refusal, is_head, name, started);
        let end = head.map_err(|refusal| refuse(refusal, ""))?;
        self.worker.counters.requests.up();
        let http = parse_request(&input[..end]);
        let http = http.map_err(|refusal| refuse(refusal, ""))?;
        let is_logged = tracing::enabled!(tracing::Level::DEBUG);
        let name = if is_logged { http.name() } else { String::new() };
        let refused = |refusal| refuse(refusal, &name);
        let method = Method::of(http.method).map_err(refused)?;
        if !shared.config.method.iter().any(|one| one == http.method) {
            let reason = "this method is not passed on here";
            return Err(refused(Refusal { status: 405, reason }));
        }
        admit(&shared.config.path, http.target.path).map_err(refused)?;
        let head = self.head_for_backend(&http);
        let asked = Asked {
            name,
            method,
            minor: http.minor,
            keep_alive: http.keep_alive,
            framing: http.framing,
            expects_continue: http.expects_continue,
            head,
            started,
        };
        self.conn.input.consume(end);
        Ok(asked)
    }

    fn head_for_backend(&self, request: &Request<'_>) -> Vec<u8> {
        let splice = self.worker.shared.splices(&self.conn.stream);
        let facts = Facts {
            client: self.conn.peer.map(|peer| peer.ip().to_canonical()),
            scheme: if self.worker.shared.is_tls(self.conn.door) { "https" } else { "http" },
            reader: if splice { "splice" } else { "cpu" },
        };
        let mut head = Vec::with_capacity(512);
        write_request(request, &facts, &mut head);
        head
    }

    /// Logs and counts an answer of the proxy itself.
    fn refuse(&self, refusal: Refusal, is_head: bool, name: &str, started: Instant) -> Answer {
        let Refusal { status, reason } = refusal;
        self.worker.counters.requests_refused.up();
        self.conn.ticket.counts().answered(status);
        let (client, us) = (self.conn.peer, started.elapsed().as_micros() as u64);
        tracing::debug!(?client, request = ?name, status, why = reason, us, "answered itself");
        Answer { status, text: reason.to_owned(), is_head }
    }

    async fn answer(mut self, answer: Answer) {
        let mut reply = Reply::new(answer.status, false);
        reply.field("Content-Type", "text/plain");
        if answer.status == 405 {
            reply.field("Allow", self.worker.shared.config.method.join(", "));
        }
        let reply = reply.end_with(format!("{}\n", answer.text).as_bytes(), answer.is_head);
        let mut left = &reply[..];
        let sent = poll_fn(|cx| {
            while !left.is_empty() {
                let bytes = ready!(self.conn.stream.poll_send(cx, left, false))?;
                left = &left[bytes..];
            }
            self.conn.stream.poll_flush(cx)
        });
        if let Ok(Ok(())) = timeout(self.worker.shared.config.options.body_timeout, sent).await {
            self.goodbye().await;
        }
    }

    /// Says that nothing more will be sent, and waits a little for the client's own end.
    async fn goodbye(mut self) {
        self.conn.input.clear();
        self.conn.stream.finish(self.worker.shared.config.options.body_timeout).await;
        self.conn.linger().await;
    }

    /// Ends a connection on which nothing is due in either direction. TLS wants that said; there is no
    /// wait beyond that.
    async fn leave(&mut self) {
        if self.conn.stream.is_encrypted() {
            self.conn.stream.finish(self.worker.shared.config.options.body_timeout).await;
        }
    }
}
