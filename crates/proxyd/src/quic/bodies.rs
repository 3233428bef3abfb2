//! The two directions of an exchange that came by HTTP/3.

use std::borrow::Cow;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use h3::server::RequestStream;
use h3_quinn::{RecvStream, SendStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::context::Context;
use super::exchange::{Ready, Told};
use super::message::as_fields;
use crate::config::{Live, Timeouts};
use crate::error::{Error, Kind, Source};
use crate::http::{ChunkError, Chunks, Event, Framing, Method, Scanner, parse_response};
use crate::metrics::add;

/// What is read from a backend, and sent as one DATA frame.
const PIECE_BYTES: usize = 64 << 10;

pub(super) type Sending = RequestStream<SendStream<Bytes>, Bytes>;
pub(super) type Receiving = RequestStream<RecvStream, Bytes>;

/// The status for the client, if it can still be told, and the error.
pub(super) type Failure = (u16, Error);

pub(super) fn failure(error: Error) -> Failure {
    (error.status(), error)
}

fn downstream(kind: Kind, why: impl Into<Cow<'static, str>>) -> Failure {
    failure(Error::new(Source::Downstream, kind, why))
}

pub(super) fn upstream(kind: Kind, why: impl Into<Cow<'static, str>>) -> Failure {
    failure(Error::new(Source::Upstream, kind, why))
}

/// The next piece of the request's body; `None` at its end.
pub(super) async fn piece(
    receiving: &mut Receiving,
    timeouts: &Timeouts,
) -> Result<Option<Bytes>, Failure> {
    match timeout(Timeouts::of(timeouts.body_idle_ms), receiving.recv_data()).await {
        Err(_) => Err(downstream(Kind::Timeout, "the request's body makes no progress")),
        Ok(Err(_)) => Err(downstream(Kind::Closed, "it is gone")),
        Ok(Ok(None)) => Ok(None),
        Ok(Ok(Some(mut data))) => Ok(Some(data.copy_to_bytes(data.remaining()))),
    }
}

/// Client to backend. That the backend takes no more is no failure: its answer counts.
pub(super) async fn pass_request(
    write: &mut (impl AsyncWriteExt + Unpin),
    ready: &Ready,
    mut first: Option<Bytes>,
    receiving: &mut Receiving,
    live: &Live,
    context: &Context,
) -> Result<(), Failure> {
    if write.write_all(&ready.head).await.is_err() {
        return Ok(());
    }
    let declared = match ready.framing {
        Framing::None => return Ok(()),
        Framing::Length(length) => Some(length),
        Framing::Chunked | Framing::UntilClose => None,
    };
    let limit = declared.unwrap_or(match live.http.body_bytes {
        0 => u64::MAX,
        limit => limit,
    });
    let mut body_bytes = 0;
    loop {
        let data = match first.take() {
            Some(data) => Some(data),
            None => piece(receiving, &live.timeouts).await?,
        };
        let Some(data) = data else { break };
        body_bytes += data.len() as u64;
        if body_bytes > limit {
            return Err(downstream(Kind::TooLarge, "the body is longer than said or allowed"));
        }
        if data.is_empty() {
            continue;
        }
        let idle = Timeouts::of(live.timeouts.body_idle_ms);
        match timeout(idle, write_piece(write, &data, declared.is_none())).await {
            Ok(Ok(())) => add(&context.counters.request_body_bytes, data.len() as u64),
            Ok(Err(_)) => return Ok(()),
            Err(_) => return Err(upstream(Kind::Timeout, "it takes no more of the request")),
        }
    }
    if declared.is_some_and(|length| length != body_bytes) {
        return Err(downstream(Kind::Closed, "the body is shorter than said"));
    }
    if declared.is_none() {
        let _ = write.write_all(b"0\r\n\r\n").await;
    }
    Ok(())
}

async fn write_piece(
    write: &mut (impl AsyncWriteExt + Unpin),
    data: &[u8],
    chunked: bool,
) -> std::io::Result<()> {
    if !chunked {
        return write.write_all(data).await;
    }
    write.write_all(format!("{:x}\r\n", data.len()).as_bytes()).await?;
    write.write_all(data).await?;
    write.write_all(b"\r\n").await
}

/// Backend to client; true if the backend's connection can serve again.
pub(super) async fn pass_response(
    read: &mut (impl AsyncReadExt + Unpin),
    input: &mut BytesMut,
    method: Method,
    sending: &mut Sending,
    live: &Live,
    told: &mut Told,
) -> Result<bool, Failure> {
    let mut scanner = Scanner::default();
    let within = Timeouts::of(live.timeouts.backend_header_ms);
    let (framing, keep) = loop {
        let bad = |why: String| upstream(Kind::Malformed, format!("its answer: {why}"));
        let Some(end) = scanner.find_end(input, &live.http).map_err(|e| bad(e.to_string()))? else {
            if !more(read, input, within, "no answer").await? {
                return Err(upstream(Kind::Closed, "before it answered"));
            }
            continue;
        };
        let head = input.split_to(end);
        scanner = Scanner::default();
        let response =
            parse_response(&head, method, &live.http).map_err(|error| bad(error.0.to_owned()))?;
        // The crate can't send interim answers; none is needed: nobody waits for a 100 here.
        if response.is_interim() {
            continue;
        }
        let fields =
            as_fields(&response).ok_or_else(|| bad("a line that is no field".to_owned()))?;
        told.status = response.status;
        told.begun = true;
        sending.send_response(fields).await.map_err(|_| gone())?;
        break (response.framing, response.keep_alive);
    };
    pass_body(read, input, framing, sending, live, told).await?;
    sending.finish().await.map_err(|_| gone())?;
    Ok(keep)
}

async fn pass_body(
    read: &mut (impl AsyncReadExt + Unpin),
    input: &mut BytesMut,
    framing: Framing,
    sending: &mut Sending,
    live: &Live,
    told: &mut Told,
) -> Result<(), Failure> {
    let idle = Timeouts::of(live.timeouts.body_idle_ms);
    let mut left = match framing {
        Framing::None => return Ok(()),
        Framing::Length(length) => length,
        Framing::Chunked | Framing::UntilClose => u64::MAX,
    };
    let mut chunks = Chunks::default();
    while left > 0 {
        let (take, event) = if framing == Framing::Chunked {
            let malformed = |error: ChunkError| error.to_string();
            chunks.next(input).map_err(|error| upstream(Kind::Malformed, malformed(error)))?
        } else {
            let take = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            (take, if take > 0 { Event::Data(take) } else { Event::More })
        };
        let data = input.split_to(take);
        match event {
            Event::End => return Ok(()),
            Event::Size(_) | Event::ChunkEnd => {}
            Event::Data(_) => {
                told.body_bytes += take as u64;
                if framing != Framing::Chunked {
                    left -= take as u64;
                }
                send(sending, data.freeze(), idle).await?;
            }
            Event::More => {
                if !more(read, input, idle, "the response's body makes no progress").await? {
                    return match framing {
                        Framing::UntilClose => Ok(()),
                        _ => Err(upstream(Kind::Closed, "in the middle of the body")),
                    };
                }
            }
        }
    }
    Ok(())
}

/// Reads once; false at the end.
async fn more(
    read: &mut (impl AsyncReadExt + Unpin),
    input: &mut BytesMut,
    within: Duration,
    waiting_for: &'static str,
) -> Result<bool, Failure> {
    input.reserve(PIECE_BYTES);
    match timeout(within, read.read_buf(input)).await {
        Err(_) => Err(upstream(Kind::Timeout, waiting_for)),
        Ok(Err(_)) => Ok(false),
        Ok(Ok(bytes)) => Ok(bytes > 0),
    }
}

async fn send(sending: &mut Sending, data: Bytes, within: Duration) -> Result<(), Failure> {
    match timeout(within, sending.send_data(data)).await {
        Err(_) => Err(downstream(Kind::Timeout, "it takes no more of the response")),
        Ok(Err(_)) => Err(gone()),
        Ok(Ok(())) => Ok(()),
    }
}

fn gone() -> Failure {
    downstream(Kind::Closed, "it is gone")
}
