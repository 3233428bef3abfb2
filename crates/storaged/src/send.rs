//! Sends responses: by which way, and then all of it, in as many pieces as the peer needs.

mod outgoing;

use crate::http::Reader;

pub use self::outgoing::{Body, Outgoing, Pipes, Progress, Sender, Set};

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
    /// Every mode.
    pub const ALL: [Mode; 5] =
        [Mode::Copy, Mode::Nt, Mode::Adaptive, Mode::Sendfile, Mode::Vmsplice];

    /// The word that is written.
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
    /// `sendfile`, and `vmsplice` for what is not in a file.
    Sendfile,
    /// `vmsplice`.
    Vmsplice,
}

/// Where the bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// In an immutable file, and its pages in the page cache.
    File,
    /// In memory that was filled for this response.
    Memory,
}

/// What is known about a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Bytes of the body.
    pub bytes: u64,
    /// Where they are.
    pub source: Source,
    /// Who reads them next.
    pub reader: Reader,
    /// The hint is taken on this socket.
    pub hints: bool,
}

/// Why.
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
    /// They are not read here; their pages can go as they are.
    NobodyReads,
    /// Who reads them is not known; the kernel sees whether they fit the cache.
    Unknown,
    /// A hint would be right, and is not taken.
    NoHints,
    /// `sendfile` was asked for, and there is no file.
    NoFile,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Reason; 8] = [
        Reason::Asked,
        Reason::Small,
        Reason::NoCopy,
        Reason::CpuReads,
        Reason::NobodyReads,
        Reason::Unknown,
        Reason::NoHints,
        Reason::NoFile,
    ];

    /// The word of counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Asked => "asked",
            Reason::Small => "small",
            Reason::NoCopy => "no-copy",
            Reason::CpuReads => "cpu-reads",
            Reason::NobodyReads => "nobody-reads",
            Reason::Unknown => "unknown",
            Reason::NoHints => "no-hints",
            Reason::NoFile => "no-file",
        }
    }
}

/// A way, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The way.
    pub mode: Mode,
    /// Why.
    pub reason: Reason,
}

/// Chooses. docs/reference/daemons.md has the reasons at length.
pub fn choose(setting: ModeSetting, facts: &Facts) -> Choice {
    let (mode, reason) = match setting {
        ModeSetting::Auto => return automatic(facts),
        ModeSetting::Copy => (Mode::Copy, Reason::Asked),
        ModeSetting::Nt => hinted(Mode::Nt, facts),
        ModeSetting::Adaptive => hinted(Mode::Adaptive, facts),
        ModeSetting::Sendfile if facts.source == Source::File => (Mode::Sendfile, Reason::Asked),
        ModeSetting::Sendfile => (Mode::Vmsplice, Reason::NoFile),
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

fn automatic(facts: &Facts) -> Choice {
    let (mode, reason) = match facts {
        Facts { bytes: ..SMALL_BYTES, .. } => (Mode::Copy, Reason::Small),
        // A reader that uses its CPU makes the one copy there is, out of the page cache.
        Facts { source: Source::File, .. } => (Mode::Sendfile, Reason::NoCopy),
        Facts { reader: Reader::Cpu, .. } => (Mode::Copy, Reason::CpuReads),
        Facts { reader: Reader::Splice, .. } => (Mode::Vmsplice, Reason::NobodyReads),
        Facts { hints: true, .. } => (Mode::Adaptive, Reason::Unknown),
        Facts { .. } => (Mode::Copy, Reason::NoHints),
    };
    Choice { mode, reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        use Reader::{Cpu, Splice, Unknown};
        use Source::{File, Memory};
        let big = 1 << 20;
        // ModeSetting, bytes, source, reader, hints; what comes out, and why.
        for (setting, bytes, source, reader, hints, mode, reason) in [
            (ModeSetting::Auto, 0, File, Unknown, true, Mode::Copy, Reason::Small),
            (ModeSetting::Auto, SMALL_BYTES - 1, File, Splice, true, Mode::Copy, Reason::Small),
            (ModeSetting::Auto, SMALL_BYTES, File, Splice, true, Mode::Sendfile, Reason::NoCopy),
            (ModeSetting::Auto, big, File, Cpu, true, Mode::Sendfile, Reason::NoCopy),
            (ModeSetting::Auto, big, File, Unknown, false, Mode::Sendfile, Reason::NoCopy),
            (ModeSetting::Auto, big, Memory, Cpu, true, Mode::Copy, Reason::CpuReads),
            (ModeSetting::Auto, big, Memory, Splice, true, Mode::Vmsplice, Reason::NobodyReads),
            (ModeSetting::Auto, big, Memory, Splice, false, Mode::Vmsplice, Reason::NobodyReads),
            (ModeSetting::Auto, big, Memory, Unknown, true, Mode::Adaptive, Reason::Unknown),
            (ModeSetting::Auto, big, Memory, Unknown, false, Mode::Copy, Reason::NoHints),
            (ModeSetting::Copy, big, File, Splice, true, Mode::Copy, Reason::Asked),
            (ModeSetting::Nt, 1, File, Unknown, true, Mode::Nt, Reason::Asked),
            (ModeSetting::Nt, big, Memory, Splice, true, Mode::Nt, Reason::Asked),
            (ModeSetting::Nt, big, File, Cpu, true, Mode::Copy, Reason::CpuReads),
            (ModeSetting::Nt, big, File, Splice, false, Mode::Copy, Reason::NoHints),
            (ModeSetting::Adaptive, big, File, Splice, true, Mode::Adaptive, Reason::Asked),
            (ModeSetting::Adaptive, big, File, Cpu, true, Mode::Copy, Reason::CpuReads),
            (ModeSetting::Sendfile, 1, File, Cpu, true, Mode::Sendfile, Reason::Asked),
            (ModeSetting::Sendfile, big, Memory, Splice, true, Mode::Vmsplice, Reason::NoFile),
            (ModeSetting::Vmsplice, big, File, Unknown, true, Mode::Vmsplice, Reason::Asked),
        ] {
            let facts = Facts { bytes, source, reader, hints };
            assert_eq!(choose(setting, &facts), Choice { mode, reason }, "{setting:?} {facts:?}");
        }
    }

    #[test]
    fn no_cpu_s_bytes_are_ever_hinted() {
        for setting in [ModeSetting::Auto, ModeSetting::Nt, ModeSetting::Adaptive] {
            for source in [Source::File, Source::Memory] {
                for bytes in [0, SMALL_BYTES, 1 << 30] {
                    let facts = Facts { bytes, source, reader: Reader::Cpu, hints: true };
                    let mode = choose(setting, &facts).mode;
                    assert!(!matches!(mode, Mode::Nt | Mode::Adaptive), "{setting:?} {facts:?}");
                }
            }
        }
    }
}
