//! Experiments that are whole in a folder each: what can be asked, how it is measured, and what a
//! record of it says. The last part of each is a pure function of records.

pub mod footprint;
pub mod turns;
