//! The framing of chunked bodies, strictly: what could be read in two ways is refused.

/// A size line with its extensions, which are dropped.
const MAX_LINE_BYTES: usize = 256;
/// All trailers together, which are dropped.
const MAX_TRAILER_BYTES: usize = 8 << 10;
/// Digits of a size: 60 bits, so that no sum of sizes that fits a connection overflows.
const MAX_DIGITS: usize = 15;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    #[error("not a chunk size line")]
    Size,
    #[error("a chunk does not end in CR LF")]
    End,
    #[error("malformed or oversized trailers")]
    Trailer,
}

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
    inside: u64,
    trailer_bytes: usize,
}

impl Default for Chunks {
    fn default() -> Chunks {
        Chunks { state: State::Size, inside: 0, trailer_bytes: 0 }
    }
}

impl Chunks {
    /// Bytes of the present chunk's inside that are still to come.
    pub fn inside(&self) -> u64 {
        self.inside
    }

    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Says what the first bytes of `input` are, and how many of them.
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Event), ChunkError> {
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
                _ => Err(ChunkError::End),
            },
            State::Trailer => self.trailer(input),
        }
    }

    /// Bytes of the chunk's inside were taken without being shown here, by a splice.
    pub fn took(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.inside && self.state == State::Data);
        self.inside -= bytes;
        if self.inside == 0 {
            self.state = State::DataEnd;
        }
    }

    fn size(&mut self, input: &[u8]) -> Result<(usize, Event), ChunkError> {
        let Some((line, used)) = line(input, MAX_LINE_BYTES).map_err(|()| ChunkError::Size)? else {
            return Ok((0, Event::More));
        };
        let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let extension = &line[digits..];
        if digits == 0 || digits > MAX_DIGITS || !is_extension(extension) {
            return Err(ChunkError::Size);
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

    fn trailer(&mut self, mut input: &[u8]) -> Result<(usize, Event), ChunkError> {
        let mut total = 0;
        loop {
            let room = MAX_TRAILER_BYTES - self.trailer_bytes;
            let Some((line, used)) = line(input, room).map_err(|()| ChunkError::Trailer)? else {
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
            let name = line.iter().position(|byte| *byte == b':').ok_or(ChunkError::Trailer)?;
            if name == 0 || !line[..name].iter().all(|byte| byte.is_ascii_graphic()) {
                return Err(ChunkError::Trailer);
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What is wrong with a body of which nothing more comes; `None` if it is only incomplete.
    fn wrong(mut body: &[u8]) -> Option<ChunkError> {
        let mut chunks = Chunks::default();
        loop {
            match chunks.next(body) {
                Err(error) => return Some(error),
                Ok((_, Event::More | Event::End)) => return None,
                Ok((used, _)) => body = &body[used..],
            }
        }
    }

    #[test]
    fn what_is_not_well_chunked_is_named() {
        let long = [&b"5;"[..], &[b'a'; 300], b"\r\nhello\r\n"].concat();
        let many = [&b"0\r\n"[..], &b"a: b\r\n".repeat(2000)].concat();
        for (body, error) in [
            (&long[..], Some(ChunkError::Size)),
            (b"1000000000000000\r\n", Some(ChunkError::Size)),
            (b"5\r\nhelloX\r\n", Some(ChunkError::End)),
            (b"5\r\nhello\n0\r\n\r\n", Some(ChunkError::End)),
            (b"5\r\nhell", None),
            (&many, Some(ChunkError::Trailer)),
        ] {
            assert_eq!(wrong(body), error, "{:.20}", body.escape_ascii().to_string());
        }
    }
}
