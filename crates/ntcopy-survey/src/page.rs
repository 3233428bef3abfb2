//! The report over a fleet: as text, and as one self-contained page. The report for programs is the
//! [`Analysis`](crate::analysis::Analysis) as JSON.
//!
//! Pure functions: the same fleet gives the same bytes.

mod html;
mod text;
mod words;

pub use html::html;
pub use text::terminal;
