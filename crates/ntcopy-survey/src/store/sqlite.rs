//! The store in a SQLite file.

use std::path::Path;
use std::time::Duration;

use ntcopy_record::durable;
use rusqlite::types::{ToSqlOutput, Value as Owned, ValueRef};
use rusqlite::{Connection, ToSql, params_from_iter};

use super::StoreError;
use super::sql::{Database, Dialect, Each, Got, Row, Value};

/// How long a writer waits for others. A record takes milliseconds to write; hundreds of writers
/// may stand in line.
const BUSY: Duration = Duration::from_secs(120);

/// An open file.
pub struct Sqlite {
    connection: Connection,
    name: String,
}

/// Opens the file; makes it and its folder where they are not there.
pub fn open(file: &Path) -> Result<Sqlite, StoreError> {
    let name = file.display().to_string();
    let failed = |why: String| StoreError::Open { place: name.clone(), why };
    if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        durable::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
    }
    let connection = Connection::open(file).map_err(|error| failed(error.to_string()))?;
    let set_up = || {
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(32);
        // A transaction ends when its journal is unlinked. With less than this the folder isn't
        // synced then: after a loss of power the journal is there again, and takes back what was
        // acknowledged.
        connection.pragma_update(None, "synchronous", "EXTRA")?;
        connection.pragma_update(None, "foreign_keys", true)
    };
    // This is where a file that is no database is first read.
    set_up().map_err(|error| failed(why(&error)))?;
    Ok(Sqlite { connection, name })
}

fn why(error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase) => {
            "it is not a SQLite file: name another one".to_owned()
        }
        Some(rusqlite::ErrorCode::DatabaseBusy) => {
            format!("others have been writing to it for {} s", BUSY.as_secs())
        }
        _ => error.to_string(),
    }
}

impl Sqlite {
    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::Failed { place: self.name.clone(), why: why(error) }
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Value::Null => ToSqlOutput::Owned(Owned::Null),
            Value::Int(value) => ToSqlOutput::Owned(Owned::Integer(*value)),
            Value::Real(value) => ToSqlOutput::Owned(Owned::Real(*value)),
            Value::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
            Value::Bytes(value) => ToSqlOutput::Borrowed(ValueRef::Blob(value)),
        })
    }
}

/// A row as SQLite has it.
struct One<'a, 'b>(&'a rusqlite::Row<'b>);

impl One<'_, '_> {
    fn get(&self, column: usize) -> Got<ValueRef<'_>> {
        self.0.get_ref(column).map_err(|error| error.to_string())
    }
}

fn not_a(column: usize, wanted: &str) -> String {
    format!("column {column} is not {wanted}")
}

impl Row for One<'_, '_> {
    fn int(&self, column: usize) -> Got<Option<i64>> {
        self.get(column)?.as_i64_or_null().map_err(|_| not_a(column, "a whole number"))
    }

    fn real(&self, column: usize) -> Got<f64> {
        self.get(column)?.as_f64().map_err(|_| not_a(column, "a number"))
    }

    fn text(&self, column: usize) -> Got<Option<&str>> {
        self.get(column)?.as_str_or_null().map_err(|_| not_a(column, "text"))
    }

    fn bytes(&self, column: usize) -> Got<Option<&[u8]>> {
        self.get(column)?.as_blob_or_null().map_err(|_| not_a(column, "bytes"))
    }
}

impl Database for Sqlite {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            bytes: "BLOB",
            clustered: " WITHOUT ROWID",
            // One that begins as a reader and then wants to write can be refused at once, for all
            // the time that it would wait.
            begin: "BEGIN IMMEDIATE",
            begin_read: "BEGIN",
            lock: "",
        }
    }

    fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        self.connection.execute_batch(sql).map_err(|error| self.failed(&error))
    }

    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let run = || self.connection.prepare_cached(sql)?.execute(params_from_iter(values));
        run().map(|changed| changed as u64).map_err(|error| self.failed(&error))
    }

    fn query(&mut self, sql: &str, values: &[Value<'_>], each: Each<'_>) -> Result<(), StoreError> {
        let mut wrong = None;
        let mut run = || {
            let mut statement = self.connection.prepare_cached(sql)?;
            let mut rows = statement.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                if let Err(why) = each(&One(row)) {
                    wrong = Some(why);
                    break;
                }
            }
            Ok(())
        };
        run().map_err(|error: rusqlite::Error| self.failed(&error))?;
        match wrong {
            Some(why) => Err(StoreError::Failed { place: self.name.clone(), why }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_syncs_the_folder_of_its_journal() {
        let folder = tempfile::tempdir().unwrap();
        let opened = open(&folder.path().join("new/folder/survey.sqlite")).unwrap();
        let pragma = |name: &str| {
            opened.connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, Owned>(0))
        };
        // 3 is EXTRA, which says nothing of the other kinds of journal.
        assert_eq!(pragma("synchronous").unwrap(), Owned::Integer(3));
        assert_eq!(pragma("journal_mode").unwrap(), Owned::Text("delete".to_owned()));
    }
}
