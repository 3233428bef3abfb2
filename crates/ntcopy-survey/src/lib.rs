//! A fleet's records: gathered by the scheduler that the fleet already has, kept in a store,
//! judged by CPU model.
//!
//! [`engine`] takes chosen experiments to every machine and brings the records back; [`store`]
//! keeps them, in SQLite or PostgreSQL; a [`summary`] is what the store keeps of a record ready
//! to hand, and all that the report over a fleet reads: [`analysis`] judges, [`page`] shows.

pub mod analysis;
pub mod engine;
pub mod page;
pub mod store;
pub mod summary;
