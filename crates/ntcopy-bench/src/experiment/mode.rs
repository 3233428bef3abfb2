//! The ways to send that are compared.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A plain `send()`: the baseline.
    Copy,
    /// `send()` with `MSG_NTCOPY` on a socket whose `SO_NTCOPY` says obey.
    Nt,
    /// `send()` with `MSG_NTCOPY` on a socket that leaves the decision to the kernel's rule.
    Adaptive,
    /// `vmsplice()` of the object's pages into a pipe, spliced on to the socket: no copy.
    Vmsplice,
    /// No send at all: what a victim does when left alone. Not for a user to name.
    Idle,
}

impl Mode {
    /// Every mode that a user may name, the baseline first.
    pub const ALL: [Mode; 4] = [Mode::Copy, Mode::Nt, Mode::Adaptive, Mode::Vmsplice];

    /// The mode's name in commands and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Copy => "copy",
            Mode::Nt => "nt",
            Mode::Adaptive => "adaptive",
            Mode::Vmsplice => "vmsplice",
            Mode::Idle => "idle",
        }
    }

    /// Whether its sends carry the hint.
    #[must_use]
    pub fn is_hinted(self) -> bool {
        matches!(self, Mode::Nt | Mode::Adaptive)
    }

    /// What a user of the mode has to know, if there is something.
    #[must_use]
    pub fn caveat(self) -> Option<&'static str> {
        match self {
            Mode::Copy | Mode::Nt | Mode::Adaptive | Mode::Idle => None,
            Mode::Vmsplice => Some(
                "vmsplice sends the pages themselves: the buffer must not be touched again until \
                 the reader is done with it",
            ),
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A mode's name that this version does not know.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown mode `{0}`: this version has copy, nt, adaptive and vmsplice")]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Mode::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

/// A way for messages from a program to the network, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetMode {
    /// Plain sends: the baseline.
    Copy,
    /// Hinted sends that the kernel obeys.
    Nt,
    /// Hinted sends; the kernel's rule decides.
    Adaptive,
    /// Plain sends through devices whose feature `tx-nocache-copy` is on: what the kernel has had
    /// since 2011 for all TCP senders of a device at once.
    Nocache,
}

words!(NetMode, Copy = "copy", Nt = "nt", Adaptive = "adaptive", Nocache = "nocache");

impl NetMode {
    #[must_use]
    pub fn sends(self) -> Mode {
        match self {
            NetMode::Copy | NetMode::Nocache => Mode::Copy,
            NetMode::Nt => Mode::Nt,
            NetMode::Adaptive => Mode::Adaptive,
        }
    }
}

/// Each mode once, and the baseline before them.
pub(crate) fn with_baseline(asked: Vec<Mode>) -> Vec<Mode> {
    let mut modes = vec![Mode::Copy];
    for mode in asked {
        if !modes.contains(&mode) {
            modes.push(mode);
        }
    }
    modes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(mode));
        }
    }

    #[test]
    fn the_error_names_every_mode() {
        let text = "ntt".parse::<Mode>().unwrap_err().to_string();
        assert!(Mode::ALL.iter().all(|mode| text.contains(mode.as_str())), "{text}");
    }
}
