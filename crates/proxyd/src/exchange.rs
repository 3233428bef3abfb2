//! One request and its answer. Both directions run at once: a backend may answer before it has
//! read the whole request.
//!
//! [`exchange`] is all of it: a connection to the backend ([`Exchange::connect`]), then both
//! directions in turns ([`Exchange::poll_pass`]) until the answer has passed, and once more on
//! another connection where nothing was lost by the first. How it ends is in `outcome`.

mod outcome;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};

use httpd::{Framing, HEAD_BYTES, Pace, unacknowledged};
use rustix::io::Errno;
use tokio::time::{Instant, Sleep, sleep_until};

use self::outcome::{CLIENT_GONE, Error, Side};
use crate::conn::Conn;
use crate::flow::{Flow, FlowError, Pump};
use crate::forward::write_response;
use crate::request::Method;
use crate::response::{Response, parse_response};
use crate::upstreams::{Unavailable, Upstream};
use crate::worker::Worker;

/// The first read of an answer where its body can be spliced: most heads fit, and what comes
/// with them has to be copied.
const HEAD_READ_BYTES: usize = 1 << 10;
/// Interim answers that a backend may give to one request. No request needs more than a few, and
/// without a limit a backend could go on for ever.
const INTERIMS_MAX: u32 = 16;

/// A request, as far as an exchange needs it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Method and target, for the log.
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) minor: u8,
    /// Whether the client wants to keep its connection.
    pub(crate) keep_alive: bool,
    pub(crate) framing: Framing,
    /// Whether the client waits for a 100 before it sends the body.
    pub(crate) expects_continue: bool,
    /// The head for the backend.
    pub(crate) head: Vec<u8>,
    pub(crate) started: Instant,
}

#[derive(Debug)]
pub(crate) enum Next {
    Keep,
    /// Nothing more is sent.
    Goodbye,
    Close,
    /// The proxy answers itself, and the connection ends with that.
    Answer(Error),
}

/// A client's timer, made when it is first needed.
#[derive(Debug, Default)]
pub(crate) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline != sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        sleep.as_mut().poll(cx)
    }
}

struct Exchange<'x> {
    worker: &'x Worker,
    client: &'x mut httpd::Conn<Conn>,
    timer: &'x mut Timer,
    asked: Asked,
    request: Flow,
    response: Flow,
    pace: Pace,
    /// Bytes that had moved anywhere, and those of the client's side, when that was looked at.
    moved: u64,
    seen: u64,
    /// When this try began.
    began: Instant,
    /// Whether the backend's connection had served before.
    reused: bool,
    /// When the request was sent, or given up.
    sent_at: Option<Instant>,
    /// The backend takes no more of the request, but may still answer.
    broken: bool,
    /// The backend has said something.
    heard: bool,
    interims: u32,
    /// A 100 was among them.
    continued: bool,
    /// The status, once the final head is there.
    status: Option<u16>,
    keep_client: bool,
    keep_backend: bool,
    until_close: bool,
    recorded: bool,
}

/// Passes a request on, and its answer back.
pub(crate) async fn exchange(
    worker: &Worker,
    client: &mut httpd::Conn<Conn>,
    asked: Asked,
    timer: &mut Timer,
) -> Next {
    let mut exchange = Exchange {
        worker,
        client,
        timer,
        request: Flow::new(),
        response: Flow::new(),
        pace: Pace::new(worker.shared.config.options.body_timeout),
        moved: 0,
        seen: 0,
        began: asked.started,
        reused: false,
        sent_at: None,
        broken: false,
        heard: false,
        interims: 0,
        continued: false,
        status: None,
        keep_client: asked.keep_alive,
        keep_backend: false,
        until_close: false,
        recorded: false,
        asked,
    };
    let mut reuse = true;
    loop {
        let error = match exchange.attempt(reuse).await {
            Ok(upstream) => return exchange.complete(upstream),
            Err(error) if error.status == CLIENT_GONE => return exchange.client_is_gone(error),
            Err(error) => error,
        };
        if !exchange.may_repeat(&error) {
            return exchange.fail(error);
        }
        worker.counters.backend_retries.up();
        // A connection that failed may have had sisters that are as dead: the next is new.
        reuse = false;
    }
}

impl Exchange<'_> {
    /// One try, on one connection.
    async fn attempt(&mut self, reuse: bool) -> Result<Upstream, Error> {
        let mut upstream = self.connect(reuse).await?;
        self.rewind(upstream.reused);
        while poll_fn(|cx| self.poll_pass(cx, &mut upstream)).await? == Pump::Again {
            tokio::task::yield_now().await;
        }
        Ok(upstream)
    }

    async fn connect(&mut self, reuse: bool) -> Result<Upstream, Error> {
        self.reused = false;
        let uploads = match self.asked.framing {
            Framing::Length(bytes) => bytes > self.client.input.bytes.len() as u64,
            framing => framing == Framing::Chunked,
        };
        let got = loop {
            let client = self.client.stream.socket_mut();
            // What is needed for a while only, is held for a while only.
            let get = Box::pin(self.worker.upstreams.get(reuse, uploads));
            let got = tokio::select! {
                biased;
                () = poll_fn(|cx| client.poll_hung_up(cx)) => return Err(Error::gone()),
                got = get => got,
            };
            match got {
                Err(Unavailable::Here(Errno::MFILE | Errno::NFILE))
                    if self.client.ticket.make_room().await => {}
                got => break got,
            }
        };
        got.map_err(|unavailable| {
            let to = &self.worker.shared.config.backend;
            let why = format!("cannot connect: {to}: {unavailable}");
            match unavailable {
                Unavailable::Taken => Error::new(Side::Proxy, 503, unavailable.to_string()),
                Unavailable::Here(_) => Error::new(Side::Proxy, 500, why),
                Unavailable::Unknown | Unavailable::Refused(_) => {
                    Error::new(Side::Backend, 503, why)
                }
            }
        })
    }

    /// A try begins: nothing has been sent, and nothing of the body consumed, or its rest would be
    /// taken for its beginning.
    fn rewind(&mut self, reused: bool) {
        let (worker, framing) = (self.worker, self.asked.framing);
        debug_assert_eq!(self.request.consumed, 0, "a request is not begun again in its middle");
        debug_assert!(!self.heard, "nor once it is being answered");
        self.request.release(&mut worker.pipes.borrow_mut());
        self.request = Flow::new();
        self.request.out.bytes.extend_from_slice(&self.asked.head);
        let may_splice = worker.shared.splices(&self.client.stream);
        self.request.start(framing, framing == Framing::Chunked, may_splice);
        (self.reused, self.sent_at, self.broken) = (reused, None, false);
        self.began = Instant::now();
        self.pace.again();
    }

    /// Both directions, as far as they come; pending while an event has to come first.
    fn poll_pass(&mut self, cx: &mut Context<'_>, up: &mut Upstream) -> Poll<Result<Pump, Error>> {
        if self.client.stream.socket_mut().poll_hung_up(cx).is_ready() {
            return Poll::Ready(Err(Error::gone()));
        }
        let sending = self.poll_request(cx, &mut up.conn)?;
        if self.sent_at.is_some() {
            up.upload = None;
        }
        // Its end ends the exchange also before the request is done: the backend has said all that it
        // will.
        match (self.poll_answer(cx, up)?, sending) {
            (Poll::Ready(pump), _) => Poll::Ready(Ok(pump)),
            (Poll::Pending, Poll::Ready(())) => Poll::Ready(Ok(Pump::Again)),
            (Poll::Pending, Poll::Pending) => self.poll_too_slow(cx),
        }
    }

    /// Client to backend; ready where there is more to do at once.
    fn poll_request(&mut self, cx: &mut Context<'_>, up: &mut Conn) -> Poll<Result<(), Error>> {
        if self.sent_at.is_some() {
            return Poll::Pending;
        }
        let mut pipes = self.worker.pipes.borrow_mut();
        // If the backend has closed a connection that served before, its head alone tells, while all
        // of the body is still there for another.
        let head_alone = self.reused && self.request.consumed == 0;
        let flushed = if head_alone { self.request.flush(cx, up) } else { Ok(true) };
        let httpd::Conn { stream, input, .. } = &mut *self.client;
        let sent = match flushed {
            Ok(_) => self.request.poll_pump(cx, stream, input, up, &mut pipes),
            Err(error) => Poll::Ready(Err(error)),
        };
        match ready!(sent) {
            Ok(Pump::Again) => return Poll::Ready(Ok(())),
            Ok(Pump::Done) => self.request.release(&mut pipes),
            // A backend may close its ears once it knows its answer: the answer counts.
            Err(FlowError::Sink) => self.broken = true,
            Err(FlowError::Source(_)) => return Poll::Ready(Err(Error::gone())),
            Err(error) => {
                return Poll::Ready(Err(Error::new(Side::Client, 400, error.to_string())));
            }
        }
        self.sent_at = Some(Instant::now());
        Poll::Pending
    }

    /// Backend to client: heads, then the body.
    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        up: &mut Upstream,
    ) -> Poll<Result<Pump, Error>> {
        while self.status.is_none() {
            let end = ready!(self.poll_head(cx, up))?;
            match parse_response(&up.input.bytes[..end], self.asked.method) {
                Ok(response) if response.is_interim() => self.pass_interim(&response)?,
                Ok(response) => self.accept(&response),
                Err(error) => return Poll::Ready(Err(self.bad_answer(error))),
            }
            up.input.consume(end);
        }
        let mut pipes = self.worker.pipes.borrow_mut();
        let Upstream { conn, input, .. } = up;
        let pump =
            ready!(self.response.poll_pump(cx, conn, input, &mut self.client.stream, &mut pipes));
        Poll::Ready(pump.map_err(|error| match error {
            FlowError::Sink => Error::gone(),
            error => Error::new(Side::Backend, 502, error.to_string()),
        }))
    }

    /// Waits for a head of the answer, and says how long it is.
    fn poll_head(&mut self, cx: &mut Context<'_>, up: &mut Upstream) -> Poll<Result<usize, Error>> {
        loop {
            match up.input.find_head() {
                Ok(Some(end)) => return Poll::Ready(Ok(end)),
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(self.bad_answer(error.reason))),
            }
            // As long as the client takes no more, no more is taken from the backend.
            if self.passed_interim() {
                match self.response.flush(cx, &mut self.client.stream) {
                    Err(_) => return Poll::Ready(Err(Error::gone())),
                    Ok(_) if self.response.out.is_empty() => {}
                    Ok(_) => return Poll::Pending,
                }
            }
            let splices = self.worker.shared.splices(&self.client.stream);
            let first = splices && up.input.is_empty();
            let most = if first { HEAD_READ_BYTES } else { HEAD_BYTES };
            match ready!(pin!(up.input.fill(&mut up.conn, most)).poll(cx)) {
                Ok(0) => return Poll::Ready(Err(self.no_answer(None))),
                Ok(_) => {
                    self.heard = true;
                    self.pace.again();
                }
                Err(error) => {
                    return Poll::Ready(Err(self.no_answer(Errno::from_io_error(&error))));
                }
            }
        }
    }

    /// Another head follows; HTTP/1.0 knows no interim answers, its clients don't see them.
    fn pass_interim(&mut self, response: &Response<'_>) -> Result<(), Error> {
        self.interims += 1;
        self.continued |= response.status == 100;
        if self.interims > INTERIMS_MAX {
            return Err(self.bad_answer("more than 16 interim answers"));
        }
        if self.passed_interim() {
            write_response(response, 1, true, &mut self.response.out.bytes);
        }
        Ok(())
    }

    fn passed_interim(&self) -> bool {
        self.interims > 0 && self.asked.minor > 0
    }

    /// Takes up the final head.
    fn accept(&mut self, response: &Response<'_>) {
        let minor = self.asked.minor;
        self.until_close = response.framing == Framing::UntilClose
            || (response.framing == Framing::Chunked && minor == 0);
        // While the request isn't read to its end, where the next begins is not known.
        self.keep_client &= self.request.is_read()
            && !self.broken
            && !self.until_close
            && !self.client.ticket.is_draining();
        self.keep_backend = response.keep_alive;
        self.status = Some(response.status);
        let framed = response.framing == Framing::Chunked && minor > 0;
        write_response(response, minor, self.keep_client, &mut self.response.out.bytes);
        let may_splice = self.worker.shared.splices(&self.client.stream);
        self.response.start(response.framing, framed, may_splice);
    }

    /// Whether whoever is waited for has taken too long; ready where another look is worth it.
    fn poll_too_slow(&mut self, cx: &mut Context<'_>) -> Poll<Result<Pump, Error>> {
        self.look_at_progress();
        let deadline = match self.sent_at {
            Some(sent) if self.status.is_none() => sent + self.worker.shared.config.answer_timeout,
            None if self.is_backend_to_continue() => {
                self.began + self.worker.shared.config.answer_timeout
            }
            _ => self.pace.until,
        };
        ready!(self.timer.poll(cx, deadline));
        if !self.client_still_takes() {
            self.client.ticket.counts().timeouts.up();
            return Poll::Ready(Err(self.timeout()));
        }
        self.pace.again();
        self.client.stream.socket_mut().writable = true;
        Poll::Ready(Ok(Pump::Again))
    }

    /// The client waits for a 100, and the backend, which has the head, has not said it.
    fn is_backend_to_continue(&self) -> bool {
        let untouched = self.request.consumed == 0 && self.request.is_drained();
        let waits = self.asked.expects_continue && !self.continued && self.status.is_none();
        self.sent_at.is_none() && waits && untouched
    }

    /// Bytes of the answer that the client's socket took.
    fn taken(&self) -> u64 {
        if self.client.stream.is_encrypted() {
            self.client.stream.socket().written
        } else {
            self.response.sent
        }
    }

    /// Progress restarts the timer of the side that is waited for: any byte of the backend, for it
    /// may be at work on the next; of the client no fewer than the least.
    fn look_at_progress(&mut self) {
        let (request, response) = (&self.request, &self.response);
        let moved = request.sent + response.sent + request.body_bytes() + response.body_bytes();
        let moved = moved + self.client.stream.socket().written;
        if std::mem::replace(&mut self.moved, moved) == moved {
            return;
        }
        let (waits_for_client, bytes) = match self.sent_at {
            None => (request.is_drained(), request.consumed),
            Some(_) => (!response.is_drained(), self.taken()),
        };
        let since = bytes.abs_diff(std::mem::replace(&mut self.seen, bytes));
        if waits_for_client { self.pace.moved(since) } else { self.pace.again() }
    }

    /// Whether a client of whom no event came takes enough of an answer all the same.
    fn client_still_takes(&mut self) -> bool {
        let waits = self.status.is_some() && !self.response.is_drained();
        let taken = self.taken().saturating_sub(unacknowledged(self.client.stream.socket()));
        waits && self.pace.take(taken).is_ok()
    }
}
