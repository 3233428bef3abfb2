//! The store in a PostgreSQL database.

use std::collections::HashMap;
use std::error::Error;

use ::postgres::config::SslMode;
use ::postgres::fallible_iterator::FallibleIterator as _;
use ::postgres::types::{IsNull, ToSql, Type};
use ::postgres::{Client, Config, Statement};
use bytes::BytesMut;

use super::place::Place;
use super::sql::{Database, Dialect, Each, Got, Row, Value};
use super::{StoreError, tls};

/// The number of the lock under which tables are changed: `ntcopy` in ASCII.
const LOCK: &str = "SELECT pg_advisory_xact_lock(121446163509369)";

/// An open connection.
pub struct Postgres {
    client: Client,
    name: String,
    prepared: HashMap<String, Statement>,
}

/// Connects.
pub fn open(url: &str) -> Result<Postgres, StoreError> {
    let name = Place::Postgres(url.to_owned()).to_string();
    let failed = |why: String| StoreError::Open { place: name.clone(), why };
    let (url, roots) = tls::options(url).map_err(failed)?;
    let mut config: Config =
        url.parse().map_err(|error: ::postgres::Error| failed(told(&error)))?;
    if config.get_password().is_none()
        && let Ok(password) = std::env::var("PGPASSWORD")
    {
        config.password(password);
    }
    if config.get_application_name().is_none() {
        config.application_name("ntcopy survey");
    }
    let mode = config.get_ssl_mode();
    let client = if mode == SslMode::Disable {
        config.connect(::postgres::NoTls)
    } else {
        config.connect(tls::connector(roots.as_deref()).map_err(failed)?)
    };
    let mut client = client.map_err(|error| failed(advised(&error, mode)))?;
    // What a new table's `IF NOT EXISTS` would say of one that is there.
    client
        .batch_execute("SET client_min_messages = warning")
        .map_err(|error| failed(told(&error)))?;
    Ok(Postgres { client, name, prepared: HashMap::new() })
}

/// An error with its causes: the server's own words are one of these.
fn told(error: &::postgres::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

/// The same of a failed connection, with what to do about TLS.
fn advised(error: &::postgres::Error, mode: SslMode) -> String {
    let text = told(error);
    if text.contains("certificate") || text.contains("UnknownIssuer") {
        return format!(
            "{text}: the server's certificate is not trusted here; name its authority with \
             sslrootcert=FILE in the URL, or say sslmode=disable on a network that you trust"
        );
    }
    if mode == SslMode::Require && text.contains("TLS") {
        return format!("{text}: the URL asks for TLS (sslmode), and the server does not offer it");
    }
    text
}

impl Postgres {
    fn failed(&self, error: &::postgres::Error) -> StoreError {
        StoreError::Failed { place: self.name.clone(), why: told(error) }
    }

    fn statement(&mut self, sql: &str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.prepared.get(sql) {
            return Ok(statement.clone());
        }
        let statement = self.client.prepare(sql).map_err(|error| self.failed(&error))?;
        self.prepared.insert(sql.to_owned(), statement.clone());
        Ok(statement)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(value) => value.to_sql(ty, out),
            Value::Real(value) => value.to_sql(ty, out),
            Value::Text(value) => value.to_sql(ty, out),
            Value::Bytes(value) => value.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::INT8, Type::FLOAT8, Type::TEXT, Type::BYTEA].contains(ty)
    }

    ::postgres::types::to_sql_checked!();
}

impl Row for ::postgres::Row {
    fn int(&self, column: usize) -> Got<Option<i64>> {
        self.try_get(column).map_err(|error| told(&error))
    }

    fn real(&self, column: usize) -> Got<f64> {
        self.try_get(column).map_err(|error| told(&error))
    }

    fn text(&self, column: usize) -> Got<Option<&str>> {
        self.try_get(column).map_err(|error| told(&error))
    }

    fn bytes(&self, column: usize) -> Got<Option<&[u8]>> {
        self.try_get(column).map_err(|error| told(&error))
    }
}

impl Database for Postgres {
    fn name(&self) -> &str {
        &self.name
    }

    fn dialect(&self) -> Dialect {
        Dialect {
            bytes: "BYTEA",
            clustered: "",
            begin: "BEGIN",
            begin_read: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            lock: LOCK,
        }
    }

    fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        self.client.batch_execute(sql).map_err(|error| self.failed(&error))
    }

    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> Result<u64, StoreError> {
        let statement = self.statement(sql)?;
        let values: Vec<&(dyn ToSql + Sync)> =
            values.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
        self.client.execute(&statement, &values).map_err(|error| self.failed(&error))
    }

    fn query(&mut self, sql: &str, values: &[Value<'_>], each: Each<'_>) -> Result<(), StoreError> {
        let statement = self.statement(sql)?;
        let place = self.name.clone();
        let failed = |why: String| StoreError::Failed { place: place.clone(), why };
        // Row by row: all findings of a fleet at once would be held twice.
        let mut rows = self
            .client
            .query_raw(&statement, values.iter().map(|value| value as &dyn ToSql))
            .map_err(|error| failed(told(&error)))?;
        while let Some(row) = rows.next().map_err(|error| failed(told(&error)))? {
            each(&row).map_err(failed)?;
        }
        Ok(())
    }
}
