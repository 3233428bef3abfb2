//! A body, as its bytes come.

use crate::chunk::{ChunkError, Chunks, Event};
use crate::headers::Framing;

/// How the end of a body is marked, and how far it has come.
#[derive(Debug, Clone)]
pub enum Body {
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

impl Body {
    pub fn new(framing: Framing) -> Body {
        match framing {
            Framing::None => Body::Length(0),
            Framing::Length(bytes) => Body::Length(bytes),
            Framing::Chunked => Body::Chunked(Chunks::default()),
            Framing::UntilClose => Body::UntilClose,
        }
    }

    pub fn is_done(&self) -> bool {
        match self {
            Body::Length(left) => *left == 0,
            Body::Chunked(chunks) => chunks.is_done(),
            Body::UntilClose => false,
        }
    }

    /// Bytes of content that can come before the next framing.
    pub fn next_bytes(&self) -> u64 {
        match self {
            Body::Length(left) => *left,
            Body::Chunked(chunks) => chunks.inside(),
            Body::UntilClose => u64::MAX,
        }
    }

    pub fn took(&mut self, bytes: u64) {
        match self {
            Body::Length(left) => *left -= bytes,
            Body::Chunked(chunks) => chunks.took(bytes),
            Body::UntilClose => {}
        }
    }

    /// How many of the first bytes of `input` belong to the body, 0 if more must come to tell; and how
    /// many of those, from the first on, are content.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, usize), ChunkError> {
        let all = input.len();
        match self {
            Body::UntilClose => Ok((all, all)),
            Body::Length(left) => {
                let taken = usize::try_from(*left).map_or(all, |left| left.min(all));
                *left -= taken as u64;
                Ok((taken, taken))
            }
            Body::Chunked(chunks) => {
                let (taken, event) = chunks.next(input)?;
                Ok((taken, if let Event::Data(bytes) = event { bytes } else { 0 }))
            }
        }
    }
}
