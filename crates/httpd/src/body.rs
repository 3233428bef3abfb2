//! A body, as its bytes come.

use crate::chunk::{ChunkError, Chunks, Event};
use crate::headers::Framing;

/// How the end of a body is marked, and how far it has come.
#[derive(Debug, Clone)]
pub enum Body {
    /// This number of bytes is left.
    Length(u64),
    Chunked(Chunks),
    UntilClose,
}

/// What the next bytes are.
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

    /// Says what the first bytes of `input` are.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Content, and where in the input the body ended.
    fn read(mut body: Body, input: &[u8], cut: usize) -> (Vec<u8>, Option<usize>) {
        let (mut content, mut at, mut here) = (Vec::new(), 0, 0);
        while !body.is_done() {
            let step = body.next(&input[at..here]).unwrap();
            if step.taken == 0 {
                if here == input.len() {
                    return (content, None);
                }
                here = (here + cut).min(input.len());
            }
            content.extend_from_slice(&input[at..at + step.content]);
            at += step.taken;
        }
        (content, Some(at))
    }

    proptest! {
        #[test]
        fn cuts_don_t_matter(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5),
            cut in 1_usize..20,
        ) {
            let mut input = Vec::new();
            for chunk in &chunks {
                input.extend_from_slice(format!("{:x};a=b\r\n", chunk.len()).as_bytes());
                input.extend_from_slice(chunk);
                input.extend_from_slice(b"\r\n");
            }
            input.extend_from_slice(b"0\r\nA: b\r\n\r\n");
            let (end, all) = (input.len(), chunks.concat());
            input.extend_from_slice(b"next");
            let got = read(Body::new(Framing::Chunked), &input, cut);
            prop_assert_eq!(got, (all.clone(), Some(end)));
            let got = read(Body::new(Framing::Length(all.len() as u64)), &all, cut);
            prop_assert_eq!(got, (all.clone(), Some(all.len())));
            prop_assert_eq!(read(Body::new(Framing::UntilClose), &all, cut), (all, None));
        }
    }
}
