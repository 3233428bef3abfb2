//! The tables, as numbered steps from nothing to the newest version.
//!
//! A step is never changed once it was in a release: a store in the field has it as it was.

use std::time::{SystemTime, UNIX_EPOCH};

use super::StoreError;
use super::sql::{Database, Value, count, transaction};

/// The steps. The version of a store is the number of steps that were taken.
///
/// `{bytes}` and `{clustered}` stand for what the two databases write differently. Whole numbers
/// are `BIGINT` throughout; times are nanoseconds since 1970-01-01 UTC.
pub const MIGRATIONS: &[&str] = &["
CREATE TABLE ntcopy_machine (
    facts TEXT PRIMARY KEY,
    machine TEXT NOT NULL,
    cpu_signature TEXT NOT NULL,
    body TEXT NOT NULL
);
CREATE TABLE ntcopy_question (
    id BIGINT PRIMARY KEY,
    experiment TEXT NOT NULL,
    mode TEXT NOT NULL,
    baseline TEXT NOT NULL,
    metric TEXT NOT NULL,
    about TEXT NOT NULL,
    size_bytes BIGINT
);
CREATE TABLE ntcopy_record (
    id TEXT PRIMARY KEY,
    experiment TEXT NOT NULL,
    asked TEXT,
    fleet TEXT,
    node TEXT,
    facts TEXT NOT NULL REFERENCES ntcopy_machine (facts),
    taken_unix_ns BIGINT NOT NULL,
    added_unix_ns BIGINT NOT NULL,
    not_counted TEXT,
    format BIGINT NOT NULL,
    digest TEXT NOT NULL,
    raw_bytes BIGINT NOT NULL,
    raw {bytes}
);
CREATE INDEX ntcopy_record_asked ON ntcopy_record (fleet, node, asked, taken_unix_ns);
CREATE TABLE ntcopy_finding (
    record TEXT NOT NULL REFERENCES ntcopy_record (id) ON DELETE CASCADE,
    place BIGINT NOT NULL,
    question BIGINT NOT NULL REFERENCES ntcopy_question (id),
    ratio DOUBLE PRECISION NOT NULL,
    low DOUBLE PRECISION NOT NULL,
    high DOUBLE PRECISION NOT NULL,
    pairs BIGINT NOT NULL,
    PRIMARY KEY (record, place)
){clustered};
"];

/// Which steps were taken, and by whom.
const VERSIONS: &str = "
CREATE TABLE IF NOT EXISTS ntcopy_schema (
    version BIGINT PRIMARY KEY,
    ntcopy TEXT NOT NULL,
    taken_unix_ns BIGINT NOT NULL
)";

/// Takes the steps that are missing, in one transaction and under a lock: of several programs that
/// open a new store at once, one takes them and the others wait.
///
/// # Errors
///
/// When more steps were taken than are known, or one fails; the store is then as it was.
pub(super) fn migrate(db: &mut dyn Database, steps: &[&str]) -> Result<(), StoreError> {
    let dialect = db.dialect();
    // No lock is taken: most stores are up to date, and another program may be writing for a while.
    if version(db).is_ok_and(|found| found == known(steps)) {
        return Ok(());
    }
    transaction(db, dialect.begin, |db| {
        if !dialect.lock.is_empty() {
            db.batch(dialect.lock)?;
        }
        db.batch(VERSIONS)?;
        let found = version(db)?;
        if found > known(steps) {
            let place = db.name().to_owned();
            return Err(StoreError::TooNew { place, found, known: known(steps) });
        }
        for (number, step) in (1_i64..).zip(steps).filter(|(number, _)| *number > found) {
            let step = step.replace("{bytes}", dialect.bytes);
            db.batch(&step.replace("{clustered}", dialect.clustered))?;
            db.execute(
                "INSERT INTO ntcopy_schema (version, ntcopy, taken_unix_ns) VALUES ($1, $2, $3)",
                &[
                    Value::Int(number),
                    Value::Text(env!("CARGO_PKG_VERSION")),
                    Value::from(now_unix_ns()),
                ],
            )?;
        }
        Ok(())
    })
}

fn known(steps: &[&str]) -> i64 {
    i64::try_from(steps.len()).unwrap_or(i64::MAX)
}

/// Steps that were taken; an error where there is no table of them.
fn version(db: &mut dyn Database) -> Result<i64, StoreError> {
    let mut version = 0;
    db.query("SELECT COALESCE(MAX(version), 0) FROM ntcopy_schema", &[], &mut |row| {
        version = count(row, 0)?;
        Ok(())
    })?;
    Ok(i64::try_from(version).unwrap_or(i64::MAX))
}

/// Nanoseconds since 1970-01-01 UTC.
pub(super) fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::super::sqlite;
    use super::*;

    const ONE: &str = "CREATE TABLE one (id BIGINT)";
    const TWO: &str = "ALTER TABLE one ADD COLUMN name TEXT";

    fn columns(db: &mut dyn Database) -> u64 {
        let mut found = 0;
        let sql = "SELECT COUNT(*) FROM pragma_table_info('one')";
        db.query(sql, &[], &mut |row| {
            found = count(row, 0)?;
            Ok(())
        })
        .unwrap();
        found
    }

    #[test]
    fn steps_are_taken_once_and_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let mut db = sqlite::open(&folder.path().join("store")).unwrap();
        migrate(&mut db, &[ONE]).unwrap();
        migrate(&mut db, &[ONE]).unwrap();
        assert_eq!(columns(&mut db), 1);
        migrate(&mut db, &[ONE, TWO]).unwrap();
        assert_eq!(columns(&mut db), 2);
        assert_eq!(version(&mut db).unwrap(), 2);
    }

    #[test]
    fn a_newer_store_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let mut db = sqlite::open(&folder.path().join("store")).unwrap();
        migrate(&mut db, &[ONE, TWO]).unwrap();
        let error = migrate(&mut db, &[ONE]).unwrap_err();
        assert!(matches!(error, StoreError::TooNew { found: 2, known: 1, .. }), "{error}");
    }

    #[test]
    fn a_step_that_fails_leaves_the_store_as_it_was() {
        let folder = tempfile::tempdir().unwrap();
        let mut db = sqlite::open(&folder.path().join("store")).unwrap();
        migrate(&mut db, &[ONE]).unwrap();
        migrate(&mut db, &[ONE, TWO, "ALTER TABLE none ADD COLUMN x TEXT"]).unwrap_err();
        assert_eq!((version(&mut db).unwrap(), columns(&mut db)), (1, 1));
    }
}
