//! How much of a cache a call displaces, by Prime+Trigger+Probe: no counter and no privilege.
//!
//! A set of lines is walked until the cache holds it (prime), the call is made (trigger), and each
//! line is loaded with the clock running (probe): one that takes longer than a hit was displaced.
//! Known displacers, taken in the same rounds, turn that count into *equivalent lines read*: how
//! many lines one would have to read to displace as many.

mod lines;
mod measure;
mod trigger;

use std::fmt;
use std::str::FromStr;

pub use ntcopy_judge::stats::footprint::NOTHING;
use ntcopy_record::units::{Bytes, SizeError};

use crate::experiment::typed_size;

const LINE_BYTES: usize = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    L2,
    Llc,
}

crate::experiment::words!(Level, L2 = "L2", Llc = "LLC");

#[derive(Debug, Clone)]
pub struct FootprintPlan {
    pub calls: Vec<Call>,
    pub levels: Vec<Level>,
    pub rounds: u32,
    pub cpu: u32,
    /// Bytes of the L2 and of the last-level cache.
    pub cache_bytes: [u64; 2],
}

/// A call whose footprint can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    pub kind: Kind,
    pub bytes: u64,
}

const DEFAULT_BYTES: u64 = 128 << 10;
const MOST_BYTES: u64 = 16 << 20;

macro_rules! kinds {
    ($($kind:ident = $word:literal, $what:literal;)+) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Kind {
            $(#[doc = $what] $kind),+
        }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$kind),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Kind::$kind => $word),+
                }
            }

            pub fn what(self) -> &'static str {
                match self {
                    $(Kind::$kind => $what),+
                }
            }
        }
    };
}

kinds! {
    Getpid = "getpid", "a system call that does next to nothing";
    Scan = "scan", "each line of a buffer is read";
    Compare = "compare", "memcmp() of two buffers";
    Copy = "copy", "memcpy()";
    CopyNt = "copy-nt", "the library's non-temporal copy";
    CopyNtBoth = "copy-nt-both", "the same, with a hint for its source, too";
    Fill = "fill", "memset()";
    FillNt = "fill-nt", "the library's non-temporal fill";
    Touch = "touch", "mmap(), a byte written in each page, munmap()";
    Read = "read", "pread() of a file in the page cache";
    Write = "write", "pwrite() to a file in the page cache";
    Pipe = "pipe", "write() to a pipe, read() from it";
    Send = "send", "send() on a unix socket, spliced to /dev/null";
    SendHinted = "send-hinted", "the same, hinted";
    SendRead = "send-read", "send() on a unix socket, read by recv()";
    Tcp = "tcp", "send() on a TCP connection over the loopback, spliced to /dev/null";
    TcpHinted = "tcp-hinted", "the same, hinted";
    Sendfile = "sendfile", "sendfile() to a unix socket, spliced to /dev/null";
    Splice = "splice", "splice() of a file into a pipe, and on to /dev/null";
    Vmsplice = "vmsplice", "vmsplice() of a buffer into a pipe, spliced to /dev/null";
}

/// The calls of the table that is printed where none is named.
pub const TABLE: &[Kind] = Kind::ALL;

impl Kind {
    pub fn is_hinted(self) -> bool {
        matches!(self, Kind::SendHinted | Kind::TcpHinted)
    }

    /// The call with the bytes that it has where none are named.
    pub fn by_default(self) -> Call {
        Call { kind: self, bytes: if self == Kind::Getpid { 0 } else { DEFAULT_BYTES } }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.kind.as_str())?;
        if self.bytes == 0 {
            return Ok(());
        }
        write!(out, ":{}", typed_size(self.bytes))
    }
}

impl FromStr for Call {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, size) = match text.split_once(':') {
            Some((name, size)) => (name, Some(size)),
            None => (text, None),
        };
        let kind =
            Kind::ALL.iter().copied().find(|kind| kind.as_str() == name).ok_or_else(|| {
                let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
                format!("`{name}` is no call: one of {}", known.join(", "))
            })?;
        let Some(size) = size.filter(|_| kind != Kind::Getpid) else {
            return Ok(kind.by_default());
        };
        let bytes: Bytes = size.parse().map_err(|error: SizeError| error.to_string())?;
        match bytes.0 {
            1..=MOST_BYTES => Ok(Call { kind, bytes: bytes.0 }),
            _ => Err(format!("a call has 1 byte to {}, not {bytes}", Bytes(MOST_BYTES))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read_and_printed() {
        for (text, kind, bytes) in [
            ("copy:1MiB", Kind::Copy, 1 << 20),
            ("send-hinted", Kind::SendHinted, DEFAULT_BYTES),
            ("getpid", Kind::Getpid, 0),
            ("fill:100", Kind::Fill, 100),
        ] {
            let call: Call = text.parse().unwrap();
            assert_eq!(call, Call { kind, bytes });
            assert_eq!(call.to_string().parse(), Ok(call));
        }
        for text in ["", "copi", "copy:", "copy:0", "copy:1X", "copy:17MiB"] {
            assert!(text.parse::<Call>().is_err(), "{text}");
        }
    }
}
