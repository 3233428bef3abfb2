//! What can go wrong with an object.

use std::io;

use rustix::io::Errno;

/// Why the index could not do it.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    #[error("it is out of use: its disk has failed, and it could not be recovered yet")]
    Lost,
    /// What the library says; its own type is large.
    #[error(transparent)]
    Library(Box<redb::Error>),
}

impl<E: Into<redb::Error>> From<E> for IndexError {
    fn from(error: E) -> IndexError {
        IndexError::Library(Box::new(error.into()))
    }
}

pub const CONDITION: &str = "the object is not the one that the condition names";

/// Why the store could not do it. The texts are for a log; [`StoreError::answer`] is for a client.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("{key}: no such object")]
    NotFound { key: String },
    #[error("{key}: {CONDITION}")]
    Condition { key: String },
    #[error("{key}: its file is gone, or too short; restore the object, or delete it")]
    Damaged { key: String },
    #[error("cannot {doing} {what}: {errno}")]
    Os { doing: &'static str, what: String, errno: Errno },
    #[error("cannot {doing} {what}: the index: {cause}")]
    Index { doing: &'static str, what: String, cause: IndexError },
}

impl StoreError {
    pub(super) fn os(doing: &'static str, what: impl Into<String>, errno: Errno) -> StoreError {
        StoreError::Os { doing, what: what.into(), errno }
    }

    pub(super) fn io(doing: &'static str, what: &str, error: &io::Error) -> StoreError {
        StoreError::os(doing, what, Errno::from_io_error(error).unwrap_or(Errno::IO))
    }

    pub(super) fn index(doing: &'static str, what: &str, cause: IndexError) -> StoreError {
        let io = match &cause {
            IndexError::Library(error) => match &**error {
                redb::Error::Io(error) => Some(error),
                _ => None,
            },
            IndexError::Lost => None,
        };
        match io {
            Some(error) => StoreError::io(doing, what, error),
            None => StoreError::Index { doing, what: what.to_owned(), cause },
        }
    }

    /// What a client is told: nothing of the machine's paths.
    pub fn answer(&self) -> (u16, &'static str) {
        match self {
            StoreError::NotFound { .. } => (404, "no such object"),
            StoreError::Condition { .. } => (412, CONDITION),
            StoreError::Damaged { .. } => (500, "the object is damaged, and was not sent"),
            StoreError::Os { errno: Errno::NOSPC | Errno::DQUOT | Errno::FBIG, .. } => {
                (507, "there is no room for the object")
            }
            StoreError::Os { errno: Errno::MFILE | Errno::NFILE | Errno::NOMEM, .. } => {
                (503, "out of descriptors or memory; try again")
            }
            StoreError::Index { cause: IndexError::Lost, .. } => {
                (503, "the disk has failed, and the index is not recovered yet; try again")
            }
            StoreError::Os { .. } | StoreError::Index { .. } => {
                (500, "the disk, or something else, failed")
            }
        }
    }
}
