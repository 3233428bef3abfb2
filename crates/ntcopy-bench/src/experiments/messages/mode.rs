//! The ways to exchange messages that are compared.

use crate::experiment::{Mode, words};

/// A way for messages from a program to the network, the same in both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NetMode {
    Plain,
    Hinted,
    /// Plain sends through devices whose feature `tx-nocache-copy` is on: what the kernel has had
    /// since 2011 for all TCP senders of a device at once.
    Nocache,
}

words!(NetMode, Plain = "plain", Hinted = "hinted", Nocache = "nocache");

impl NetMode {
    pub fn sends(self) -> Mode {
        match self {
            NetMode::Plain | NetMode::Nocache => Mode::Plain,
            NetMode::Hinted => Mode::Hinted,
        }
    }
}
