//! Sends responses: by which way, and then all of it, in as many pieces as the peer needs.

mod choose;
mod outgoing;
mod pipes;

pub use self::choose::{
    Choice, Facts, Mode, Reason, SMALL_BYTES, Setting as ModeSetting, Source, choose,
};
pub use self::outgoing::{Body, Outgoing, Progress, Sender, Set};
pub use self::pipes::Pipes;
