//! What records come to.
//!
//! Pure functions of records, which need neither the machine nor the code that measured: [`judge`] makes
//! of a record what all else takes, by [`stats`], which pairs samples and draws intervals; [`claims`] has
//! the questions, what each cell answers and what that comes to; of it [`compare`] holds two sets of records against each other, and
//! [`advice`] says what to set.

pub mod advice;
pub mod claims;
pub mod compare;
pub mod experiments;
mod judged;
pub mod modes;
pub mod params;
pub mod random;
mod ratio;
pub mod stats;

pub use judged::{CEILING, Judged, Measured, judge};
pub use ratio::Ratio;
