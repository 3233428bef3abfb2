//! The modes that are known by their names: a row for each, with what is to be said of it beside what a
//! record says itself.

pub struct Mode {
    pub name: &'static str,
    /// What whoever uses it has to know.
    pub caveat: Option<&'static str>,
}

/// The library's own choice among ways to copy.
pub const OURS: &str = "ours";
pub const LIBC: &str = "libc";
/// The C library with a lower threshold.
pub const TUNED: &str = "libc-tuned";
pub const MOVNTI: &str = "movnti";

/// In the order of their looks in charts, which are the same on every page.
pub const MODES: [Mode; 4] = [
    Mode { name: "plain", caveat: None },
    Mode { name: "hinted", caveat: None },
    Mode { name: "vmsplice", caveat: Some(PAGES_ARE_SENT) },
    Mode { name: "adaptive", caveat: None },
];

const PAGES_ARE_SENT: &str = "sends the pages themselves: the sender must not touch its buffer again \
                              until the reader is done with it.";

/// What whoever uses a mode has to know, if there is something.
#[must_use]
pub fn caveat(name: &str) -> Option<&'static str> {
    MODES.iter().find(|mode| mode.name == name)?.caveat
}

/// Whether it is the library's own way to copy: its choice, or its stream.
#[must_use]
pub fn is_library(name: &str) -> bool {
    [OURS, "stream"].contains(&name)
}
