//! One request of HTTP/3, and its response.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use h3::error::Code;
use h3::server::RequestStream;
use h3_quinn::BidiStream;
use tokio::time::{sleep, timeout};

use super::bodies::{
    Failure, Receiving, Sending, failure, pass_request, pass_response, piece, read_answer, upstream,
};
use super::context::Context;
use super::message::{as_lines, own};
use super::upstream::{Upstream, connect};
use crate::config::{Live, Timeouts};
use crate::error::{Error, Kind, Source};
use crate::http::{Facts, Framing, Method, Reader, Scheme, parse_request, write_request};
use crate::metrics::add;

/// A request that is ready for a backend.
pub(super) struct Ready {
    pub(super) head: Vec<u8>,
    pub(super) method: Method,
    pub(super) framing: Framing,
    /// What has come of the body.
    first: Option<Bytes>,
    name: String,
}

/// What is told of an exchange.
#[derive(Default)]
pub(super) struct Told {
    pub(super) status: u16,
    pub(super) body_bytes: u64,
    backend: String,
    /// Whether the client has the response's head.
    pub(super) begun: bool,
}

/// Serves a request, whatever comes of it.
pub(super) async fn serve(
    request: http::Request<()>,
    stream: RequestStream<BidiStream<Bytes>, Bytes>,
    client: IpAddr,
    context: Arc<Context>,
) {
    let started = Instant::now();
    let (mut sending, mut receiving) = stream.split();
    add(&context.counters.requests, 1);
    let (live, _) = context.shared.live();
    let mut told = Told::default();
    let name = format!("{} {}", request.method(), request.uri().path());
    let is_head = request.method() == http::Method::HEAD;
    let result = match prepare(&request, &mut receiving, client, &live).await {
        Ok(ready) => {
            exchange(ready, &mut sending, &mut receiving, &live, &context, &mut told).await
        }
        Err(error) => Err(error),
    };
    let error = result.err();
    if let Some((status, error)) = &error {
        if told.begun {
            add(&context.counters.exchanges_aborted, 1);
            sending.stop_stream(Code::H3_INTERNAL_ERROR);
        } else {
            told.status = *status;
            let text = (!is_head).then(|| format!("{error}\n"));
            let within = Timeouts::of(live.timeouts.body_idle_ms);
            if timeout(within, answer(&mut sending, *status, text)).await.is_err() {
                sending.stop_stream(Code::H3_REQUEST_CANCELLED);
            }
            receiving.stop_sending(Code::H3_NO_ERROR);
        }
    }
    let took = started.elapsed();
    context.counters.answered(told.status, took);
    add(&context.counters.response_body_bytes, told.body_bytes);
    add(&context.counters.copied_bytes, told.body_bytes);
    context.log(&crate::access::Line {
        client: Some(client),
        request: &name,
        status: told.status,
        body_bytes: told.body_bytes,
        took,
        backend: &told.backend,
        spliced: false,
        error: error.as_ref().map(|(_, error)| error),
    });
}

/// The proxy's own answer, as far as the client takes it.
async fn answer(sending: &mut Sending, status: u16, text: Option<String>) {
    let _ = sending.send_response(own(status)).await;
    if let Some(text) = text {
        let _ = sending.send_data(Bytes::from(text)).await;
    }
    let _ = sending.finish().await;
}

/// Waits for the first piece of a body whose length is not told, to know whether there is one.
async fn prepare(
    request: &http::Request<()>,
    receiving: &mut Receiving,
    client: IpAddr,
    live: &Live,
) -> Result<Ready, Failure> {
    let told = request.headers().contains_key(http::header::CONTENT_LENGTH);
    let first = if told { None } else { piece(receiving, &live.timeouts).await? };
    let refused = |refusal: crate::http::Refusal| {
        let error = Error::new(Source::Downstream, Kind::Malformed, refusal.reason);
        (refusal.status, error)
    };
    let lines = as_lines(request, first.is_some()).map_err(refused)?;
    if lines.len() > live.http.head_bytes {
        return Err((431, Error::new(Source::Downstream, Kind::TooLarge, "the head")));
    }
    let parsed = parse_request(&lines, &live.http).map_err(refused)?;
    let facts = Facts {
        client: Some(client),
        scheme: Scheme::Https,
        trust_forwarded: live.trust_forwarded,
        // It is read into this process and encrypted here.
        reader: Reader::Cpu,
    };
    let mut head = Vec::with_capacity(lines.len() + 256);
    write_request(&parsed, &facts, &mut head);
    let name = format!("{} {}", parsed.method, parsed.target.path);
    Ok(Ready { head, method: parsed.kind, framing: parsed.framing, first, name })
}

async fn exchange(
    mut ready: Ready,
    sending: &mut Sending,
    receiving: &mut Receiving,
    live: &Live,
    context: &Context,
    told: &mut Told,
) -> Result<(), Failure> {
    tracing::debug!(request = ready.name, "HTTP/3");
    let mut tried = None;
    let mut fresh_only = false;
    for tries in 1.. {
        let backend = context.pick(live, tried.as_ref());
        let idle = Timeouts::of(live.timeouts.backend_idle_ms);
        let reusable = if fresh_only { None } else { context.idle.take(&backend, idle) };
        let connected = match reusable {
            Some(upstream) => Ok(upstream),
            None => connect(&backend, Timeouts::of(live.timeouts.connect_ms)).await,
        };
        told.backend = backend.address.to_string();
        let failed = match connected {
            Err(error) => error,
            Ok(to) => {
                let reused = to.reused;
                add(
                    if reused {
                        &context.counters.backend_reuses
                    } else {
                        &context.counters.backend_connections
                    },
                    1,
                );
                match on_connection(to, &mut ready, sending, receiving, live, context, told).await {
                    Ok(()) => {
                        backend.answered();
                        return Ok(());
                    }
                    Err((status, error)) => {
                        // As with HTTP/1.1: a connection that may have been closed under the
                        // request, and a request that does no harm twice.
                        let stale = error.kind == Kind::Closed && reused;
                        if !stale {
                            blame(&error, &backend, live, context);
                        }
                        if !stale || !error.retryable || told.begun {
                            return Err((status, error));
                        }
                        fresh_only = true;
                        add(&context.counters.backend_retries, 1);
                        continue;
                    }
                }
            }
        };
        blame(&failed, &backend, live, context);
        if tries >= live.limits.tries {
            return Err(failure(failed));
        }
        add(&context.counters.backend_retries, 1);
        tried = Some(backend);
    }
    Err(upstream(Kind::Connect, "no backend"))
}

fn blame(error: &Error, backend: &crate::backend::Backend, live: &Live, context: &Context) {
    if error.source == Source::Upstream {
        add(&context.counters.backend_failures, 1);
        if backend.failed(Instant::now(), &live.health) {
            tracing::warn!(backend = %backend.address, %error, "passed over from now on");
        }
    }
}

/// Runs `main` to its end, and the request beside it: a backend may answer before it has all of
/// it. Once it is sent, or the backend takes no more, `sent` says whether that was all of it, and
/// `main` may take `within` from then on.
async fn beside<T>(
    mut request: Pin<&mut impl Future<Output = Result<bool, Failure>>>,
    sent: &mut Option<bool>,
    within: Option<Duration>,
    main: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    tokio::pin!(main);
    let late = sleep(within.unwrap_or_default());
    tokio::pin!(late);
    loop {
        tokio::select! {
            biased;
            done = &mut main => return done,
            done = request.as_mut(), if sent.is_none() => {
                *sent = Some(done?);
                late.as_mut().reset(tokio::time::Instant::now() + within.unwrap_or_default());
            }
            () = late.as_mut(), if sent.is_some() && within.is_some() => {
                return Err(upstream(Kind::Timeout, "no answer"));
            }
        }
    }
}

/// Both directions at once, on one connection.
async fn on_connection(
    to: Upstream,
    ready: &mut Ready,
    sending: &mut Sending,
    receiving: &mut Receiving,
    live: &Live,
    context: &Context,
    told: &mut Told,
) -> Result<(), Failure> {
    let Upstream { stream, mut input, backend, .. } = to;
    let (mut read, mut write) = tokio::io::split(stream);
    let first = ready.first.take();
    let (mut sent, mut interims) = (None, 0);
    let result = {
        let request = pass_request(&mut write, ready, first, receiving, live, context);
        tokio::pin!(request);
        let within = Timeouts::of(live.timeouts.backend_header_ms);
        let head = read_answer(&mut read, &mut input, &mut interims, ready.method, live);
        match beside(request.as_mut(), &mut sent, Some(within), head).await {
            Ok(answer) => {
                let response = pass_response(&mut read, &mut input, answer, sending, live, told);
                beside(request, &mut sent, None, response).await
            }
            Err(error) => Err(error),
        }
    };
    match result {
        Ok(keep) => {
            if keep && sent == Some(true) && input.is_empty() {
                context.idle.keep(read.unsplit(write), backend, live.limits.backend_idle);
            } else if sent.is_none() {
                receiving.stop_sending(Code::H3_NO_ERROR);
            }
            Ok(())
        }
        Err((status, error)) => {
            let replayable = ready.framing == Framing::None && ready.method.is_idempotent();
            let unheard = input.is_empty() && interims == 0;
            let silent = unheard && error.source == Source::Upstream && !told.begun;
            Err((status, error.retryable(replayable && silent)))
        }
    }
}
