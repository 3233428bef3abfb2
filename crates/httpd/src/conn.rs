//! A connection, as a session has it.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, timeout, timeout_at};

use crate::head::{HEAD_BYTES, Input, Refusal, refuse};
use crate::pace::Pace;
use crate::stream::Stream;
use crate::ticket::Ticket;
use crate::turn::Turn;

/// How long a client may go on sending after its last answer, so that the close doesn't become a
/// reset that takes the answer with it; and its time for the least of that.
const LINGER: Duration = Duration::from_secs(30);
const LINGER_PATIENCE: Duration = Duration::from_secs(5);
/// What is read at a time of what is thrown away.
const SCRAP_BYTES: usize = 64 << 10;
/// Empty lines before a request, which RFC 9112, 2.2, lets a client send.
const EMPTY_LINES_MAX: u32 = 8;

/// A client's connection. It may be taken apart, to put a layer on the stream.
pub struct Conn<S = Stream> {
    pub stream: S,
    pub input: Input,
    /// TCP clients have one.
    pub peer: Option<SocketAddr>,
    /// The place of its listener among the server's doors.
    pub door: usize,
    pub ticket: Ticket,
}

impl<S: AsyncWrite + Unpin> Conn<S> {
    /// Sends something short, which a client that reads nothing may leave no room for. `None`: it
    /// did not take it in time, or is gone.
    pub async fn say(&mut self, bytes: &[u8], patience: Duration) -> Option<()> {
        let Conn { stream, ticket, .. } = self;
        let said = async {
            stream.write_all(bytes).await?;
            stream.flush().await
        };
        let in_time = timeout(patience, said).await;
        in_time.inspect_err(|_| ticket.counts().timeouts.up()).ok()?.ok()
    }
}

impl<S: AsyncRead + Unpin> Conn<S> {
    /// Waits for a request and returns the bytes of its head, which is at the start of `input`. It
    /// has `patience` from its first byte on. `None`: the client is gone, or was idle for too long, or
    /// the server ends.
    pub async fn head(&mut self, patience: Duration) -> Option<Result<usize, Refusal>> {
        for _ in 0..=EMPTY_LINES_MAX {
            match self.lines(patience).await {
                Some(Ok(2)) => self.input.consume(2),
                found => return found,
            }
        }
        Some(Err(refuse(400, "too many empty lines before a request")))
    }

    /// The same; an empty line alone is one as well.
    async fn lines(&mut self, patience: Duration) -> Option<Result<usize, Refusal>> {
        if self.input.is_empty() {
            self.input = Input::default();
            let Conn { stream, input, ticket, .. } = self;
            let came = ticket.idle(input.fill(stream, HEAD_BYTES + 1)).await;
            came.ok().filter(|bytes| *bytes > 0)?;
        }
        let until = Instant::now() + patience;
        loop {
            if let Some(found) = self.input.find_head().transpose() {
                return Some(found);
            }
            // What comes behind a head waits in the socket: a client that sends and never reads has
            // one head here, and no more.
            let most = HEAD_BYTES + 1 - self.input.bytes.len().min(HEAD_BYTES);
            let Ok(came) = timeout_at(until, self.input.fill(&mut self.stream, most)).await else {
                self.ticket.counts().timeouts.up();
                return Some(Err(refuse(408, "the head took longer than allowed")));
            };
            came.ok().filter(|bytes| *bytes > 0)?;
        }
    }

    /// Waits for the client's own end, after its last answer and the end of sending, and throws away
    /// what it is still sending: many clients read no answer before they have sent all of a request.
    pub async fn linger(&mut self) {
        let (mut scrap, mut turn) = (Input::default(), Turn::default());
        let mut pace = Pace::new(LINGER_PATIENCE);
        let until_its_end = async {
            while let Ok(Ok(bytes @ 1..)) =
                pace.within(scrap.fill(&mut self.stream, SCRAP_BYTES)).await
            {
                scrap.clear();
                pace.moved(bytes as u64);
                turn.moved(bytes as u64).await;
            }
        };
        let _ = timeout(LINGER, until_its_end).await;
    }
}
