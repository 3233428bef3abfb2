//! Tables, plots and pages from records.
//!
//! Everything here is a pure function of records (and of the published figures that the program
//! carries): the same records give the same bytes, on any machine, at any time. Numbers become
//! text here and nowhere else.

pub mod advice;
pub mod compare;
mod experiment;
mod footprint;
pub mod hot;
pub mod json;
pub mod page;
pub mod plot;
mod published;
pub mod summary;
pub mod svg;
pub mod table;
pub mod text;
mod turns;
pub mod verdict;
mod view;

pub use text::shell_line;
