//! Where the body of a request ends.

/// Longest chunk extension, in bytes; they mean nothing here.
const EXTENSION_BYTES_MAX: usize = 256;
/// Longest trailer section, in bytes; it means nothing here either.
const TRAILER_BYTES_MAX: usize = 8 << 10;
/// Digits of a chunk's size: more than any body may have, and no overflow.
const SIZE_DIGITS_MAX: usize = 15;

/// How the end of a body is marked, and how far the body has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Framing {
    /// This number of bytes is left.
    Length(u64),
    Chunked(Chunks),
}

/// A chunked body between two bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chunks {
    /// In the size of a chunk.
    Size {
        value: u64,
        digits: usize,
    },
    /// In the extension after the size.
    Extension {
        value: u64,
        /// Bytes of extension so far.
        bytes: usize,
        /// Whether they end within quotes.
        quote: Quote,
    },
    /// Before the line feed of a size line.
    SizeEnd(u64),
    /// In the data: this number of bytes is left, at least 1.
    Data(u64),
    /// Before the carriage return after the data.
    DataReturn,
    /// Before the line feed after the data.
    DataEnd,
    /// In the trailers.
    Trailer {
        /// Bytes of the section so far.
        bytes: usize,
        /// The line has no byte yet.
        empty: bool,
        /// The last byte was a carriage return.
        returned: bool,
    },
    Done,
}

/// Where in a quoted text an extension stands. A quote that is open at the line's end would let
/// another reader look for its end behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    None,
    Open,
    /// Inside, behind a backslash.
    Escaped,
}

impl Quote {
    fn after(self, byte: u8) -> Quote {
        match (self, byte) {
            (Quote::None, b'"') | (Quote::Escaped, _) => Quote::Open,
            (Quote::Open, b'\\') => Quote::Escaped,
            (Quote::Open, b'"') => Quote::None,
            (quote, _) => quote,
        }
    }
}

/// What [`Framing::next`] made of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// This number of bytes was taken.
    pub taken: usize,
    /// Content among them.
    pub data: &'a [u8],
}

/// The body is not in chunks as it should be: whoever else reads it may see another end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the chunked body is malformed")]
pub struct BadChunk;

impl Framing {
    /// A chunked body at its start.
    pub fn chunked() -> Framing {
        Framing::Chunked(Chunks::Size { value: 0, digits: 0 })
    }

    /// Nothing more belongs to the body.
    pub fn is_done(&self) -> bool {
        matches!(self, Framing::Length(0) | Framing::Chunked(Chunks::Done))
    }

    /// Bytes of content that can come before the next framing.
    pub fn next_bytes(&self) -> usize {
        match self {
            Framing::Length(left) | Framing::Chunked(Chunks::Data(left)) => {
                usize::try_from(*left).unwrap_or(usize::MAX)
            }
            Framing::Chunked(_) => 0,
        }
    }

    /// Takes bytes of the body: some content, or some of what is around it. With input left and
    /// the body not done, it always takes at least a byte.
    pub fn next<'a>(&mut self, input: &'a [u8]) -> Result<Piece<'a>, BadChunk> {
        match self {
            Framing::Length(left) => Ok(take(left, input)),
            Framing::Chunked(chunks) => {
                for (at, byte) in input.iter().enumerate() {
                    if let Chunks::Data(left) = chunks {
                        let mut piece = take(left, &input[at..]);
                        piece.taken += at;
                        if *left == 0 {
                            *chunks = Chunks::DataReturn;
                        }
                        return Ok(piece);
                    }
                    if *chunks == Chunks::Done {
                        return Ok(Piece { taken: at, data: &[] });
                    }
                    *chunks = step(chunks, *byte).ok_or(BadChunk)?;
                }
                Ok(Piece { taken: input.len(), data: &[] })
            }
        }
    }
}

fn take<'a>(left: &mut u64, input: &'a [u8]) -> Piece<'a> {
    let bytes = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
    *left -= bytes as u64;
    Piece { taken: bytes, data: &input[..bytes] }
}

/// One byte outside the data. Lines end in CR LF and nothing else.
fn step(chunks: &Chunks, byte: u8) -> Option<Chunks> {
    let next = match (chunks, byte) {
        (Chunks::Size { value, digits }, byte) if byte.is_ascii_hexdigit() => {
            let digit = char::from(byte).to_digit(16)?;
            let digits = digits + 1;
            (digits <= SIZE_DIGITS_MAX)
                .then_some(Chunks::Size { value: value << 4 | u64::from(digit), digits })?
        }
        (Chunks::Size { digits: 0, .. }, _) => return None,
        (
            Chunks::Size { value, .. } | Chunks::Extension { value, quote: Quote::None, .. },
            b'\r',
        ) => Chunks::SizeEnd(*value),
        (Chunks::Size { value, .. }, b';') => {
            Chunks::Extension { value: *value, bytes: 1, quote: Quote::None }
        }
        (Chunks::Extension { value, bytes, quote }, byte) => {
            let text = byte == b'\t' || (byte >= 0x20 && byte != 0x7f);
            (text && *bytes < EXTENSION_BYTES_MAX).then_some(Chunks::Extension {
                value: *value,
                bytes: bytes + 1,
                quote: quote.after(byte),
            })?
        }
        (Chunks::SizeEnd(0), b'\n') => Chunks::Trailer { bytes: 0, empty: true, returned: false },
        (Chunks::SizeEnd(value), b'\n') => Chunks::Data(*value),
        (Chunks::DataReturn, b'\r') => Chunks::DataEnd,
        (Chunks::DataEnd, b'\n') => Chunks::Size { value: 0, digits: 0 },
        (Chunks::Trailer { empty: true, returned: true, .. }, b'\n') => Chunks::Done,
        (Chunks::Trailer { bytes, returned: true, .. }, b'\n') => {
            Chunks::Trailer { bytes: *bytes, empty: true, returned: false }
        }
        (Chunks::Trailer { bytes, empty, returned: false }, byte) if byte != b'\n' => {
            let returned = byte == b'\r';
            let empty = *empty && returned;
            (*bytes < TRAILER_BYTES_MAX).then_some(Chunks::Trailer {
                bytes: bytes + 1,
                empty,
                returned,
            })?
        }
        _ => return None,
    };
    Some(next)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The content, and how many bytes the body took; `None` while it isn't done.
    fn read(framing: &mut Framing, input: &[u8]) -> Result<(Vec<u8>, Option<usize>), BadChunk> {
        let (mut content, mut at) = (Vec::new(), 0);
        while !framing.is_done() && at < input.len() {
            let piece = framing.next(&input[at..])?;
            assert!(piece.taken > 0, "no progress at {at}");
            content.extend_from_slice(piece.data);
            at += piece.taken;
        }
        Ok((content, framing.is_done().then_some(at)))
    }

    #[test]
    fn bodies_and_their_ends() {
        for (input, expected) in [
            ("0\r\n\r\nnext", Ok(("", Some(5)))),
            ("3\r\nabc\r\n0\r\n\r\n", Ok(("abc", Some(13)))),
            ("3;x=\"y\"\r\nabc\r\nA\r\n0123456789\r\n00\r\n\r\n", Ok(("abc0123456789", Some(35)))),
            ("1\r\na\r\n0\r\nTrailer: x\r\nOther: y\r\n\r\nnext", Ok(("a", Some(33)))),
            ("3\r\nab", Ok(("ab", None))),
            ("3\r\nabc\r\n0\r\n", Ok(("abc", None))),
            ("3;x=\";\\\" \"\r\nabc\r\n0\r\n\r\n", Ok(("abc", Some(22)))),
            ("3;x=\"y\r\nabc\r\n", Err(BadChunk)),
            ("3;x=\"y\\\"\r\nabc\r\n", Err(BadChunk)),
            ("3\nabc\r\n", Err(BadChunk)),
            ("3\r\nabcd\r\n", Err(BadChunk)),
            ("3\r\nabc\n0\r\n\r\n", Err(BadChunk)),
            ("\r\n", Err(BadChunk)),
            ("x\r\n", Err(BadChunk)),
            ("-1\r\n", Err(BadChunk)),
            ("0x3\r\n", Err(BadChunk)),
            (" 3\r\n", Err(BadChunk)),
            ("3 \r\n", Err(BadChunk)),
            ("0\r\n\n", Err(BadChunk)),
            ("0\r\na\nb\r\n\r\n", Err(BadChunk)),
            ("0\r\n\rx", Err(BadChunk)),
            ("fffffffffffffff\r\na", Ok(("a", None))),
            ("1000000000000000\r\n", Err(BadChunk)),
            ("3;\u{1}\r\n", Err(BadChunk)),
        ] {
            let got = read(&mut Framing::chunked(), input.as_bytes());
            let expected = expected.map(|(text, end)| (text.as_bytes().to_vec(), end));
            assert_eq!(got, expected, "{input:?}");
        }
    }

    #[test]
    fn what_means_nothing_is_bounded() {
        let long = "x".repeat(TRAILER_BYTES_MAX + 1);
        for input in [format!("1;{long}"), format!("0\r\n{long}"), "0".repeat(16)] {
            assert_eq!(read(&mut Framing::chunked(), input.as_bytes()), Err(BadChunk));
        }
    }

    proptest! {
        #[test]
        fn cuts_don_t_matter(
            content in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..5),
            cut in 1_usize..20,
        ) {
            let mut input = Vec::new();
            for chunk in &content {
                input.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                input.extend_from_slice(chunk);
                input.extend_from_slice(b"\r\n");
            }
            input.extend_from_slice(b"0\r\n\r\n");
            let mut framing = Framing::chunked();
            let mut got = Vec::new();
            for piece in input.chunks(cut) {
                got.extend(read(&mut framing, piece).unwrap().0);
            }
            prop_assert!(framing.is_done());
            prop_assert_eq!(got, content.concat());
        }
    }
}
