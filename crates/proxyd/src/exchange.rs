//! One request and its answer. Both directions run at once: a backend may answer before it has
//! read the whole request.
//!
//! [`exchange`] is all of it: a connection to the backend ([`Exchange::connect`]), then both
//! directions in turns ([`Exchange::poll_pass`]) until the answer has passed, and once more on
//! another connection where nothing was lost by the first. Where each direction stands is a state:
//! [`Sending`], [`Answer`]. How long each is waited for is in `patience`, how it ends in `outcome`.

mod outcome;
mod patience;

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Context, Poll, ready};

use httpd::{Framing, HEAD_BYTES};
use rustix::io::Errno;
use tokio::time::Instant;

use self::outcome::{Error, Side};
use self::patience::Progress;
pub(crate) use self::patience::Timer;
use crate::conn::Conn;
use crate::flow::{Flow, FlowError, Pass};
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
/// What is read at a time of what is thrown away.
const THROWN_BYTES: usize = 64 << 10;

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

/// Where the request stands, in this try.
#[derive(Debug, Clone, Copy)]
enum Sending {
    /// It is on its way, since then.
    Begun(Instant),
    /// The backend has all of it, since then.
    Sent(Instant),
    /// The backend takes no more of it, since then, but may still answer.
    Refused(Instant),
}

/// Where the answer stands.
#[derive(Debug, Clone, Copy)]
enum Answer {
    /// Its final head is to come.
    Awaited(Awaited),
    /// It is on its way.
    Begun(Begun),
    /// It is counted and logged, or what came in its place is.
    Over,
}

#[derive(Debug, Clone, Copy, Default)]
struct Awaited {
    /// The backend has said something.
    heard: bool,
    interims: u32,
    /// A 100 was among them.
    continued: bool,
}

#[derive(Debug, Clone, Copy)]
struct Begun {
    status: u16,
    keep_client: bool,
    keep_backend: bool,
    until_close: bool,
}

struct Exchange<'x> {
    worker: &'x Worker,
    client: &'x mut httpd::Conn<Conn>,
    timer: &'x mut Timer,
    asked: Asked,
    request: Flow,
    sending: Sending,
    response: Flow,
    answer: Answer,
    progress: Progress,
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
        sending: Sending::Begun(asked.started),
        response: Flow::new(),
        answer: Answer::Awaited(Awaited::default()),
        progress: Progress::new(worker.shared.config.options.body_timeout),
        asked,
    };
    let mut reuse = true;
    loop {
        let upstream = match exchange.connect(reuse).await {
            Ok(upstream) => upstream,
            Err(error) => return exchange.fail(error),
        };
        let reused = upstream.reused;
        match exchange.attempt(upstream).await {
            Ok(upstream) => return exchange.complete(upstream),
            Err(error) if reused && exchange.may_repeat(&error) => {}
            Err(error) => return exchange.fail(error),
        }
        worker.counters.backend_retries.up();
        // A connection that failed may have had sisters that are as dead: the next is new.
        reuse = false;
    }
}

impl Exchange<'_> {
    /// One try, on one connection.
    async fn attempt(&mut self, mut upstream: Upstream) -> Result<Upstream, Error> {
        self.rewind();
        while poll_fn(|cx| self.poll_pass(cx, &mut upstream)).await? == Pass::Again {
            tokio::task::yield_now().await;
        }
        Ok(upstream)
    }

    async fn connect(&mut self, reuse: bool) -> Result<Upstream, Error> {
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
                Unavailable::Refused(_) => Error::new(Side::Backend, 503, why),
            }
        })
    }

    /// A try begins: nothing has been sent, and nothing of the body consumed, or its rest would be
    /// taken for its beginning.
    fn rewind(&mut self) {
        let (worker, framing) = (self.worker, self.asked.framing);
        debug_assert_eq!(self.request.consumed, 0, "a request is not begun again in its middle");
        debug_assert!(!self.is_heard(), "nor once it is being answered");
        self.request.release(&mut worker.pipes.borrow_mut());
        self.request = Flow::new();
        self.request.out.bytes.extend_from_slice(&self.asked.head);
        let may_splice = worker.shared.splices(&self.client.stream);
        self.request.start(framing, framing == Framing::Chunked, may_splice);
        self.sending = Sending::Begun(Instant::now());
        self.progress.pace.again();
    }

    /// Both directions, as far as they come; pending while an event has to come first.
    fn poll_pass(&mut self, cx: &mut Context<'_>, up: &mut Upstream) -> Poll<Result<Pass, Error>> {
        if self.client.stream.socket_mut().poll_hung_up(cx).is_ready() {
            return Poll::Ready(Err(Error::gone()));
        }
        let sending = self.poll_request(cx, up)?;
        // Its end ends the exchange also before the request is done: the backend has said all that it
        // will.
        match (self.poll_answer(cx, up)?, sending) {
            (Poll::Ready(passed), _) => Poll::Ready(Ok(passed)),
            (Poll::Pending, Poll::Ready(())) => Poll::Ready(Ok(Pass::Again)),
            (Poll::Pending, Poll::Pending) => self.poll_too_slow(cx),
        }
    }

    /// Client to backend; ready where there is more to do at once.
    fn poll_request(&mut self, cx: &mut Context<'_>, up: &mut Upstream) -> Poll<Result<(), Error>> {
        match self.sending {
            Sending::Begun(_) => {}
            Sending::Sent(_) => return Poll::Pending,
            Sending::Refused(_) => return self.poll_throw_away(cx).map(Ok),
        }
        let mut pipes = self.worker.pipes.borrow_mut();
        // If the backend has closed a connection that served before, its head alone tells, while all
        // of the body is still there for another.
        let head_alone = up.reused && self.request.consumed == 0;
        let flushed = if head_alone { self.request.flush(cx, &mut up.conn) } else { Ok(true) };
        let httpd::Conn { stream, input, .. } = &mut *self.client;
        let sent = match flushed {
            Ok(_) => self.request.poll_flow(cx, stream, input, &mut up.conn, &mut pipes),
            Err(error) => Poll::Ready(Err(error)),
        };
        match ready!(sent) {
            Ok(Pass::Again) => Poll::Ready(Ok(())),
            Ok(Pass::Done) => {
                self.request.release(&mut pipes);
                self.sending = Sending::Sent(Instant::now());
                up.upload = None;
                Poll::Pending
            }
            // A backend may close its ears once it knows its answer: the answer counts.
            Err(FlowError::Sink) => {
                self.sending = Sending::Refused(Instant::now());
                up.upload = None;
                Poll::Ready(Ok(()))
            }
            Err(FlowError::Source(_)) => Poll::Ready(Err(Error::gone())),
            Err(error) => Poll::Ready(Err(Error::new(Side::Client, 400, error.to_string()))),
        }
    }

    /// Throws away what the client sends of a request that the backend takes no more of, for it may
    /// read no answer before all of it is sent; ready where there may be more at once.
    fn poll_throw_away(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let httpd::Conn { stream, input, .. } = &mut *self.client;
        input.clear();
        match ready!(pin!(input.fill(stream, THROWN_BYTES)).poll(cx)) {
            Ok(1..) => Poll::Ready(()),
            // Its end, which comes again.
            Ok(0) | Err(_) => Poll::Pending,
        }
    }

    /// Backend to client: heads, then the body.
    fn poll_answer(
        &mut self,
        cx: &mut Context<'_>,
        up: &mut Upstream,
    ) -> Poll<Result<Pass, Error>> {
        while let Answer::Awaited(awaited) = self.answer {
            let end = ready!(self.poll_head(cx, up))?;
            match parse_response(&up.input.bytes[..end], self.asked.method) {
                Ok(response) if response.is_interim() => self.pass_interim(&response, awaited)?,
                Ok(response) => self.accept(&response),
                Err(error) => return Poll::Ready(Err(self.bad_answer(error))),
            }
            up.input.consume(end);
        }
        let mut pipes = self.worker.pipes.borrow_mut();
        let Upstream { conn, input, .. } = up;
        let passed =
            ready!(self.response.poll_flow(cx, conn, input, &mut self.client.stream, &mut pipes));
        Poll::Ready(passed.map_err(|error| match error {
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
                Ok(_) => self.hear(),
                Err(error) => {
                    return Poll::Ready(Err(self.no_answer(Errno::from_io_error(&error))));
                }
            }
        }
    }

    /// The backend has said something.
    fn hear(&mut self) {
        if let Answer::Awaited(awaited) = &mut self.answer {
            awaited.heard = true;
        }
        self.progress.pace.again();
    }

    /// Another head follows; HTTP/1.0 knows no interim answers, its clients don't see them.
    fn pass_interim(&mut self, response: &Response<'_>, before: Awaited) -> Result<(), Error> {
        let interims = before.interims + 1;
        if interims > INTERIMS_MAX {
            return Err(self.bad_answer("more than 16 interim answers"));
        }
        let continued = before.continued || response.status == 100;
        self.answer = Answer::Awaited(Awaited { interims, continued, heard: true });
        if self.passed_interim() {
            write_response(response, 1, true, &mut self.response.out.bytes);
        }
        Ok(())
    }

    /// The final answer is awaited, and the client has had an interim one.
    fn passed_interim(&self) -> bool {
        let some = matches!(self.answer, Answer::Awaited(Awaited { interims: 1.., .. }));
        some && self.asked.minor > 0
    }

    /// Takes up the final head.
    fn accept(&mut self, response: &Response<'_>) {
        let minor = self.asked.minor;
        let until_close = response.framing == Framing::UntilClose
            || (response.framing == Framing::Chunked && minor == 0);
        // While the request isn't read to its end, where the next begins is not known.
        let keep_client = self.asked.keep_alive
            && self.request.is_read()
            && !matches!(self.sending, Sending::Refused(_))
            && !until_close
            && !self.client.ticket.is_draining();
        let (status, keep_backend) = (response.status, response.keep_alive);
        self.answer = Answer::Begun(Begun { status, keep_client, keep_backend, until_close });
        let framed = response.framing == Framing::Chunked && minor > 0;
        write_response(response, minor, keep_client, &mut self.response.out.bytes);
        let may_splice = self.worker.shared.splices(&self.client.stream);
        self.response.start(response.framing, framed, may_splice);
    }
}
