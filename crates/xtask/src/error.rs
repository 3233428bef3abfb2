//! What can go wrong, and the exit code that it maps to.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Usage(String),
    #[error("{doing}: {cause}")]
    Io { doing: String, cause: io::Error },
    #[error(transparent)]
    Kernel(#[from] ntcopy_kernel::Error),
    /// cargo has said why.
    #[error("the workspace does not build")]
    Build,
    #[error("{0}")]
    Failed(String),
    #[error("{0}")]
    NotHere(String),
    #[error("interrupted; everything that was started has been ended")]
    Interrupted,
}

impl Error {
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::NotHere(_) => 3,
            Self::Kernel(error) => error.exit_code(),
            Self::Interrupted => 130,
            Self::Io { .. } | Self::Build | Self::Failed(_) => 1,
        }
    }
}

/// Says what was being done when a call failed.
pub trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|cause| Error::Io { doing: what.into(), cause })
    }
}
