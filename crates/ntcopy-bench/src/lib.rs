//! The engine: experiment → plan → run → sample → stats → verdict.
//!
//! Each stage uses only the stages before it. [`record`] is the seam between
//! measuring and judging: [`run`] measures and writes a record, [`stats`] and
//! [`verdict`] are pure functions of records.

pub mod record;
