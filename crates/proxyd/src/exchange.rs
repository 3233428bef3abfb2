//! One request and its answer. Both directions run at once: a backend may answer before it has
//! read the whole request.

mod outcome;

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use httpd::{Framing, Input, Pace, Ticket, unacknowledged};
use rustix::io::Errno;
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::backend::Backend;
use crate::conn::Conn;
use crate::error::{Error, Kind, Source};
use crate::flow::{Flow, FlowError, Pump, Tools};
use crate::forward::write_response;
use crate::request::Method;
use crate::response::{INTERIMS_MAX, Response, TOO_MANY_INTERIMS, parse_response};
use crate::upstreams::Upstream;
use crate::worker::Worker;

/// The first read of an answer where its body can be spliced: most heads fit, and what comes
/// with them has to be copied.
const HEAD_READ_BYTES: usize = 1 << 10;

/// A request, as far as an exchange needs it.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Method and target, for the log; empty if there is none.
    pub(crate) name: String,
    pub(crate) method: Method,
    pub(crate) minor: u8,
    /// Whether the client wants to keep its connection.
    pub(crate) keep_alive: bool,
    pub(crate) framing: Framing,
    /// The head for the backend.
    pub(crate) head: Vec<u8>,
    pub(crate) started: Instant,
}

/// What becomes of the client's connection.
#[derive(Debug)]
pub(crate) enum Next {
    Keep,
    /// Nothing more is sent.
    Goodbye,
    Close,
    /// The proxy answers itself, and the connection ends with that.
    Answer(Error),
}

/// Why an exchange came to no good end.
#[derive(Debug)]
enum Fault {
    /// The client is gone, and gets no answer.
    Gone,
    Failed(Error),
}

/// A timer that moves with every byte, which costs nothing: its deadline is looked at when it is
/// over.
#[derive(Debug, Default)]
pub(crate) struct Timer(Option<Pin<Box<Sleep>>>);

impl Timer {
    fn poll(&mut self, cx: &mut Context<'_>, deadline: Instant) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < sleep.deadline() {
            sleep.as_mut().reset(deadline);
        }
        loop {
            ready!(sleep.as_mut().poll(cx));
            if deadline <= sleep.deadline() {
                return Poll::Ready(());
            }
            sleep.as_mut().reset(deadline);
        }
    }
}

/// Its two directions share all this; none holds a borrow while it waits.
struct Exchange<'x> {
    worker: &'x Worker,
    client: RefCell<&'x mut Conn>,
    ticket: &'x Ticket,
    peer: Option<IpAddr>,
    asked: Asked,
    request: RefCell<Flow>,
    response: RefCell<Flow>,
    pace: RefCell<Pace>,
    /// Bytes that had moved anywhere, and those of the client's side, when that was looked at.
    moved: Cell<u64>,
    seen: Cell<u64>,
    /// The backend that was tried last, at which of its addresses.
    backend: RefCell<Option<(Arc<Backend>, usize)>>,
    /// Whether the connection had served before.
    reused: Cell<bool>,
    /// When the request was sent, or given up.
    sent_at: Cell<Option<Instant>>,
    /// The backend takes no more of the request, but may still answer.
    broken: Cell<bool>,
    /// The backend has said something.
    heard: Cell<bool>,
    interims: Cell<u32>,
    /// Whether an interim answer was passed on.
    interim: Cell<bool>,
    /// The status, once the final head is there.
    status: Cell<Option<u16>>,
    keep_client: Cell<bool>,
    keep_backend: Cell<bool>,
    until_close: Cell<bool>,
    recorded: Cell<bool>,
}

/// Passes a request on, and its answer back. `input` has what came behind the request's head.
pub(crate) async fn exchange(
    worker: &Worker,
    (client, input, ticket): (&mut Conn, &mut Input, &Ticket),
    (peer, asked): (Option<IpAddr>, Asked),
    timer: &mut Timer,
) -> Next {
    let exchange = Exchange::new(worker, client, ticket, peer, asked);
    let mut tries = 0;
    loop {
        tries += 1;
        match exchange.attempt(tries == 1, input, timer).await {
            Ok(upstream) => return exchange.complete(upstream),
            Err(Fault::Gone) => return exchange.client_is_gone(),
            Err(Fault::Failed(error)) => {
                exchange.blame(&error);
                if !exchange.may_repeat(&error, tries) {
                    return exchange.fail(error);
                }
                worker.counters.backend_retries.up();
            }
        }
    }
}

impl<'x> Exchange<'x> {
    fn new(
        worker: &'x Worker,
        client: &'x mut Conn,
        ticket: &'x Ticket,
        peer: Option<IpAddr>,
        asked: Asked,
    ) -> Exchange<'x> {
        Exchange {
            worker,
            client: RefCell::new(client),
            ticket,
            peer,
            request: RefCell::new(Flow::new()),
            response: RefCell::new(Flow::new()),
            pace: RefCell::new(Pace::new(worker.shared.timeouts.body_idle())),
            moved: Cell::new(0),
            seen: Cell::new(0),
            backend: RefCell::new(None),
            reused: Cell::new(false),
            sent_at: Cell::new(None),
            broken: Cell::new(false),
            heard: Cell::new(false),
            interims: Cell::new(0),
            interim: Cell::new(false),
            status: Cell::new(None),
            keep_client: Cell::new(asked.keep_alive),
            keep_backend: Cell::new(false),
            until_close: Cell::new(false),
            recorded: Cell::new(false),
            asked,
        }
    }

    /// One try, on one connection.
    async fn attempt(
        &self,
        first: bool,
        input: &mut Input,
        timer: &mut Timer,
    ) -> Result<Upstream, Fault> {
        let mut upstream = Box::pin(self.connect(first)).await?;
        self.rewind();
        self.pass(&mut upstream, input, timer).await?;
        Ok(upstream)
    }

    /// Both directions at once.
    async fn pass(
        &self,
        upstream: &mut Upstream,
        input: &mut Input,
        timer: &mut Timer,
    ) -> Result<(), Fault> {
        let up = RefCell::new(&mut upstream.conn);
        let sending = pin!(self.send_request(&up, input));
        let answering = pin!(self.pass_answer(&up, &mut upstream.input));
        tokio::select! {
            biased;
            () = self.client_goes() => Err(Fault::Gone),
            Err(fault) = sending => Err(fault),
            // Also before the request is done: the backend has said all that it will.
            answered = answering => answered,
            error = self.too_slow(&up, timer) => Err(Fault::Failed(error)),
        }
    }

    /// Gets a connection to a backend, at the first of its addresses that takes it (RFC 1123, 2.3).
    async fn connect(&self, first: bool) -> Result<Upstream, Fault> {
        let tried = self.backend.take().map(|(backend, _)| backend);
        let backend = self.worker.pick(tried.as_ref());
        let (addresses, preferred) = (backend.place.addresses(), backend.preferred());
        self.reused.set(false);
        let mut failed = None;
        for step in 0..addresses.len() {
            let at = (preferred + step) % addresses.len();
            self.backend.replace(Some((Arc::clone(&backend), at)));
            let waits = Cell::new(false);
            // A connection that failed may have had sisters that are as dead: the next is new.
            let get = self.worker.upstreams.get(&backend, &addresses[at], first, &waits);
            let got = tokio::select! {
                biased;
                () = self.client_goes() => return Err(Fault::Gone),
                got = timeout(self.worker.shared.timeouts.connect(), get) => got,
            };
            let error = match got {
                Ok(Ok((upstream, reused))) => {
                    self.reused.set(reused);
                    if !reused {
                        backend.prefer(at);
                    }
                    return Ok(upstream);
                }
                Ok(Err(errno)) => {
                    let (source, to) = (Source::of_connecting(errno), backend.place.to_string());
                    Error::new(source, Kind::Connect, to).because(errno).retryable(true)
                }
                Err(_) => {
                    self.worker.counters.timeouts.up();
                    if waits.get() {
                        // Its health is not in doubt: it has enough to do.
                        let why =
                            "every connection to a backend is taken, and none became free in time";
                        return Err(Fault::Failed(Error::new(Source::Internal, Kind::Busy, why)));
                    }
                    Error::new(Source::Upstream, Kind::Timeout, "connecting").retryable(true)
                }
            };
            if error.source != Source::Upstream {
                return Err(Fault::Failed(error));
            }
            failed = Some(error);
        }
        let none = || Error::new(Source::Upstream, Kind::Connect, "it has no address");
        Err(Fault::Failed(failed.unwrap_or_else(none)))
    }

    /// Another try begins: nothing has been sent, and nothing of the body consumed, or its rest
    /// would be taken for its beginning.
    fn rewind(&self) {
        let (worker, framing) = (self.worker, self.asked.framing);
        let mut flow = self.request.borrow_mut();
        debug_assert_eq!(flow.consumed, 0, "a request is not begun again in its middle");
        flow.release(&mut worker.pipes.borrow_mut());
        *flow = Flow::new();
        flow.out.push(&self.asked.head);
        let may_splice = worker.shared.splice && self.client.borrow().can_splice_from();
        let limit = worker.shared.http.body_bytes;
        flow.start(framing, framing == Framing::Chunked, may_splice, limit);
        self.sent_at.set(None);
        self.broken.set(false);
        self.heard.set(false);
        self.interims.set(0);
        self.pace.borrow_mut().again();
    }

    /// Client to backend.
    async fn send_request(&self, up: &RefCell<&mut Conn>, input: &mut Input) -> Result<(), Fault> {
        let sent = self.send_all(up, input).await;
        let (kind, why) = match sent {
            Ok(()) => {
                self.request.borrow_mut().release(&mut self.worker.pipes.borrow_mut());
                self.sent_at.set(Some(Instant::now()));
                return Ok(());
            }
            // A backend may close its ears once it knows its answer: the answer counts.
            Err(FlowError::Sink(_)) => {
                self.broken.set(true);
                self.sent_at.set(Some(Instant::now()));
                return Ok(());
            }
            Err(FlowError::Source(_)) => return Err(Fault::Gone),
            Err(FlowError::TooLarge) => (Kind::TooLarge, "the body is larger than allowed".into()),
            Err(FlowError::Chunk(error)) => (Kind::Malformed, error.to_string()),
            Err(FlowError::SourceEnded) => {
                (Kind::Closed, "the client ended before its request did".to_owned())
            }
        };
        Err(Fault::Failed(Error::new(Source::Downstream, kind, why)))
    }

    async fn send_all(&self, up: &RefCell<&mut Conn>, input: &mut Input) -> Result<(), FlowError> {
        if self.reused.get() {
            // If the backend has closed the connection, this tells, while all of the body is
            // still there for another.
            let head = |cx: &mut Context<'_>| {
                Poll::Ready(self.request.borrow_mut().flush(cx, &mut up.borrow_mut()))
            };
            poll_fn(head).await?;
        }
        loop {
            let pump = poll_fn(|cx| {
                let (client, up) = (&mut self.client.borrow_mut(), &mut up.borrow_mut());
                self.poll_pump(cx, &self.request, client, input, up)
            });
            if pump.await? == Pump::Done {
                return Ok(());
            }
            tokio::task::yield_now().await;
        }
    }

    fn poll_pump(
        &self,
        cx: &mut Context<'_>,
        flow: &RefCell<Flow>,
        source: &mut Conn,
        input: &mut Input,
        sink: &mut Conn,
    ) -> Poll<Result<Pump, FlowError>> {
        let mut pipes = self.worker.pipes.borrow_mut();
        let splice_min = self.worker.shared.limits.splice_min_bytes;
        let mut tools = Tools { pipes: &mut pipes, splice_min };
        flow.borrow_mut().poll_pump(cx, source, input, sink, &mut tools)
    }

    /// Backend to client: heads, then the body.
    async fn pass_answer(&self, up: &RefCell<&mut Conn>, input: &mut Input) -> Result<(), Fault> {
        while self.status.get().is_none() {
            let end = self.read_head(up, input).await?;
            let head = &input.bytes()[..end];
            match parse_response(head, self.asked.method, &self.worker.shared.http) {
                Ok(response) if response.is_interim() => self.pass_interim(&response)?,
                Ok(response) => self.accept(&response),
                Err(error) => return Err(self.bad_answer(error.0)),
            }
            input.consume(end);
        }
        loop {
            let pump = poll_fn(|cx| {
                let (client, up) = (&mut self.client.borrow_mut(), &mut up.borrow_mut());
                self.poll_pump(cx, &self.response, up, input, client)
            });
            match pump.await {
                Ok(Pump::Done) => return Ok(()),
                Ok(Pump::Again) => tokio::task::yield_now().await,
                Err(FlowError::Sink(_)) => return Err(Fault::Gone),
                Err(error) => return Err(self.bad_body(error)),
            }
        }
    }

    /// Waits for a head of the answer, and says how long it is.
    async fn read_head(&self, up: &RefCell<&mut Conn>, input: &mut Input) -> Result<usize, Fault> {
        let limits = &self.worker.shared.http;
        let splice = self.worker.shared.splice && self.client.borrow().can_splice_to();
        loop {
            match input.find_head(limits) {
                Ok(Some(end)) => return Ok(end),
                Ok(None) => {}
                Err(error) => return Err(self.bad_answer(&error.to_string())),
            }
            // As long as the client takes no more, no more is taken from the backend.
            if self.interim.get() {
                poll_fn(|cx| self.poll_interims(cx)).await?;
            }
            let first = splice && input.is_empty();
            let most = if first { HEAD_READ_BYTES } else { limits.head_bytes };
            let filled = poll_fn(|cx| {
                let mut up = up.borrow_mut();
                pin!(input.fill(&mut **up, most)).poll(cx)
            });
            match filled.await {
                Ok(0) => return Err(self.no_answer(None)),
                Ok(_) => {
                    self.heard.set(true);
                    self.pace.borrow_mut().again();
                }
                Err(error) => return Err(self.no_answer(Errno::from_io_error(&error))),
            }
        }
    }

    fn poll_interims(&self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        let mut response = self.response.borrow_mut();
        match response.flush(cx, &mut self.client.borrow_mut()) {
            Err(_) => Poll::Ready(Err(Fault::Gone)),
            Ok(_) if response.out.is_empty() => Poll::Ready(Ok(())),
            Ok(_) => Poll::Pending,
        }
    }

    /// Another head follows; HTTP/1.0 knows no interim answers, its clients don't see them.
    fn pass_interim(&self, response: &Response<'_>) -> Result<(), Fault> {
        self.interims.set(self.interims.get() + 1);
        if self.interims.get() > INTERIMS_MAX {
            return Err(self.bad_answer(TOO_MANY_INTERIMS));
        }
        if self.asked.minor > 0 {
            self.interim.set(true);
            let mut flow = self.response.borrow_mut();
            write_response(response, 1, true, flow.out.end());
        }
        Ok(())
    }

    /// Takes up the final head.
    fn accept(&self, response: &Response<'_>) {
        let minor = self.asked.minor;
        // While the request isn't read to its end, where the next begins is not known.
        let request_read = self.request.borrow().is_read();
        let until_close = response.framing == Framing::UntilClose
            || (response.framing == Framing::Chunked && minor == 0);
        let keep = self.keep_client.get()
            && request_read
            && !self.broken.get()
            && !until_close
            && !self.ticket.is_draining();
        self.until_close.set(until_close);
        self.keep_client.set(keep);
        self.keep_backend.set(response.keep_alive);
        self.status.set(Some(response.status));
        let framed = response.framing == Framing::Chunked && minor > 0;
        let splice = self.worker.shared.splice && self.client.borrow().can_splice_to();
        let mut flow = self.response.borrow_mut();
        write_response(response, minor, keep, flow.out.end());
        flow.start(response.framing, framed, splice, 0);
        if let Some((backend, _)) = &*self.backend.borrow()
            && backend.answered()
        {
            tracing::info!(backend = %backend.place, "answers again");
        }
    }

    async fn client_goes(&self) {
        poll_fn(|cx| self.client.borrow_mut().socket_mut().poll_hung_up(cx)).await;
    }

    /// Waits until whoever is waited for has taken too long.
    async fn too_slow(&self, up: &RefCell<&mut Conn>, timer: &mut Timer) -> Error {
        loop {
            poll_fn(|cx| {
                self.look_at_progress();
                timer.poll(cx, self.deadline())
            })
            .await;
            if !self.client_still_takes() {
                self.worker.counters.timeouts.up();
                return self.timeout(&up.borrow());
            }
            self.pace.borrow_mut().again();
            self.client.borrow_mut().socket_mut().try_writing();
            tokio::task::yield_now().await;
        }
    }

    fn deadline(&self) -> Instant {
        match self.sent_at.get() {
            Some(sent) if self.status.get().is_none() => {
                sent + self.worker.shared.timeouts.backend_header()
            }
            _ => self.pace.borrow().until(),
        }
    }

    /// Bytes of the answer that the client's socket took.
    fn taken(&self) -> u64 {
        let client = self.client.borrow();
        if client.can_splice_to() { self.response.borrow().sent } else { client.socket().written() }
    }

    /// Who is waited for begins his time anew: a backend with any byte, for it may be at work on
    /// the next; a client with no fewer than the least.
    fn look_at_progress(&self) {
        let (request, response) = (self.request.borrow(), self.response.borrow());
        let moved = request.sent + response.sent + request.body_bytes() + response.body_bytes();
        let moved = moved + self.client.borrow().socket().written();
        if self.moved.replace(moved) == moved {
            return;
        }
        let (waits_for_client, bytes) = match self.sent_at.get() {
            None => (request.is_drained(), request.consumed),
            Some(_) => (!response.is_drained(), self.taken()),
        };
        let since = bytes.abs_diff(self.seen.replace(bytes));
        let mut pace = self.pace.borrow_mut();
        if waits_for_client { pace.moved(since) } else { pace.again() }
    }

    /// Whether a client of whom no event came takes enough of an answer all the same.
    fn client_still_takes(&self) -> bool {
        let waits = self.status.get().is_some() && !self.response.borrow().is_drained();
        let taken = self.taken().saturating_sub(unacknowledged(self.client.borrow().socket()));
        waits && self.pace.borrow_mut().take(taken).is_ok()
    }
}
