//! The two directions of an exchange that came by HTTP/3.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use h3::error::StreamError;
use h3::server::RequestStream;
use h3_quinn::{RecvStream, SendStream};
use rustix::io::Errno;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::context::Context;
use super::message::as_fields;
use crate::config::{Live, Timeouts};
use crate::error::{Error, Kind, Source};
use crate::http::{
    ChunkError, Chunks, Event, Framing, INTERIMS_MAX, Method, Scanner, TOO_MANY_INTERIMS,
    parse_response,
};
use crate::metrics::add;
use crate::worker::{LEAST_BYTES, SPARE_TIMES};

/// What is read from a backend at a time.
pub(super) const PIECE_BYTES: usize = 64 << 10;

pub(super) type Sending = RequestStream<SendStream<Bytes>, Bytes>;
pub(super) type Receiving = RequestStream<RecvStream, Bytes>;

/// A request that is ready for a backend.
pub(super) struct Ready {
    pub(super) head: Vec<u8>,
    pub(super) method: Method,
    pub(super) framing: Framing,
    pub(super) name: String,
}

/// What the log says of an exchange.
#[derive(Default)]
pub(super) struct Logged {
    pub(super) status: u16,
    pub(super) body_bytes: u64,
    pub(super) backend: String,
    /// Whether the client has the response's head.
    pub(super) begun: bool,
}

/// The status for the client, if it can still be sent, and the error.
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

/// The body of a request, with a count of what is gone of it. That no more of it is wanted is said
/// to the client when this is dropped: asked to say it, h3-quinn 0.0.10 panics if it is reading.
pub(super) struct Body {
    receiving: Receiving,
    /// What was looked at, and is still there for a backend.
    first: Option<Bytes>,
    consumed: u64,
    /// What has come since the client's time began anew, and how long it was waited for since.
    came: u64,
    waited: Duration,
}

impl Body {
    pub(super) fn new(receiving: Receiving) -> Body {
        Body { receiving, first: None, consumed: 0, came: 0, waited: Duration::ZERO }
    }

    /// Bytes that went to a backend, or were about to: none of them can be had a second time.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Waits for the first piece, and keeps it; false if there is no body.
    pub(super) async fn look(&mut self, timeouts: &Timeouts) -> Result<bool, Failure> {
        self.first = self.receive(timeouts).await?;
        Ok(self.first.is_some())
    }

    /// The next piece; `None` at its end.
    async fn piece(&mut self, timeouts: &Timeouts) -> Result<Option<Bytes>, Failure> {
        let piece = match self.first.take() {
            Some(first) => Some(first),
            None => self.receive(timeouts).await?,
        };
        self.consumed += piece.as_ref().map_or(0, |piece| piece.len() as u64);
        Ok(piece)
    }

    async fn receive(&mut self, timeouts: &Timeouts) -> Result<Option<Bytes>, Failure> {
        let left = Timeouts::of(timeouts.body_idle_ms).saturating_sub(self.waited);
        let began = Instant::now();
        let received = timeout(left, self.receiving.recv_data()).await;
        self.waited += began.elapsed();
        match received {
            Err(_) => Err(downstream(Kind::Timeout, "the request's body makes no progress")),
            Ok(Err(_)) => Err(downstream(Kind::Closed, "it is gone")),
            Ok(Ok(None)) => Ok(None),
            Ok(Ok(Some(mut data))) => {
                self.came += data.remaining() as u64;
                if self.came >= LEAST_BYTES {
                    (self.came, self.waited) = (0, Duration::ZERO);
                }
                Ok(Some(data.copy_to_bytes(data.remaining())))
            }
        }
    }
}

/// How long the client may take for what it takes next of a response. What it took before covers
/// some of that: the windows of a slow reader open by large steps.
struct Pace {
    each: Duration,
    left: Duration,
}

impl Pace {
    fn new(timeouts: &Timeouts) -> Pace {
        let each = Timeouts::of(timeouts.body_idle_ms);
        Pace { each, left: each }
    }

    /// Sends the bytes, if the client takes them in time.
    async fn send(
        &mut self,
        bytes: usize,
        sending: impl Future<Output = Result<(), StreamError>>,
    ) -> Result<(), Failure> {
        let began = Instant::now();
        taken(timeout(self.left, sending).await)?;
        let earned = self.each.mul_f64(bytes as f64 / LEAST_BYTES as f64);
        let left = self.left.saturating_sub(began.elapsed()) + earned;
        self.left = left.min(self.each * (SPARE_TIMES + 1));
        Ok(())
    }
}

/// Client to backend; whether all of it was sent. That the backend takes no more is no failure:
/// its answer counts.
pub(super) async fn pass_request(
    write: &mut (impl AsyncWriteExt + Unpin),
    ready: &Ready,
    wrote: &mut bool,
    body: &mut Body,
    live: &Live,
    context: &Context,
) -> Result<bool, Failure> {
    let idle = Timeouts::of(live.timeouts.body_idle_ms);
    if !put(write, &[&ready.head], wrote, idle).await? {
        return Ok(false);
    }
    let declared = match ready.framing {
        Framing::None => return Ok(true),
        Framing::Length(length) => Some(length),
        Framing::Chunked | Framing::UntilClose => None,
    };
    let limit = declared.unwrap_or(match live.http.body_bytes {
        0 => u64::MAX,
        limit => limit,
    });
    let mut body_bytes = 0;
    loop {
        let Some(data) = body.piece(&live.timeouts).await? else { break };
        body_bytes += data.len() as u64;
        if body_bytes > limit {
            return Err(downstream(Kind::TooLarge, "the body is longer than said or allowed"));
        }
        if data.is_empty() {
            continue;
        }
        let size = format!("{:x}\r\n", data.len());
        let chunk = [size.as_bytes(), &data, b"\r\n"];
        let parts = if declared.is_none() { &chunk[..] } else { &chunk[1..2] };
        if !put(write, parts, wrote, idle).await? {
            return Ok(false);
        }
        add(&context.counters.request_body_bytes, data.len() as u64);
    }
    if declared.is_some_and(|length| length != body_bytes) {
        return Err(downstream(Kind::Closed, "the body is shorter than said"));
    }
    match declared {
        Some(_) => Ok(true),
        None => put(write, &[b"0\r\n\r\n"], wrote, idle).await,
    }
}

/// Writes these parts; false if the backend takes no more. `wrote` says whether it took any.
async fn put(
    write: &mut (impl AsyncWriteExt + Unpin),
    parts: &[&[u8]],
    wrote: &mut bool,
    within: Duration,
) -> Result<bool, Failure> {
    let writing = async {
        for part in parts {
            let mut part = *part;
            while !part.is_empty() {
                match write.write(part).await? {
                    0 => return Err(std::io::ErrorKind::WriteZero.into()),
                    bytes => part = &part[bytes..],
                }
                *wrote = true;
            }
        }
        std::io::Result::Ok(())
    };
    match timeout(within, writing).await {
        Ok(written) => Ok(written.is_ok()),
        Err(_) => Err(upstream(Kind::Timeout, "it takes no more of the request")),
    }
}

/// The final head of a backend's answer.
pub(super) struct Answer {
    fields: http::Response<()>,
    framing: Framing,
    /// Whether the backend's connection can serve again, once the body is read.
    keep: bool,
}

/// Reads the final head; `interims` counts those before it. How long that may take is the
/// caller's to say: the backend need not answer before it has the request.
pub(super) async fn read_answer(
    read: &mut (impl AsyncReadExt + Unpin),
    input: &mut BytesMut,
    interims: &mut u32,
    method: Method,
    live: &Live,
) -> Result<Answer, Failure> {
    let mut scanner = Scanner::default();
    loop {
        let bad = |why: String| upstream(Kind::Malformed, format!("its answer: {why}"));
        let Some(end) = scanner.find_end(input, &live.http).map_err(|e| bad(e.to_string()))? else {
            if !more(read, input, "before it answered").await? {
                return Err(upstream(Kind::Closed, "before it answered"));
            }
            continue;
        };
        let head = input.split_to(end);
        scanner = Scanner::default();
        let response =
            parse_response(&head, method, &live.http).map_err(|error| bad(error.0.to_owned()))?;
        // The crate can't send interim answers; none is needed: no client waits for a 100 here.
        if response.is_interim() {
            *interims += 1;
            if *interims > INTERIMS_MAX {
                return Err(bad(TOO_MANY_INTERIMS.to_owned()));
            }
            continue;
        }
        let fields =
            as_fields(&response).ok_or_else(|| bad("a line that is no field".to_owned()))?;
        return Ok(Answer { fields, framing: response.framing, keep: response.keep_alive });
    }
}

/// Backend to client; true if the backend's connection can serve again.
pub(super) async fn pass_response(
    read: &mut (impl AsyncReadExt + Unpin),
    input: &mut BytesMut,
    answer: Answer,
    sending: &mut Sending,
    live: &Live,
    logged: &mut Logged,
) -> Result<bool, Failure> {
    let mut pace = Pace::new(&live.timeouts);
    logged.status = answer.fields.status().as_u16();
    logged.begun = true;
    pace.send(0, sending.send_response(answer.fields)).await?;
    pass_body(read, input, answer.framing, sending, &mut pace, logged).await?;
    pace.send(0, sending.finish()).await?;
    Ok(answer.keep)
}

async fn pass_body(
    read: &mut (impl AsyncReadExt + Unpin),
    input: &mut BytesMut,
    framing: Framing,
    sending: &mut Sending,
    pace: &mut Pace,
    logged: &mut Logged,
) -> Result<(), Failure> {
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
                logged.body_bytes += take as u64;
                if framing != Framing::Chunked {
                    left -= take as u64;
                }
                let mut data = data.freeze();
                while !data.is_empty() {
                    let piece = data.split_to(data.len().min(LEAST_BYTES as usize));
                    pace.send(piece.len(), sending.send_data(piece)).await?;
                }
            }
            Event::More => {
                let reading = more(read, input, "in the middle of the body");
                let Ok(any) = timeout(pace.each, reading).await else {
                    let why = "the response's body makes no progress";
                    return Err(upstream(Kind::Timeout, why));
                };
                if !any? {
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

/// Reads once; false at the end. A connection that breaks has not ended: where only the end tells
/// that a body is whole, it isn't.
async fn more(
    read: &mut (impl AsyncReadExt + Unpin),
    input: &mut BytesMut,
    at: &'static str,
) -> Result<bool, Failure> {
    input.reserve(PIECE_BYTES);
    read.read_buf(input).await.map(|bytes| bytes > 0).map_err(|cause| {
        let errno = Errno::from_io_error(&cause).unwrap_or(Errno::IO);
        failure(Error::new(Source::Upstream, Kind::Closed, at).because(errno))
    })
}

/// What became of sending to the client, within the time that this may take.
fn taken(sent: Result<Result<(), StreamError>, Elapsed>) -> Result<(), Failure> {
    match sent {
        Err(_) => Err(downstream(Kind::Timeout, "it takes no more of the response")),
        Ok(Err(_)) => Err(downstream(Kind::Closed, "it is gone")),
        Ok(Ok(())) => Ok(()),
    }
}
