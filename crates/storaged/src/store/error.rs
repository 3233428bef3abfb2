//! What can go wrong with an object.

use rustix::io::Errno;

use super::format::Corrupt;

/// Why the store could not do it. The texts are for a log; [`StoreError::kind`] is for a client.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// There is no object of this name.
    #[error("{key}: no such object")]
    NotFound {
        /// Its name.
        key: String,
    },
    /// The object is not, or not any more, what the request said that it must be.
    #[error("{key}: the object is not the one that the condition names")]
    Condition {
        /// Its name.
        key: String,
    },
    /// A byte on disk is not the one that was stored.
    #[error("{key}: {why}; restore the object, or delete it")]
    Corrupt {
        /// The object's name.
        key: String,
        /// What does not fit.
        why: Corrupt,
    },
    /// A system call failed.
    #[error("cannot {doing} {what}: {errno}")]
    Os {
        /// What was being done.
        doing: &'static str,
        /// To what.
        what: String,
        /// Why not.
        errno: Errno,
    },
}

/// Kinds of [`StoreError`], as a client can tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// No such object.
    NotFound,
    /// A condition does not hold.
    Condition,
    /// The object is damaged.
    Corrupt,
    /// The disk, the quota or the file size limit is reached: `ENOSPC`, `EDQUOT`, `EFBIG`.
    Full,
    /// Out of descriptors or memory: later it may work.
    Busy,
    /// The disk, or something else, failed.
    Failed,
}

impl StoreError {
    /// An error of a system call.
    pub fn os(doing: &'static str, what: impl Into<String>, errno: Errno) -> StoreError {
        StoreError::Os { doing, what: what.into(), errno }
    }

    /// Which kind it is.
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
