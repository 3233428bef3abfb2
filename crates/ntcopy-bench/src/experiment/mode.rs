//! The ways to send that are compared.

use ntcopy_record::lists::unique;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// A plain `send()`: the baseline.
    Plain,
    /// `send()` with `MSG_NTCOPY`, whatever its size.
    Hinted,
    /// `vmsplice()` of the object's pages into a pipe, spliced on to the socket: no copy.
    Vmsplice,
    /// No send at all: what a victim does when left alone. Not for a user to name.
    Idle,
}

words!(
    Mode,
    Plain = "plain",
    Hinted = "hinted",
    Vmsplice = "vmsplice";
    not to be named: Idle = "idle";
    in scripts for 0.2: "copy" = Plain, "nt" = Hinted
);

impl Mode {
    pub fn is_hinted(self) -> bool {
        self == Mode::Hinted
    }
}

/// Each mode once, and the baseline before them.
pub(crate) fn with_baseline<M: Copy + PartialEq>(baseline: M, asked: &[M]) -> Vec<M> {
    unique(std::iter::once(baseline).chain(asked.iter().copied()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_user_may_name_reads_back_and_the_error_names_it_all() {
        for mode in Mode::ALL {
            assert_eq!(mode.to_string().parse(), Ok(*mode));
        }
        assert_eq!(("copy".parse(), "nt".parse()), (Ok(Mode::Plain), Ok(Mode::Hinted)));
        let text = "idle".parse::<Mode>().unwrap_err();
        assert_eq!(text, "`idle`: one of plain, hinted, vmsplice");
    }
}
