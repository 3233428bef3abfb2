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
    Body, Failure, Logged, Ready, Sending, failure, pass_request, pass_response, read_answer,
    upstream,
};
use super::context::Context;
use super::message::{as_lines, own};
use super::upstream::{Upstream, connect};
use crate::backend::{Attempt, Backend};
use crate::config::{Live, Timeouts};
use crate::error::{Error, Kind, Source};
use crate::http::{Facts, Reader, Scheme, parse_request, write_request};
use crate::metrics::add;

/// Serves a request, whatever comes of it.
pub(super) async fn serve(
    request: http::Request<()>,
    stream: RequestStream<BidiStream<Bytes>, Bytes>,
    client: IpAddr,
    context: Arc<Context>,
) {
    let started = Instant::now();
    let (mut sending, receiving) = stream.split();
    let mut receiving = Body::new(receiving);
    add(&context.counters.requests, 1);
    let (live, _) = context.shared.live();
    let mut logged = Logged::default();
    let name = format!("{} {}", request.method(), request.uri().path());
    let is_head = request.method() == http::Method::HEAD;
    let result = match prepare(&request, &mut receiving, client, &live).await {
        Ok(ready) => {
            exchange(ready, &mut sending, &mut receiving, &live, &context, &mut logged).await
        }
        Err(error) => Err(error),
    };
    let error = result.err();
    if let Some((status, error)) = &error {
        if logged.begun {
            add(&context.counters.exchanges_aborted, 1);
            sending.stop_stream(Code::H3_INTERNAL_ERROR);
        } else {
            logged.status = *status;
            let text = (!is_head).then(|| format!("{error}\n"));
            let within = Timeouts::of(live.timeouts.body_idle_ms);
            if timeout(within, answer(&mut sending, *status, &live.quic.allow(), text))
                .await
                .is_err()
            {
                sending.stop_stream(Code::H3_REQUEST_CANCELLED);
            }
        }
    }
    drop(receiving);
    let took = started.elapsed();
    context.counters.answered(logged.status, took);
    add(&context.counters.response_body_bytes, logged.body_bytes);
    add(&context.counters.copied_bytes, logged.body_bytes);
    context.log(&crate::access::Line {
        client: Some(client),
        request: &name,
        status: logged.status,
        body_bytes: logged.body_bytes,
        took,
        backend: &logged.backend,
        spliced: false,
        error: error.as_ref().map(|(_, error)| error),
    });
}

/// The proxy's own answer, as far as the client takes it.
async fn answer(sending: &mut Sending, status: u16, allow: &str, text: Option<String>) {
    let _ = sending.send_response(own(status, allow)).await;
    if let Some(text) = text {
        let _ = sending.send_data(Bytes::from(text)).await;
    }
    let _ = sending.finish().await;
}

/// Waits for the first piece of a body whose length is not given, to know whether there is one.
async fn prepare(
    request: &http::Request<()>,
    receiving: &mut Body,
    client: IpAddr,
    live: &Live,
) -> Result<Ready, Failure> {
    let told = request.headers().contains_key(http::header::CONTENT_LENGTH);
    let has_body = told || receiving.look(&live.timeouts).await?;
    let refused = |refusal: crate::http::Refusal| {
        let kind =
            if matches!(refusal.status, 403 | 405) { Kind::NotPublic } else { Kind::Malformed };
        let error = Error::new(Source::Downstream, kind, refusal.reason);
        (refusal.status, error)
    };
    let lines = as_lines(request, has_body && !told).map_err(refused)?;
    if lines.len() > live.http.head_bytes {
        return Err((431, Error::new(Source::Downstream, Kind::TooLarge, "the head")));
    }
    let parsed = parse_request(&lines, &live.http).map_err(refused)?;
    live.quic.admit(parsed.method, parsed.target.path).map_err(refused)?;
    let facts = Facts {
        client: Some(client),
        scheme: Scheme::Https,
        trust_forwarded: live.quic.trust_forwarded,
        // It is read into this process and encrypted here.
        reader: Reader::Cpu,
    };
    let mut head = Vec::with_capacity(lines.len() + 256);
    write_request(&parsed, &facts, &mut head);
    let name = format!("{} {}", parsed.method, parsed.target.path);
    Ok(Ready { head, method: parsed.kind, framing: parsed.framing, name })
}

async fn exchange(
    ready: Ready,
    sending: &mut Sending,
    receiving: &mut Body,
    live: &Live,
    context: &Context,
    logged: &mut Logged,
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
            None => {
                let gate = context.gate(live, &backend);
                let within = Timeouts::of(live.timeouts.connect_ms);
                connect(&backend, &gate, &context.idle, within).await
            }
        };
        logged.backend = backend.address.to_string();
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
                match on_connection(to, &ready, sending, receiving, live, context, logged).await {
                    Ok(()) => {
                        backend.answered();
                        return Ok(());
                    }
                    Err((status, error)) => {
                        let closed = error.kind == Kind::Closed;
                        if !closed || !reused {
                            blame(&error, &backend, live, context);
                        }
                        let left = tries < live.limits.tries || (reused && tries == 1);
                        if !closed || !left || !error.retryable {
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
        if tries >= live.limits.tries || !failed.retryable {
            return Err(failure(failed));
        }
        add(&context.counters.backend_retries, 1);
        tried = Some(backend);
    }
    Err(upstream(Kind::Connect, "no backend"))
}

fn blame(error: &Error, backend: &Backend, live: &Live, context: &Context) {
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
    ready: &Ready,
    sending: &mut Sending,
    receiving: &mut Body,
    live: &Live,
    context: &Context,
    logged: &mut Logged,
) -> Result<(), Failure> {
    let Upstream { stream, mut input, backend, reused, permit, .. } = to;
    let (mut read, mut write) = tokio::io::split(stream);
    let mut wrote = false;
    let (mut sent, mut interims) = (None, 0);
    let result = {
        let request = pass_request(&mut write, ready, &mut wrote, receiving, live, context);
        tokio::pin!(request);
        let within = Timeouts::of(live.timeouts.backend_header_ms);
        let head = read_answer(&mut read, &mut input, &mut interims, ready.method, live);
        match beside(request.as_mut(), &mut sent, Some(within), head).await {
            Ok(answer) => {
                let response = pass_response(&mut read, &mut input, answer, sending, live, logged);
                beside(request, &mut sent, None, response).await
            }
            Err(error) => Err(error),
        }
    };
    match result {
        Ok(keep) => {
            if keep && sent == Some(true) && input.is_empty() {
                let stream = (read.unsplit(write), permit);
                context.idle.keep(stream, backend, live.limits.backend_idle);
            }
            Ok(())
        }
        Err((status, error)) => {
            let attempt = Attempt {
                consumed: receiving.consumed(),
                sent: wrote,
                heard: !input.is_empty() || interims > 0 || logged.begun,
                reused,
                safe: ready.method.is_safe(),
            };
            let retryable = error.source == Source::Upstream && attempt.may_repeat();
            Err((status, error.retryable(retryable)))
        }
    }
}
