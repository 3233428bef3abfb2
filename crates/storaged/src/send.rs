//! Sends responses: by which way, and then all of it, in as many pieces as the peer needs.

mod outgoing;

use crate::request::Reader;

pub use self::outgoing::{Body, Outgoing, Progress, Set};

/// Bodies below this go out in one call with their head: there, a call costs more than a copy.
pub const SMALL_BYTES: u64 = 16 << 10;

/// A way for bytes into a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// The kernel copies them, with ordinary stores.
    Copy,
    /// The kernel copies them with non-temporal stores: hinted, and obeyed.
    Nt,
    /// The kernel copies them, hinted, and decides.
    Adaptive,
    /// The pages of the file go out by reference.
    Sendfile,
    /// The pages of a mapping go out by reference, through a pipe.
    Vmsplice,
}

impl Mode {
    pub const fn name(self) -> &'static str {
        match self {
            Mode::Copy => "copy",
            Mode::Nt => "nt",
            Mode::Adaptive => "adaptive",
            Mode::Sendfile => "sendfile",
            Mode::Vmsplice => "vmsplice",
        }
    }
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ModeSetting {
    /// Chosen for each response.
    Auto,
    /// Ordinary sends.
    Copy,
    /// Sends that are hinted, and obeyed.
    Nt,
    /// Sends that are hinted; the kernel's rule decides.
    Adaptive,
    /// `sendfile`.
    Sendfile,
    /// `vmsplice`.
    Vmsplice,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub bytes: u64,
    pub reader: Reader,
    /// The hint is taken on this socket.
    pub hints: bool,
}

/// Chooses. docs/reference/daemons.md has the reasons at length.
pub fn choose(setting: ModeSetting, facts: &Facts) -> Mode {
    match setting {
        // One call, with the head.
        ModeSetting::Auto if facts.bytes < SMALL_BYTES => Mode::Copy,
        // A reader that uses its CPU makes the one copy there is, out of the page cache.
        ModeSetting::Auto => Mode::Sendfile,
        ModeSetting::Copy => Mode::Copy,
        // A hint is given as asked, but never for bytes that a CPU reads right away: that is the
        // one thing known to be wrong.
        ModeSetting::Nt | ModeSetting::Adaptive if !facts.hints || facts.reader == Reader::Cpu => {
            Mode::Copy
        }
        ModeSetting::Nt => Mode::Nt,
        ModeSetting::Adaptive => Mode::Adaptive,
        ModeSetting::Sendfile => Mode::Sendfile,
        ModeSetting::Vmsplice => Mode::Vmsplice,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        use Reader::{Cpu, Splice, Unknown};
        let big = 1 << 20;
        // ModeSetting, bytes, reader, hints; what comes out.
        for (setting, bytes, reader, hints, mode) in [
            (ModeSetting::Auto, 0, Unknown, true, Mode::Copy),
            (ModeSetting::Auto, SMALL_BYTES - 1, Splice, true, Mode::Copy),
            (ModeSetting::Auto, SMALL_BYTES, Splice, true, Mode::Sendfile),
            (ModeSetting::Auto, big, Cpu, true, Mode::Sendfile),
            (ModeSetting::Auto, big, Unknown, false, Mode::Sendfile),
            (ModeSetting::Copy, big, Splice, true, Mode::Copy),
            (ModeSetting::Nt, 1, Unknown, true, Mode::Nt),
            (ModeSetting::Nt, big, Splice, true, Mode::Nt),
            (ModeSetting::Nt, big, Cpu, true, Mode::Copy),
            (ModeSetting::Nt, big, Splice, false, Mode::Copy),
            (ModeSetting::Adaptive, big, Splice, true, Mode::Adaptive),
            (ModeSetting::Adaptive, big, Cpu, true, Mode::Copy),
            (ModeSetting::Sendfile, 1, Cpu, true, Mode::Sendfile),
            (ModeSetting::Vmsplice, big, Unknown, true, Mode::Vmsplice),
        ] {
            let facts = Facts { bytes, reader, hints };
            assert_eq!(choose(setting, &facts), mode, "{setting:?} {facts:?}");
        }
    }
}
