//! A fleet's records: gathered by the tool that the site already has, kept in a store, told by CPU
//! model.
//!
//! [`engine`] takes chosen experiments to every machine and brings the records back; [`store`]
//! keeps them in a SQLite file; a [`summary`] is what the store keeps of a record ready to hand, and
//! all that the report over a fleet reads: [`analysis`] computes, [`page`] shows.

pub mod analysis;
mod durable;
pub mod engine;
pub mod page;
pub mod store;
pub mod summary;
