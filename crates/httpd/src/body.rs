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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// This number of them belongs to the body; 0 if more must come to tell.
    pub taken: usize,
    /// And so many of those, from the first on, are content.
    pub content: usize,
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

    pub fn next(&mut self, input: &[u8]) -> Result<Step, ChunkError> {
        let all = input.len();
        match self {
            Body::UntilClose => Ok(Step { taken: all, content: all }),
            Body::Length(left) => {
                let taken = usize::try_from(*left).map_or(all, |left| left.min(all));
                *left -= taken as u64;
                Ok(Step { taken, content: taken })
            }
            Body::Chunked(chunks) => {
                let (taken, event) = chunks.next(input)?;
                let content = if let Event::Data(bytes) = event { bytes } else { 0 };
                Ok(Step { taken, content })
            }
        }
    }
}
