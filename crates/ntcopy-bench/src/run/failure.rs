//! What can go wrong while running.

use std::fmt;
use std::time::Duration;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrongByte {
    /// Number of the socket that it came over, from 0; none in the destination of a copy.
    pub socket: Option<u32>,
    /// Position in what was sent on the socket, or in the destination, from 0.
    pub position: u64,
    pub expected: u8,
    pub got: u8,
}

impl std::error::Error for WrongByte {}

impl fmt::Display for WrongByte {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let WrongByte { socket, position, expected, got } = self;
        match socket {
            Some(socket) => write!(out, "wrong byte on socket {socket}, position {position}")?,
            None => write!(out, "wrong byte at {position} of the destination")?,
        }
        write!(out, ": expected {expected:#04x}, got {got:#04x}")
    }
}

impl WrongByte {
    /// The same, where so many bytes stand before those that were compared.
    pub fn after(self, bytes: u64) -> WrongByte {
        WrongByte { position: self.position + bytes, ..self }
    }

    pub fn on(self, socket: u32) -> WrongByte {
        WrongByte { socket: Some(socket), ..self }
    }
}

/// Why a run gave no number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The socket to the reading process made no progress.
    #[error("{what} for {} s: the reading process hangs or is stopped", waited.as_secs())]
    Silent { what: &'static str, waited: Duration },
    /// A process of this program's own could not do its part.
    #[error("{name}: {what}")]
    Process { name: &'static str, what: String },
    #[error(transparent)]
    WrongByte(#[from] WrongByte),
    /// A forked process looked at its own copy of the bytes.
    #[error("wrong byte in a forked process")]
    WrongInChild,
    /// A program did not come up, is gone, or could not do its part.
    #[error("{name}: {what}")]
    Program {
        /// Its name, or the line that the shell got.
        name: String,
        /// What became of it, with the end of what it said.
        what: String,
    },
    #[error("{0}")]
    Answer(String),
    #[error("{sent} bytes were sent, {drained} came out")]
    Lost { sent: u64, drained: u64 },
    /// The kernel counted something else than was sent.
    #[error("the kernel's counters do not fit: {0}")]
    Counters(String),
    #[error("{doing}: {errno}")]
    Os { doing: String, errno: Errno },
    /// A limit of this system is in the way; says which, and what to do.
    #[error("{0}")]
    Limit(String),
    #[error("stopped by signal {0}")]
    Stopped(i32),
}

impl Failure {
    /// Whether a byte was wrong, the one failure that no rerun excuses.
    pub fn is_wrong_byte(&self) -> bool {
        matches!(self, Failure::WrongByte(_) | Failure::WrongInChild)
    }

    /// Names what was being done when the system refused.
    pub fn os(doing: impl Into<String>) -> impl FnOnce(Errno) -> Failure {
        move |errno| Failure::Os { doing: doing.into(), errno }
    }

    /// A folder or a file for the time of a command could not be made.
    pub fn temporary(error: ntcopy_kernel::Error) -> Failure {
        Failure::Answer(error.to_string())
    }

    pub fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Failure {
        move |error| match Errno::from_io_error(&error) {
            Some(errno) => Failure::Os { doing: doing.into(), errno },
            None => Failure::Answer(format!("{}: {error}", doing.into())),
        }
    }
}
