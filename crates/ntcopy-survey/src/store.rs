//! Where a survey's records are kept: a SQLite file with one row per record.
//!
//! A record is stored whole, compressed, with its summary beside it as JSON. It is stored once,
//! however often and by however many writers at once it is handed in: its id is the key.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ntcopy_judge::judge;
use ntcopy_record::{ReadError, Record};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use crate::durable;
use crate::summary::{MachineId, RecordId, Summary};

/// The environment variable that names the store where `--store` does not.
pub const STORE_VARIABLE: &str = "NTCOPY_SURVEY_STORE";

/// The version of the table, in the file's `user_version`.
const VERSION: i64 = 1;
const TABLE: &str = "
CREATE TABLE record (
    id TEXT PRIMARY KEY,
    fleet TEXT,
    node TEXT,
    asked TEXT,
    taken_unix_ns INTEGER NOT NULL,
    counts INTEGER NOT NULL,
    summary TEXT NOT NULL,
    digest TEXT NOT NULL,
    raw_bytes INTEGER NOT NULL,
    raw BLOB NOT NULL
);
CREATE INDEX record_asked ON record (fleet, node, asked, taken_unix_ns);
PRAGMA user_version = 1;
";

/// How long a writer waits for others. A record takes milliseconds to write; hundreds of writers
/// may stand in line.
const BUSY: Duration = Duration::from_secs(120);
/// Records are small and read again and again; a higher level gains a few per cent.
const ZSTD_LEVEL: i32 = 9;
/// No record is larger unpacked: a damaged length must not take all memory.
const LARGEST_RECORD_BYTES: i64 = 4 << 30;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{0}")]
    Place(String),
    #[error("cannot open the store {place}: {why}")]
    Open { place: String, why: String },
    #[error("the store {place}: {why}")]
    Failed { place: String, why: String },
    #[error("the store {place} is damaged: {what}")]
    Damaged { place: String, what: String },
    #[error(transparent)]
    Record(#[from] ReadError),
}

/// A record to be put in.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub summary: Summary,
    pub fleet: Option<String>,
    /// What was asked of the node: the words behind `ntcopy bench`. Who asks the same
    /// again finds it by these.
    pub asked: Option<String>,
    /// The bytes of its file.
    pub raw: Vec<u8>,
}

/// What is known of a record beside what it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub machine: MachineId,
    pub fleet: Option<String>,
    pub node: Option<String>,
    /// See [`Entry::asked`].
    pub asked: Option<String>,
}

impl Entry {
    /// Reads the bytes of a record's file; `name` names it in errors.
    pub fn parse(name: &Path, raw: Vec<u8>, origin: Origin) -> Result<Entry, StoreError> {
        let record = Record::parse(name, &raw)?;
        let Origin { machine, fleet, node, asked } = origin;
        Ok(Entry { summary: Summary::of(&judge(&record), machine, node), fleet, asked, raw })
    }
}

/// A record that is there, without its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Stored {
    pub summary: Summary,
    pub fleet: Option<String>,
    pub asked: Option<String>,
    pub raw_bytes: u64,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    New,
    Known,
    /// One with this id and other bytes was there already, and stays.
    Differs,
}

/// The file that a text names.
pub fn place(text: &str) -> Result<PathBuf, StoreError> {
    match text.split_once("://") {
        _ if text.is_empty() => {
            Err(StoreError::Place("the store has no name: say --store FILE".to_owned()))
        }
        // No more of it is shown: a URL may hold a password.
        Some((scheme, _)) => Err(StoreError::Place(format!(
            "a store is a SQLite file, not a {scheme}:// URL: say --store FILE, and bring stores \
             together by `ntcopy survey export` and `ntcopy survey add`"
        ))),
        None => Ok(PathBuf::from(text)),
    }
}

/// The file that is meant when none is named: what [`STORE_VARIABLE`] says, or else
/// `survey.sqlite` in the user's folder for ntcopy's data.
pub fn default_place() -> Result<PathBuf, StoreError> {
    if let Ok(text) = std::env::var(STORE_VARIABLE)
        && !text.is_empty()
    {
        return place(&text);
    }
    let data =
        ntcopy_record::folder::of_this_user("XDG_DATA_HOME", ".local/share").ok_or_else(|| {
            let why = "neither XDG_DATA_HOME nor HOME names a directory: say --store FILE";
            StoreError::Place(why.to_owned())
        })?;
    Ok(data.join("ntcopy/survey.sqlite"))
}

/// An open store.
pub struct Store {
    connection: Connection,
    name: String,
}

impl Store {
    /// Opens the file; makes it and its folder where they are not there.
    pub fn open(file: &Path) -> Result<Store, StoreError> {
        let name = file.display().to_string();
        let failed = |why: String| StoreError::Open { place: name.clone(), why };
        if let Some(folder) = file.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            durable::create_dir_all(folder).map_err(|error| failed(error.to_string()))?;
        }
        let mut connection = Connection::open(file).map_err(|error| failed(why(&error)))?;
        connection.busy_timeout(BUSY).map_err(|error| failed(why(&error)))?;
        // A transaction ends when its journal is unlinked. With less than this the folder isn't
        // synced then: after a loss of power the journal is there again, and takes back what was
        // acknowledged.
        let synchronous = connection.pragma_update(None, "synchronous", "EXTRA");
        synchronous.map_err(|error| failed(why(&error)))?;
        match set_up(&mut connection).map_err(|error| failed(why(&error)))? {
            None => Ok(Store { connection, name }),
            Some(why) => Err(failed(why)),
        }
    }

    /// Opens one that is there already: one that only reads makes none.
    pub fn open_existing(file: &Path) -> Result<Store, StoreError> {
        if !file.exists() {
            let why = "there is no such file; `ntcopy survey run` or `ntcopy survey add` makes it";
            let place = file.display().to_string();
            return Err(StoreError::Open { place, why: why.to_owned() });
        }
        Store::open(file)
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn failed(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::Failed { place: self.name.clone(), why: why(error) }
    }

    fn damaged(&self, what: String) -> StoreError {
        StoreError::Damaged { place: self.name.clone(), what }
    }

    pub fn insert(&mut self, entry: &Entry) -> Result<Added, StoreError> {
        let failed = |why: String| StoreError::Failed { place: self.name.clone(), why };
        let summary = &entry.summary;
        let json = serde_json::to_string(summary).map_err(|error| failed(error.to_string()))?;
        let packed = zstd::bulk::compress(&entry.raw, ZSTD_LEVEL)
            .map_err(|error| failed(format!("cannot compress a record: {error}")))?;
        let digest = blake3::hash(&entry.raw).to_hex().to_string();
        let changed = self.connection.execute(
            "INSERT INTO record (id, fleet, node, asked, taken_unix_ns, counts, summary, digest, \
             raw_bytes, raw) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
             ON CONFLICT DO NOTHING",
            params![
                summary.record.0,
                entry.fleet,
                summary.node,
                entry.asked,
                whole(summary.taken_unix_ns),
                summary.not_counted.is_none(),
                json,
                digest,
                whole(entry.raw.len() as u64),
                packed,
            ],
        );
        if changed.map_err(|error| self.failed(&error))? == 1 {
            return Ok(Added::New);
        }
        let there = self.connection.query_row(
            "SELECT digest FROM record WHERE id = ?1",
            [&summary.record.0],
            |row| row.get::<_, String>(0),
        );
        let there = there.map_err(|error| self.failed(&error))?;
        Ok(if there == digest { Added::Known } else { Added::Differs })
    }

    /// What there is, of one fleet if it is named; oldest first.
    pub fn records(&self, fleet: Option<&str>) -> Result<Vec<Stored>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Stored>> {
            let sql = "SELECT summary, fleet, asked, raw_bytes FROM record \
                       WHERE ?1 IS NULL OR fleet = ?1 ORDER BY taken_unix_ns, id";
            let mut statement = self.connection.prepare(sql)?;
            let mut rows = statement.query([fleet])?;
            let mut found = Vec::new();
            while let Some(row) = rows.next()? {
                let json = row.get_ref(0)?.as_str()?;
                let summary = serde_json::from_str(json).map_err(|error| {
                    rusqlite::Error::FromSqlConversionFailure(
                        0,
                        rusqlite::types::Type::Text,
                        error.into(),
                    )
                })?;
                let raw_bytes = u64::try_from(row.get::<_, i64>(3)?).unwrap_or_default();
                found.push(Stored { summary, fleet: row.get(1)?, asked: row.get(2)?, raw_bytes });
            }
            Ok(found)
        };
        read().map_err(|error| self.failed(&error))
    }

    /// What of a fleet's nodes was asked and answered since a time (nanoseconds since 1970-01-01
    /// UTC): node and question, as [`Entry::asked`] has it.
    pub fn answered(
        &self,
        fleet: &str,
        since_unix_ns: u64,
    ) -> Result<Vec<(String, String)>, StoreError> {
        let read = || {
            let sql = "SELECT node, asked FROM record WHERE fleet = ?1 AND taken_unix_ns >= ?2 \
                       AND counts AND node IS NOT NULL AND asked IS NOT NULL";
            let mut statement = self.connection.prepare(sql)?;
            let since = whole(since_unix_ns);
            let rows =
                statement.query_map(params![fleet, since], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect::<rusqlite::Result<Vec<_>>>()
        };
        read().map_err(|error| self.failed(&error))
    }

    /// The bytes of a record's file.
    pub fn raw(&self, id: &RecordId) -> Result<Option<Vec<u8>>, StoreError> {
        let found = self.connection.query_row(
            "SELECT raw, raw_bytes, digest FROM record WHERE id = ?1",
            [&id.0],
            |row| Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, i64>(1)?, row.get::<_, String>(2)?)),
        );
        let found = found.optional().map_err(|error| self.failed(&error))?;
        let Some((packed, length, digest)) = found else { return Ok(None) };
        let length = usize::try_from(length.clamp(0, LARGEST_RECORD_BYTES)).unwrap_or(usize::MAX);
        let raw = zstd::bulk::decompress(&packed, length)
            .map_err(|error| self.damaged(format!("the record {id} does not unpack: {error}")))?;
        if blake3::hash(&raw).to_hex().as_str() != digest {
            let what = format!("the record {id} is not what was put in: its digest differs");
            return Err(self.damaged(what));
        }
        Ok(Some(raw))
    }
}

/// SQLite's whole numbers are signed: enough for nanoseconds until the year 2262.
fn whole(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Makes the table where there is none; gives the reason why the file is no store for us.
fn set_up(connection: &mut Connection) -> rusqlite::Result<Option<String>> {
    // No lock is taken: another program may be writing for a while.
    if version(connection)? == VERSION {
        return Ok(None);
    }
    // Of several programs that open a new store at once, one makes the table and the others wait.
    let inside = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&inside)?;
    if found == VERSION {
        return Ok(None);
    }
    if found != 0 {
        return Ok(Some(format!(
            "it has version {found} of the tables, and this ntcopy knows version {VERSION}: use a \
             newer ntcopy"
        )));
    }
    let tables = |sql: &str| inside.query_row(sql, [], |row| row.get::<_, i64>(0));
    if tables("SELECT COUNT(*) FROM sqlite_schema WHERE name = 'ntcopy_record'")? > 0 {
        let why = "it was made by ntcopy 0.2.0: write its records out by that program's `ntcopy \
                   survey export`, and add them to a new store";
        return Ok(Some(why.to_owned()));
    }
    if tables("SELECT COUNT(*) FROM sqlite_schema")? > 0 {
        return Ok(Some("it is the database of another program: name another file".to_owned()));
    }
    inside.execute_batch(TABLE)?;
    inside.commit()?;
    Ok(None)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_syncs_the_folder_of_its_journal() {
        let folder = tempfile::tempdir().unwrap();
        let opened = Store::open(&folder.path().join("new/folder/survey.sqlite")).unwrap();
        let pragma = |name: &str| {
            opened.connection.query_row(&format!("PRAGMA {name}"), [], |row| {
                row.get::<_, rusqlite::types::Value>(0)
            })
        };
        // 3 is EXTRA, which says nothing of the other kinds of journal.
        assert_eq!(pragma("synchronous").unwrap(), 3.into());
        assert_eq!(pragma("journal_mode").unwrap(), "delete".to_owned().into());
    }
}
