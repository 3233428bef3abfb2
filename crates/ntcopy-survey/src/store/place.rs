//! Which store is meant.

use std::fmt;
use std::path::{Path, PathBuf};

use super::{STORE_VARIABLE, StoreError};

/// A store, by name.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A PostgreSQL database, by URL.
    Postgres(String),
}

impl Place {
    /// Reads what was typed: a `postgres://` or `postgresql://` URL, or else a file.
    ///
    /// # Errors
    ///
    /// For a URL of something else.
    pub fn parse(text: &str) -> Result<Place, StoreError> {
        if text.is_empty() {
            return Err(StoreError::Place("the store has no name: --store FILE or URL".to_owned()));
        }
        match text.split_once("://") {
            Some(("postgres" | "postgresql", _)) => Ok(Place::Postgres(text.to_owned())),
            Some((scheme, _)) => Err(StoreError::Place(format!(
                "a store is a file (SQLite) or a postgresql:// URL, not a {scheme}:// URL"
            ))),
            None => Ok(Place::Sqlite(PathBuf::from(text))),
        }
    }

    /// The one that is meant when none is named: what [`STORE_VARIABLE`] says, or else
    /// `survey.sqlite` in the user's folder for ntcopy's data.
    ///
    /// # Errors
    ///
    /// When neither that nor `XDG_DATA_HOME` nor `HOME` says where.
    pub fn default_place() -> Result<Place, StoreError> {
        if let Ok(text) = std::env::var(STORE_VARIABLE)
            && !text.is_empty()
        {
            return Place::parse(&text);
        }
        let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let data = absolute("XDG_DATA_HOME")
            .or_else(|| Some(absolute("HOME")?.join(".local/share")))
            .ok_or_else(|| {
                StoreError::Place(
                    "neither XDG_DATA_HOME nor HOME names a directory: say --store FILE".to_owned(),
                )
            })?;
        Ok(Place::Sqlite(data.join("ntcopy/survey.sqlite")))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Sqlite(file) => Path::display(file).fmt(f),
            Place::Postgres(url) => f.write_str(&without_secrets(url)),
        }
    }
}

// Not derived: it would print the password.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Place({self})")
    }
}

/// A URL without password and parameters, either of which may hold a secret.
fn without_secrets(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgresql", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    // The last one: a password may hold an @ that was not escaped.
    let shown = match rest.rsplit_once('@') {
        Some((who, host)) => format!("{}@{host}", who.split(':').next().unwrap_or_default()),
        None => rest.to_owned(),
    };
    format!("{scheme}://{shown}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_postgres_and_all_else_a_file() {
        assert!(matches!(Place::parse("postgres://h/d"), Ok(Place::Postgres(_))));
        assert!(matches!(Place::parse("postgresql:///d?host=/run"), Ok(Place::Postgres(_))));
        assert_eq!(Place::parse("a/b.sqlite").unwrap(), Place::Sqlite("a/b.sqlite".into()));
        assert!(Place::parse("mysql://h/d").unwrap_err().to_string().contains("mysql"));
        assert!(Place::parse("").is_err());
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "postgresql://me:s3cret@host:5432/db",
            "postgresql://me:s3c@ret@host:5432/db",
            "postgresql://me@host:5432/db?password=s3cret",
        ] {
            let place = Place::parse(url).unwrap();
            assert_eq!(place.to_string(), "postgresql://me@host:5432/db");
            assert!(!format!("{place:?}").contains("s3c"));
        }
    }
}
