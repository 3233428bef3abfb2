//! Sends responses: by which way, and then all of it, in as many pieces as the peer needs.

mod outgoing;

pub use self::outgoing::{Body, Outgoing, Set};

/// Bodies below this go out in one call with their head: there, a call costs more than a copy.
pub const SMALL_BYTES: u64 = 16 << 10;

/// A way for bytes into a socket; `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Chosen for each response.
    Auto,
    /// Ordinary sends.
    Copy,
    /// Ordinary sends, and hinted ones for long bodies.
    Nt,
    /// `sendfile`.
    Sendfile,
}

/// What the way of a response is chosen by.
#[derive(Debug, Clone, Copy)]
pub struct Response {
    /// The length of its body.
    pub bytes: u64,
    /// Whether a CPU of this machine reads the body right away.
    pub cpu_reads: bool,
    /// Whether the hint is taken on its socket.
    pub hints: bool,
}

/// The way of one response; bodies of `min_bytes` and more are hinted where that was asked for.
/// docs/reference/daemons.md has the reasons at length.
pub fn choose(setting: Mode, min_bytes: u64, response: Response) -> Mode {
    let Response { bytes, cpu_reads, hints } = response;
    match setting {
        // One call, with the head.
        Mode::Auto if bytes < SMALL_BYTES => Mode::Copy,
        // A reader that uses its CPU makes the one copy there is, out of the page cache.
        Mode::Auto => Mode::Sendfile,
        // Never for bytes that a CPU reads right away: that is the one thing known to be wrong.
        Mode::Nt if bytes < min_bytes || !hints || cpu_reads => Mode::Copy,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table() {
        const NUMBER: u64 = 256 << 10;
        let big = 1 << 20;
        // Setting, bytes, a CPU reads, hints; what comes out.
        for (setting, bytes, cpu_reads, hints, mode) in [
            (Mode::Auto, 0, false, true, Mode::Copy),
            (Mode::Auto, SMALL_BYTES - 1, false, true, Mode::Copy),
            (Mode::Auto, SMALL_BYTES, false, true, Mode::Sendfile),
            (Mode::Auto, big, true, true, Mode::Sendfile),
            (Mode::Copy, big, false, true, Mode::Copy),
            (Mode::Nt, NUMBER - 1, false, true, Mode::Copy),
            (Mode::Nt, NUMBER, false, true, Mode::Nt),
            (Mode::Nt, big, true, true, Mode::Copy),
            (Mode::Nt, big, false, false, Mode::Copy),
            (Mode::Sendfile, 1, true, true, Mode::Sendfile),
        ] {
            let chosen = choose(setting, NUMBER, Response { bytes, cpu_reads, hints });
            assert_eq!(chosen, mode, "{setting:?} {bytes} {cpu_reads} {hints}");
        }
    }
}
