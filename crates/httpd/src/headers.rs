//! The header lines of a head, and what they say about the body and the connection.

use httparse::Header;

use crate::head::{Refusal, refuse};

/// How long a body is, or how its end is marked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    None,
    Length(u64),
    Chunked,
    /// Everything until the connection closes; responses only.
    UntilClose,
}

#[derive(Debug)]
pub struct Headers<'b>(pub Vec<Header<'b>>);

impl<'b> Headers<'b> {
    pub fn iter(&self) -> impl Iterator<Item = (&'b str, &'b [u8])> + '_ {
        self.0.iter().map(|header| (header.name, header.value))
    }

    /// The values of every line of that name, in any case.
    pub fn all<'s>(&'s self, name: &'s str) -> impl Iterator<Item = &'b [u8]> + 's {
        self.iter().filter(move |(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, v)| v)
    }

    /// The value of the only line of that name; `None` if there is none. Several are refused.
    pub fn only(&self, name: &str) -> Result<Option<&'b [u8]>, Refusal> {
        let mut values = self.all(name);
        match (values.next(), values.next()) {
            (_, Some(_)) => Err(refuse(400, "two lines of a name of which there is one")),
            (only, None) => Ok(only),
        }
    }

    /// Whether a line of that name, a list of words, has the word.
    pub fn has_word(&self, name: &str, word: &str) -> bool {
        self.all(name).any(|value| words(value).any(|w| w.eq_ignore_ascii_case(word.as_bytes())))
    }

    /// Whether the line concerns only this connection and is not passed on.
    pub fn is_hop_by_hop(&self, name: &str) -> bool {
        const ALWAYS: [&str; 9] = [
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "trailer",
            "transfer-encoding",
            "upgrade",
        ];
        ALWAYS.iter().any(|hop| hop.eq_ignore_ascii_case(name)) || self.has_word("connection", name)
    }

    /// Refuses lines that change what a message means: an option of Connection that would keep one of
    /// them from its reader, or two lines where there is one meaning.
    pub fn check_meaning(&self) -> Result<(), Refusal> {
        if self.all("connection").flat_map(words).any(is_for_all) {
            return Err(refuse(400, "Connection names a line that is for all recipients"));
        }
        SINGLE.iter().try_for_each(|name| self.only(name).map(drop))
    }

    /// What the lines say about the body; [`Framing::None`] if they say nothing.
    pub fn framing(&self, minor: u8) -> Result<Framing, Refusal> {
        match (self.only("transfer-encoding")?, self.only("content-length")?) {
            (Some(_), Some(_)) => Err(refuse(400, "both Content-Length and Transfer-Encoding")),
            (Some(_), None) if minor == 0 => Err(refuse(400, "Transfer-Encoding in HTTP/1.0")),
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => Ok(Framing::Chunked),
            (Some(_), None) => Err(refuse(501, "a transfer coding besides chunked")),
            // No body has 2^63 bytes or more.
            (None, Some(length)) => digits(length)
                .filter(|length| *length <= i64::MAX as u64)
                .map(Framing::Length)
                .ok_or(refuse(400, "Content-Length is not a number")),
            (None, None) => Ok(Framing::None),
        }
    }
}

/// Lines that mean one thing, so that two programs may take one of two each. Host and
/// Content-Length are looked at by themselves.
const SINGLE: [&str; 5] =
    ["content-range", "if-modified-since", "if-range", "if-unmodified-since", "range"];

/// Whether RFC 9110, 7.6.1, forbids that word as an option of Connection.
fn is_for_all(option: &[u8]) -> bool {
    const NAMES: [&str; 9] = [
        "authorization",
        "cache-control",
        "cookie",
        "date",
        "etag",
        "expect",
        "host",
        "range",
        "set-cookie",
    ];
    let begins = |with: &[u8]| {
        option.get(..with.len()).is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    NAMES.iter().any(|name| option.eq_ignore_ascii_case(name.as_bytes()))
        || begins(b"content-")
        || begins(b"if-")
}

fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// A number of digits only: no sign, no blank, no list. What does not fit is as much as does.
pub fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some(str::from_utf8(value).ok()?.parse().unwrap_or(u64::MAX))
}
