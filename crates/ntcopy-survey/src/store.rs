//! Where a survey's records are kept: a SQLite file, or PostgreSQL when several people share them.
//!
//! One schema and one set of statements for both ([`schema`]); a backend only connects and passes
//! them on. A record is stored whole, compressed, with its summary beside it in tables. It is stored
//! once, however often and by however many writers at once it is handed in: its id is the key.

mod insert;
mod place;
mod postgres;
mod read;
pub mod schema;
mod sql;
mod sqlite;
mod tls;

use std::path::PathBuf;

use ntcopy_record::ReadError;

pub use insert::{Added, Entry, Origin};
pub use place::Place;
pub use read::Listed;
use sql::Database;

use crate::summary::{RecordId, Summary};

/// The environment variable that names the store where `--store` does not. A URL with a password
/// in it is not for a command line, which everybody on the machine can read.
pub const STORE_VARIABLE: &str = "NTCOPY_SURVEY_STORE";

/// What can go wrong with a store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The words do not name a store.
    #[error("{0}")]
    Place(String),
    /// The file or server cannot be reached.
    #[error("cannot open the store {place}: {why}")]
    Open {
        /// The store, without a password.
        place: String,
        /// Why, and what to do.
        why: String,
    },
    /// The store was made by a newer ntcopy.
    #[error(
        "the store {place} has version {found} of the tables, and this ntcopy knows them up to \
         {known}: use a newer ntcopy"
    )]
    TooNew {
        /// The store.
        place: String,
        /// The version that it has.
        found: i64,
        /// The newest one known.
        known: i64,
    },
    /// A statement failed.
    #[error("the store {place}: {why}")]
    Failed {
        /// The store.
        place: String,
        /// The database's own words.
        why: String,
    },
    /// What is in the store is not what was put there.
    #[error("the store {place} is damaged: {what}")]
    Damaged {
        /// The store.
        place: String,
        /// What is wrong with it.
        what: String,
    },
    /// What was to be put in is no record.
    #[error(transparent)]
    Record(#[from] ReadError),
}

/// An open store.
pub struct Store {
    db: Box<dyn Database>,
}

impl Store {
    /// Opens it; makes it, and brings its tables up to date, where that is needed.
    ///
    /// # Errors
    ///
    /// When it cannot be reached, or its tables are newer than this program.
    pub fn open(place: &Place) -> Result<Store, StoreError> {
        let mut db: Box<dyn Database> = match place {
            Place::Sqlite(file) => Box::new(sqlite::open(file)?),
            Place::Postgres(url) => Box::new(postgres::open(url)?),
        };
        schema::migrate(db.as_mut(), schema::MIGRATIONS)?;
        Ok(Store { db })
    }

    /// Opens one that is there already: one that only reads makes none.
    ///
    /// # Errors
    ///
    /// The same as [`Store::open`], and when there is no such file.
    pub fn open_existing(place: &Place) -> Result<Store, StoreError> {
        if let Place::Sqlite(file) = place
            && !file.exists()
        {
            let why = "there is no such file; `ntcopy survey run` or `ntcopy survey add` makes it";
            return Err(StoreError::Open { place: place.to_string(), why: why.to_owned() });
        }
        Store::open(place)
    }

    /// The store's name, without a password.
    #[must_use]
    pub fn name(&self) -> &str {
        self.db.name()
    }

    /// Puts records in, all or none of them: what became of each, in their order.
    ///
    /// # Errors
    ///
    /// When the database fails; nothing was put in then.
    pub fn insert(&mut self, entries: &[Entry]) -> Result<Vec<Added>, StoreError> {
        insert::insert(self.db.as_mut(), entries)
    }

    /// Every record's summary, in the order of their ids.
    ///
    /// # Errors
    ///
    /// When the database fails or is damaged.
    pub fn summaries(&mut self) -> Result<Vec<Summary>, StoreError> {
        read::summaries(self.db.as_mut(), None)
    }

    /// Every summary of a fleet's records.
    ///
    /// # Errors
    ///
    /// When the database fails or is damaged.
    pub fn summaries_of(&mut self, fleet: &str) -> Result<Vec<Summary>, StoreError> {
        read::summaries(self.db.as_mut(), Some(fleet))
    }

    /// What there is, without findings; newest last.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub fn list(&mut self) -> Result<Vec<Listed>, StoreError> {
        read::list(self.db.as_mut())
    }

    /// What of a fleet's nodes was asked and answered since a time (nanoseconds since 1970-01-01
    /// UTC): node and question, as [`Entry::asked`] has it.
    ///
    /// # Errors
    ///
    /// When the database fails.
    pub fn answered(
        &mut self,
        fleet: &str,
        since_unix_ns: u64,
    ) -> Result<Vec<(String, String)>, StoreError> {
        read::answered(self.db.as_mut(), fleet, since_unix_ns)
    }

    /// The bytes of a record's file; none if the store has no such record, or keeps its summary
    /// alone.
    ///
    /// # Errors
    ///
    /// When the database fails, or the bytes are not those that were put in.
    pub fn raw(&mut self, id: &RecordId) -> Result<Option<Vec<u8>>, StoreError> {
        read::raw(self.db.as_mut(), id)
    }

    /// A record, read whole; none as [`Store::raw`].
    ///
    /// # Errors
    ///
    /// The same as [`Store::raw`], and when the bytes are no record that this program can read.
    pub fn record(&mut self, id: &RecordId) -> Result<Option<ntcopy_record::Record>, StoreError> {
        let Some(bytes) = self.raw(id)? else { return Ok(None) };
        let name = PathBuf::from(format!("{} in {}", id, self.name()));
        Ok(Some(ntcopy_record::Record::parse(&name, &bytes)?))
    }
}
