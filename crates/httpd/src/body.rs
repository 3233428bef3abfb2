//! Bodies, as their bytes come; the framing of chunks strictly: what could be read in two ways is
//! refused.

use crate::head::Input;
use crate::headers::Framing;

/// A size line with its extensions, which are dropped.
const MAX_LINE_BYTES: usize = 256;
/// All trailers together, which are dropped.
const MAX_TRAILER_BYTES: usize = 8 << 10;
/// Digits of a size: 60 bits, so that no sum of sizes that fits a connection overflows.
const MAX_DIGITS: usize = 15;

const SIZE: &str = "not a chunk size line";
const END: &str = "a chunk does not end in CR LF";
const TRAILER: &str = "malformed or oversized trailers";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// More bytes are needed to tell.
    More,
    /// The line of a chunk of this number of bytes, at least 1.
    Size(u64),
    /// This number of bytes of a chunk's inside.
    Data(usize),
    ChunkEnd,
    /// The end of the body, trailers included.
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Size,
    Data,
    DataEnd,
    Trailer,
    Done,
}

/// Where in a chunked body the reader stands.
#[derive(Debug, Clone)]
pub struct Chunks {
    state: State,
    /// Bytes of the present chunk's inside that are still to come.
    inside: u64,
    trailer_bytes: usize,
}

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks { state: State::Size, inside: 0, trailer_bytes: 0 }
    }
}

impl Chunks {
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Says what the first bytes of `input` are, and how many of them.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Event), &'static str> {
        match self.state {
            State::Done => Ok((0, Event::End)),
            _ if input.is_empty() => Ok((0, Event::More)),
            State::Size => self.size(input),
            State::Data => {
                let len = input.len().min(usize::try_from(self.inside).unwrap_or(usize::MAX));
                self.took(len as u64);
                Ok((len, Event::Data(len)))
            }
            State::DataEnd => match input {
                [b'\r', b'\n', ..] => {
                    self.state = State::Size;
                    Ok((2, Event::ChunkEnd))
                }
                [b'\r'] => Ok((0, Event::More)),
                _ => Err(END),
            },
            State::Trailer => self.trailer(input),
        }
    }

    /// How many of the first bytes of `input` are whole small chunks in their plainest spelling, which
    /// go on as they are, and how many bytes of content they have. A body of crumbs is little else.
    pub fn plain(&self, input: &[u8]) -> (usize, usize) {
        let (mut bytes, mut content) = (0, 0);
        if self.state == State::Size {
            while let Some((used, size)) = plain_chunk(&input[bytes..]) {
                bytes += used;
                content += size;
            }
        }
        (bytes, content)
    }

    /// Bytes of the chunk's inside were taken without being shown here, by a splice.
    pub fn took(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.inside && self.state == State::Data);
        self.inside -= bytes;
        if self.inside == 0 {
            self.state = State::DataEnd;
        }
    }

    fn size(&mut self, input: &[u8]) -> Result<(usize, Event), &'static str> {
        let Some((line, used)) = line(input, MAX_LINE_BYTES).map_err(|()| SIZE)? else {
            return Ok((0, Event::More));
        };
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let extension = &line[digits..];
        if digits == 0 || digits > MAX_DIGITS || !is_extension(extension) {
            return Err(SIZE);
        }
        self.inside = line[..digits].iter().fold(0, |size, digit| {
            size << 4 | u64::from(char::from(*digit).to_digit(16).unwrap_or(0))
        });
        if self.inside == 0 {
            self.state = State::Trailer;
            // The last chunk is not reported before its trailers are in.
            let (more, event) = self.trailer(&input[used..])?;
            return Ok((used + more, event));
        }
        self.state = State::Data;
        Ok((used, Event::Size(self.inside)))
    }

    fn trailer(&mut self, mut input: &[u8]) -> Result<(usize, Event), &'static str> {
        let mut total = 0;
        loop {
            let room = MAX_TRAILER_BYTES - self.trailer_bytes;
            let Some((line, used)) = line(input, room).map_err(|()| TRAILER)? else {
                return Ok((total, Event::More));
            };
            total += used;
            self.trailer_bytes += used;
            input = &input[used..];
            if line.is_empty() {
                self.state = State::Done;
                return Ok((total, Event::End));
            }
            // A name, a colon; no folding.
            let name = line.iter().position(|byte| *byte == b':').ok_or(TRAILER)?;
            if name == 0 || !line[..name].iter().all(|byte| byte.is_ascii_graphic()) {
                return Err(TRAILER);
            }
        }
    }
}

/// The bytes of a whole chunk whose size is one or two digits, none of them a capital or a leading
/// zero, and of its inside.
fn plain_chunk(input: &[u8]) -> Option<(usize, usize)> {
    let (digits, size) = match *input {
        [one, b'\r', b'\n', ..] => (1, digit(one)?),
        [b'1'..=b'9' | b'a'..=b'f', one, b'\r', b'\n', ..] => {
            (2, digit(input[0])? << 4 | digit(one)?)
        }
        _ => return None,
    };
    let end = digits + 2 + size;
    (size > 0 && input.get(end..end + 2)? == b"\r\n").then_some((end + 2, size))
}

fn digit(byte: u8) -> Option<usize> {
    match byte {
        b'0'..=b'9' => Some(usize::from(byte - b'0')),
        b'a'..=b'f' => Some(usize::from(byte - b'a') + 10),
        _ => None,
    }
}

/// Whether that is nothing, or `;name`, `;name=token`, `;name="text"`, any number of them. An open
/// quote would let another reader look for its end behind the line's.
fn is_extension(mut text: &[u8]) -> bool {
    let token = |text: &[u8]| text.iter().take_while(|byte| is_token(**byte)).count();
    while let [b';', rest @ ..] = text {
        let name = token(rest);
        if name == 0 {
            return false;
        }
        text = &rest[name..];
        if let [b'=', value @ ..] = text {
            let len = match value {
                [b'"', quoted @ ..] => closing_quote(quoted).map_or(0, |end| end + 2),
                value => token(value),
            };
            if len == 0 {
                return false;
            }
            text = &value[len..];
        }
    }
    text.is_empty()
}

/// Where the quote ends that has begun; a backslash quotes the next byte.
fn closing_quote(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    text.iter().position(|byte| {
        let end = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        end
    })
}

fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The first line without its CR LF, and its length with it; `None` while it is incomplete.
fn line(input: &[u8], limit: usize) -> Result<Option<(&[u8], usize)>, ()> {
    let printable = |byte: &u8| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f);
    let end = input.iter().take(limit).position(|byte| !printable(byte));
    match end.map(|end| (end, &input[end..])) {
        None if input.len() >= limit => Err(()),
        None => Ok(None),
        Some((_, [b'\r'])) => Ok(None),
        Some((end, [b'\r', b'\n', ..])) => Ok(Some((&input[..end], end + 2))),
        Some(_) => Err(()),
    }
}

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
            Body::Chunked(chunks) => chunks.inside,
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

    /// Takes what has come of the content out of `input`, and drops what frames it. Says how many bytes
    /// went: 0 if more must come to tell.
    pub fn unframe(
        &mut self,
        input: &mut Input,
        content: &mut Vec<u8>,
    ) -> Result<usize, &'static str> {
        let Body::Chunked(chunks) = self else {
            let all = input.bytes.len();
            let taken = usize::try_from(self.next_bytes()).map_or(all, |left| left.min(all));
            self.took(taken as u64);
            content.extend_from_slice(&input.bytes[..taken]);
            input.consume(taken);
            return Ok(taken);
        };
        let mut used = 0;
        while !chunks.is_done() {
            let rest = &input.bytes[used..];
            let (taken, event) = chunks.next(rest)?;
            used += taken;
            match event {
                Event::Data(bytes) => content.extend_from_slice(&rest[..bytes]),
                Event::More => break,
                _ => {}
            }
        }
        input.consume(used);
        Ok(used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_as_it_is_is_plain_and_whole() {
        let inside = "y".repeat(0xff);
        for (input, expected) in [
            ("1\r\nx\r\n2\r\nxy\r\n0\r\n\r\n".to_owned(), (13, 3)),
            (format!("ff\r\n{inside}\r\n1"), (4 + 0xff + 2, 0xff)),
            ("1\r\nx\r".to_owned(), (0, 0)),
            ("1\r\nxx\n".to_owned(), (0, 0)),
            ("01\r\nx\r\n".to_owned(), (0, 0)),
            ("A\r\n0123456789\r\n".to_owned(), (0, 0)),
            ("1;a\r\nx\r\n".to_owned(), (0, 0)),
            ("1\nx\r\n".to_owned(), (0, 0)),
            ("g\r\nx\r\n".to_owned(), (0, 0)),
        ] {
            assert_eq!(Chunks::default().plain(input.as_bytes()), expected, "{input:?}");
        }
        let mut inside = Chunks::default();
        inside.next(b"9\r\n").unwrap();
        assert_eq!(inside.plain(b"1\r\nx\r\n"), (0, 0), "that is content");
    }
}
