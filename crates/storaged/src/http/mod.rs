//! HTTP/1.1, as far as an object store speaks it. What names are is in `key`, conditions are in
//! `condition`.

pub mod body;
pub mod range;
pub mod request;
pub mod response;

pub use self::body::{BadChunk, Framing, Piece};
pub use self::range::{Part, part};
pub use self::request::{HEAD_BYTES_MAX, Method, Parsed, Reader, Refusal, Request, parse};
pub use self::response::{Clock, Head, error_body, reason};
