//! What records come to.
//!
//! Pure functions of records, which need neither the machine nor the code that measured: [`stats`] pairs
//! samples and draws intervals, [`claims`] has the questions, what each cell answers and what that comes
//! to; of it [`verdict`] makes sentences, [`compare`] holds two sets of records against each other, and
//! [`advice`] says what to set.

pub mod advice;
pub mod claims;
pub mod compare;
pub mod params;
pub mod random;
mod ratio;
pub mod stats;
pub mod verdict;

pub use ratio::Ratio;
