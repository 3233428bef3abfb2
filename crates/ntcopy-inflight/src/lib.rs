//! How much a running program has in flight: bytes that it sent and nobody has taken yet.
//!
//! Everything is read: from the kernel's socket diagnostics (`sock_diag(7)`, as `ss` does), and
//! from `/proc`; how long sends are, and what their copy costs, by a tracepoint and by sampling. No
//! process is stopped or entered, and no descriptor of one is copied.
//!
//! [`diagnostics`] reads the sockets of a network namespace, [`processes`] who has them,
//! [`follow`] adds up (pure), [`watch`] samples, [`lengths`] asks the kernel how long sends
//! are, and [`share`] what part of the CPU time their copy is.

pub mod diagnostics;
pub mod follow;
pub mod lengths;
pub mod processes;
pub mod share;
pub mod sockets;
pub mod watch;

pub use diagnostics::Diagnostics;
pub use processes::{Pid, Process};
pub use watch::{Percentiles, Program, Series, Watch};
