//! HTTP/1.1 on bytes alone: heads, framing, what is passed on. No socket is touched here.

mod chunk;
mod forward;
mod headers;
mod reply;
mod request;
mod response;
mod scan;

pub use chunk::{ChunkError, Chunks, Event};
pub use forward::{Facts, Reader, Scheme, write_request, write_response};
pub use headers::{Framing, Headers};
pub use reply::{reason, write_reply};
pub use request::{Method, Refusal, Request, Target, parse_request};
pub(crate) use response::TOO_MANY_INTERIMS;
pub use response::{BadResponse, INTERIMS_MAX, Response, parse_response};
pub use scan::{HeadError, Scanner};

/// What a head may have at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a head, the empty line included.
    pub head_bytes: usize,
    /// Bytes of one line of a head, its end included.
    pub line_bytes: usize,
    /// Header lines; at most [`MAX_HEADERS`].
    pub headers: usize,
    /// Bytes of a request's body; 0 stands for no limit.
    pub body_bytes: u64,
}

/// What [`Limits::headers`] can be at most.
pub const MAX_HEADERS: usize = 256;

impl Default for Limits {
    fn default() -> Limits {
        Limits { head_bytes: 16 << 10, line_bytes: 8 << 10, headers: 100, body_bytes: 0 }
    }
}
