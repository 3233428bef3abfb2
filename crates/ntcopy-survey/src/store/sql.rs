//! What both databases can do, and all that the statements of a store need.
//!
//! The statements are the same text for both. Parameters are `$1`, `$2`, … and first appear in that
//! order, which PostgreSQL reads as their numbers and SQLite as names in the order of their first
//! appearance.

use super::StoreError;

/// A value that goes in.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// `BIGINT`.
    Int(i64),
    /// `DOUBLE PRECISION`.
    Real(f64),
    /// `TEXT`.
    Text(&'a str),
    /// Bytes: `BLOB` or `BYTEA`.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// Text, or NULL.
    pub fn text(value: Option<&'a str>) -> Value<'a> {
        value.map_or(Value::Null, Value::Text)
    }

    /// A number, or NULL.
    pub fn int(value: Option<u64>) -> Value<'a> {
        value.map_or(Value::Null, Value::from)
    }
}

impl From<u64> for Value<'_> {
    // Nanoseconds until the year 2262, and sizes of memory.
    fn from(value: u64) -> Self {
        Value::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

/// A value as it came out; an error says what was expected.
pub type Got<T> = Result<T, String>;

/// One row that came out. Columns count from 0.
pub trait Row {
    /// A `BIGINT`, if it is not NULL.
    fn int(&self, column: usize) -> Got<Option<i64>>;
    /// A `DOUBLE PRECISION`.
    fn real(&self, column: usize) -> Got<f64>;
    /// A `TEXT`, if it is not NULL.
    fn text(&self, column: usize) -> Got<Option<&str>>;
    /// Bytes, if not NULL.
    fn bytes(&self, column: usize) -> Got<Option<&[u8]>>;
}

/// A `BIGINT` that is not NULL and not negative.
pub fn count(row: &dyn Row, column: usize) -> Got<u64> {
    let found = row.int(column)?;
    let number = found.and_then(|number| u64::try_from(number).ok());
    number.ok_or_else(|| format!("column {column} holds {found:?}, not a count"))
}

/// A `TEXT` that is not NULL.
pub fn text(row: &dyn Row, column: usize) -> Got<String> {
    let found = row.text(column)?.map(str::to_owned);
    found.ok_or_else(|| format!("column {column} holds nothing"))
}

/// A `TEXT`.
pub fn text_if(row: &dyn Row, column: usize) -> Got<Option<String>> {
    Ok(row.text(column)?.map(str::to_owned))
}

/// What a row is handed to.
pub type Each<'a> = &'a mut dyn FnMut(&dyn Row) -> Got<()>;

/// In what the databases differ.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// The type of bytes.
    pub bytes: &'static str,
    /// What stands behind a table whose key is its order on the disk.
    pub clustered: &'static str,
    /// Begins a transaction that will write.
    pub begin: &'static str,
    /// Begins one that sees one state throughout and does not write.
    pub begin_read: &'static str,
    /// Keeps others from changing the tables until the transaction ends; empty where `begin` does.
    pub lock: &'static str,
}

/// An open database.
pub trait Database {
    /// The store's name in messages.
    fn name(&self) -> &str;
    /// In what it differs.
    fn dialect(&self) -> Dialect;
    /// Runs statements without parameters and results.
    fn batch(&mut self, sql: &str) -> Result<(), StoreError>;
    /// Runs a statement: the number of rows that it changed.
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError>;
    /// Runs a query.
    fn query(&mut self, sql: &str, values: &[Value<'_>], each: Each<'_>) -> Result<(), StoreError>;
}

/// Does something within a transaction: all of it, or nothing.
pub fn transaction<T>(
    db: &mut dyn Database,
    begin: &str,
    inside: impl FnOnce(&mut dyn Database) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    db.batch(begin)?;
    match inside(db) {
        Ok(done) => {
            db.batch("COMMIT")?;
            Ok(done)
        }
        Err(error) => {
            // The first failure is the one to tell; a broken connection can't be rolled back, and
            // the server does it.
            let _ = db.batch("ROLLBACK");
            Err(error)
        }
    }
}
