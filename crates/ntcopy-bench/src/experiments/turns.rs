//! A program of the user's in turns, plain and hinted, until an interval can be given.
//!
//! A turn is one run of the program by itself; or, with a load, the program as a server, and one
//! run of the load against it. Its figure is the time that the program took, a number that it (or
//! the load) printed, or the requests per second that the load printed.

mod measure;
mod printed;
pub(super) mod program;

use std::ffi::OsString;

pub use self::printed::Expression;
pub use ntcopy_record::stats::turns::{HINTED, PLAIN};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    Time,
    Printed {
        expression: Expression,
        less_is_better: bool,
    },
    /// The requests per second that a load printed, in one of the forms that are known.
    Requests,
}

impl Metric {
    fn is_less_better(&self) -> bool {
        matches!(self, Metric::Time | Metric::Printed { less_is_better: true, .. })
    }
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub program: Vec<OsString>,
    /// What the program has in its environment when it is hinted.
    pub hinting: Vec<(OsString, OsString)>,
    /// A command for the shell that asks the program, which is a server then.
    pub load: Option<String>,
    /// A command for the shell that succeeds once the server can be asked; without one, a server
    /// is ready when a socket of its listens.
    pub ready: Option<String>,
    pub metric: Metric,
    pub pairs: u32,
}
