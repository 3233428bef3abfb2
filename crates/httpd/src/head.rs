//! What has come from a peer, and the end of a head in it.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::ready;

use tokio::io::{AsyncRead, ReadBuf};

/// Room for what is read; a worker's connections take turns.
const SCRATCH_BYTES: usize = 256 << 10;

const KEPT_BYTES: usize = 512;

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = RefCell::new(vec![0; SCRATCH_BYTES]);
}

/// Why a request is not obeyed: the status, and the reason in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub reason: &'static str,
}

pub(crate) const fn refuse(status: u16, reason: &'static str) -> Refusal {
    Refusal { status, reason }
}

/// Bytes of a head, the empty line included.
pub const HEAD_BYTES: usize = 16 << 10;
/// Bytes of one line of a head, its end included.
const LINE_BYTES: usize = 8 << 10;
/// Header lines of a head.
pub const HEADERS: usize = 100;

const BARE_LINE_END: Refusal = refuse(400, "a line of the head does not end in CR LF");
const FIRST_LINE: Refusal = refuse(414, "the request line is longer than allowed");
const TOO_LARGE: Refusal = refuse(431, "the head is larger than allowed");

/// Finds the end of a head as its bytes come in, and refuses what two parsers could take for two
/// different things. Every byte is looked at once, however slowly they come.
#[derive(Debug, Clone, Default)]
pub struct Scanner {
    at: usize,
    line_start: usize,
}

impl Scanner {
    /// Bytes of the head, its empty line included, once it is complete; `None` before.
    ///
    /// `bytes` is everything from the head's first byte, the same bytes as last time and more.
    pub fn find_end(&mut self, bytes: &[u8]) -> Result<Option<usize>, Refusal> {
        while let Some(&byte) = bytes.get(self.at) {
            let after_return = self.at > self.line_start && bytes[self.at - 1] == b'\r';
            if (byte == b'\n') != after_return {
                return Err(BARE_LINE_END);
            }
            if byte == 0 {
                return Err(refuse(400, "the head has a NUL byte"));
            }
            self.at += 1;
            self.check_size()?;
            if byte == b'\n' {
                if self.at - self.line_start == 2 {
                    return Ok(Some(self.at));
                }
                self.line_start = self.at;
            }
        }
        Ok(None)
    }

    fn check_size(&self) -> Result<(), Refusal> {
        if self.at - self.line_start > LINE_BYTES {
            return Err(if self.line_start == 0 { FIRST_LINE } else { TOO_LARGE });
        }
        if self.at > HEAD_BYTES { Err(TOO_LARGE) } else { Ok(()) }
    }
}

/// Bytes that came and are not consumed. It holds little memory while it is empty.
#[derive(Debug, Default)]
pub struct Input {
    pub bytes: Vec<u8>,
    scanner: Scanner,
}

impl Input {
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The first so many bytes are done with; a head is looked for behind them.
    pub fn consume(&mut self, bytes: usize) {
        self.bytes.drain(..bytes);
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BYTES {
            self.bytes = Vec::new();
        }
        self.scanner = Scanner::default();
    }

    pub fn clear(&mut self) {
        self.consume(self.bytes.len());
    }

    /// Bytes of the head at the start, once all of it is here.
    pub fn find_head(&mut self) -> Result<Option<usize>, Refusal> {
        self.scanner.find_end(&self.bytes)
    }

    /// Waits for more and adds it: at least a byte, at most `most`; 0 is the end.
    pub async fn fill(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        most: usize,
    ) -> io::Result<usize> {
        poll_fn(|cx| {
            SCRATCH.with_borrow_mut(|scratch| {
                let mut came = ReadBuf::new(&mut scratch[..most.min(SCRATCH_BYTES)]);
                ready!(Pin::new(&mut *from).poll_read(cx, &mut came))?;
                self.bytes.extend_from_slice(came.filled());
                Ok(came.filled().len()).into()
            })
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_found_and_each_byte_is_looked_at_once() {
        let head = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let mut scanner = Scanner::default();
        for len in 0..head.len() {
            assert_eq!(scanner.find_end(&head[..len]), Ok(None), "{len}");
            assert_eq!(scanner.at, len);
        }
        let more = [&head[..], b"GET / HTTP/1.1\r\n"].concat();
        assert_eq!(scanner.find_end(&more), Ok(Some(head.len())));
    }
}
