//! What can go wrong with an object.

use rustix::io::Errno;

use super::format::Corrupt;

/// Why the store could not do it. The texts are for a log; [`StoreError::kind`] is for a client.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    #[error("{key}: no such object")]
    NotFound { key: String },
    #[error("{key}: the object is not the one that the condition names")]
    Condition { key: String },
    #[error("{key}: {why}; restore the object, or delete it")]
    Corrupt { key: String, why: Corrupt },
    #[error("cannot {doing} {what}: {errno}")]
    Os { doing: &'static str, what: String, errno: Errno },
}

/// Kinds of [`StoreError`], as a client can tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    NotFound,
    Condition,
    Corrupt,
    /// The disk, the quota or the file size limit is reached: `ENOSPC`, `EDQUOT`, `EFBIG`.
    Full,
    /// Out of descriptors or memory: later it may work.
    Busy,
    Failed,
}

impl StoreError {
    pub fn os(doing: &'static str, what: impl Into<String>, errno: Errno) -> StoreError {
        StoreError::Os { doing, what: what.into(), errno }
    }

    pub fn kind(&self) -> ErrorKind {
        match self {
            StoreError::NotFound { .. } => ErrorKind::NotFound,
            StoreError::Condition { .. } => ErrorKind::Condition,
            StoreError::Corrupt { .. } => ErrorKind::Corrupt,
            StoreError::Os { errno, .. } => match *errno {
                Errno::NOSPC | Errno::DQUOT | Errno::FBIG => ErrorKind::Full,
                Errno::MFILE | Errno::NFILE | Errno::NOMEM => ErrorKind::Busy,
                _ => ErrorKind::Failed,
            },
        }
    }
}
