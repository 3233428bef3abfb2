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
    pub const ALL: [Mode; 5] =
        [Mode::Copy, Mode::Nt, Mode::Adaptive, Mode::Sendfile, Mode::Vmsplice];

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModeSetting {
    /// Chosen for each response.
    #[default]
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// `--mode` says so.
    Asked,
    /// The body is small: one call, with the head.
    Small,
    /// There is a file, so nothing need be copied here.
    NoCopy,
    /// The reader's CPU finds the bytes in cache only if they were copied normally.
    CpuReads,
    /// A hint would be right, and is not taken.
    NoHints,
}

impl Reason {
    pub const ALL: [Reason; 5] =
        [Reason::Asked, Reason::Small, Reason::NoCopy, Reason::CpuReads, Reason::NoHints];

    /// The word of counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Asked => "asked",
            Reason::Small => "small",
            Reason::NoCopy => "no-copy",
            Reason::CpuReads => "cpu-reads",
            Reason::NoHints => "no-hints",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    pub mode: Mode,
    pub reason: Reason,
}

/// Chooses. docs/reference/daemons.md has the reasons at length.
pub fn choose(setting: ModeSetting, facts: &Facts) -> Choice {
    let (mode, reason) = match setting {
        ModeSetting::Auto if facts.bytes < SMALL_BYTES => (Mode::Copy, Reason::Small),
        // A reader that uses its CPU makes the one copy there is, out of the page cache.
        ModeSetting::Auto => (Mode::Sendfile, Reason::NoCopy),
        ModeSetting::Copy => (Mode::Copy, Reason::Asked),
        ModeSetting::Nt => hinted(Mode::Nt, facts),
        ModeSetting::Adaptive => hinted(Mode::Adaptive, facts),
        ModeSetting::Sendfile => (Mode::Sendfile, Reason::Asked),
        ModeSetting::Vmsplice => (Mode::Vmsplice, Reason::Asked),
    };
    Choice { mode, reason }
}

/// A hint is given as asked, but never for bytes that a CPU reads right away: that is the one
/// thing known to be wrong.
fn hinted(mode: Mode, facts: &Facts) -> (Mode, Reason) {
    match facts {
        Facts { reader: Reader::Cpu, .. } => (Mode::Copy, Reason::CpuReads),
        Facts { hints: false, .. } => (Mode::Copy, Reason::NoHints),
        _ => (mode, Reason::Asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        use Reader::{Cpu, Splice, Unknown};
        let big = 1 << 20;
        // ModeSetting, bytes, reader, hints; what comes out, and why.
        for (setting, bytes, reader, hints, mode, reason) in [
            (ModeSetting::Auto, 0, Unknown, true, Mode::Copy, Reason::Small),
            (ModeSetting::Auto, SMALL_BYTES - 1, Splice, true, Mode::Copy, Reason::Small),
            (ModeSetting::Auto, SMALL_BYTES, Splice, true, Mode::Sendfile, Reason::NoCopy),
            (ModeSetting::Auto, big, Cpu, true, Mode::Sendfile, Reason::NoCopy),
            (ModeSetting::Auto, big, Unknown, false, Mode::Sendfile, Reason::NoCopy),
            (ModeSetting::Copy, big, Splice, true, Mode::Copy, Reason::Asked),
            (ModeSetting::Nt, 1, Unknown, true, Mode::Nt, Reason::Asked),
            (ModeSetting::Nt, big, Splice, true, Mode::Nt, Reason::Asked),
            (ModeSetting::Nt, big, Cpu, true, Mode::Copy, Reason::CpuReads),
            (ModeSetting::Nt, big, Splice, false, Mode::Copy, Reason::NoHints),
            (ModeSetting::Adaptive, big, Splice, true, Mode::Adaptive, Reason::Asked),
            (ModeSetting::Adaptive, big, Cpu, true, Mode::Copy, Reason::CpuReads),
            (ModeSetting::Sendfile, 1, Cpu, true, Mode::Sendfile, Reason::Asked),
            (ModeSetting::Vmsplice, big, Unknown, true, Mode::Vmsplice, Reason::Asked),
        ] {
            let facts = Facts { bytes, reader, hints };
            assert_eq!(choose(setting, &facts), Choice { mode, reason }, "{setting:?} {facts:?}");
        }
    }

    #[test]
    fn no_cpu_s_bytes_are_ever_hinted() {
        for setting in [ModeSetting::Auto, ModeSetting::Nt, ModeSetting::Adaptive] {
            for bytes in [0, SMALL_BYTES, 1 << 30] {
                let facts = Facts { bytes, reader: Reader::Cpu, hints: true };
                let mode = choose(setting, &facts).mode;
                assert!(!matches!(mode, Mode::Nt | Mode::Adaptive), "{setting:?} {facts:?}");
            }
        }
    }
}
