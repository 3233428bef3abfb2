//! What can go wrong with packages of a kernel, and what to do about it.

use std::path::PathBuf;

use crate::error::{Error, PartError};

/// A failure to make packages of a kernel.
#[derive(Debug, thiserror::Error)]
pub enum DebError {
    /// A name that a package cannot have.
    #[error(
        "--localversion '{0}' cannot be a part of a package's name: give a '-' and then lower-case \
         letters, digits, '.', '+' and '-', at most 40 of them, like -ntcopy"
    )]
    LocalVersion(String),
    /// The running kernel left its configuration nowhere.
    #[error(
        "the configuration of the running kernel, {release}, is not here (looked for {looked_for}): \
         give a file, --config FILE; the distribution's is in its package linux-image or linux-base"
    )]
    NoConfig {
        /// The running kernel.
        release: String,
        /// Where it could have been.
        looked_for: String,
    },
    /// A file that no kernel of ours can be made of.
    #[error("{path} is not a configuration that this can build: {reason}")]
    NotAConfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The configuration is of another kernel.
    #[error(
        "Linux {version} does not know {} of the {on} settings that are on in this configuration: \
         it is of another kernel. They are:\n{}\n--drop-unknown goes on without them; --release \
         takes another Linux",
        unknown.len(), listed(unknown)
    )]
    Unknown {
        /// Version of the source.
        version: String,
        /// Those that it does not know.
        unknown: Vec<String>,
        /// How many are on.
        on: usize,
    },
    /// The build ended well, and what it should have made is not there.
    #[error("make bindeb-pkg made no {what} in {folder}; its log: {log}")]
    NoPackage {
        /// What was looked for.
        what: &'static str,
        /// Where.
        folder: PathBuf,
        /// The log of the build.
        log: PathBuf,
    },
}

impl From<DebError> for Error {
    fn from(error: DebError) -> Error {
        let exit_code = error.exit_code();
        Error::Part(PartError::new(error, exit_code))
    }
}

impl DebError {
    /// Exit code of a program that ends with this error.
    fn exit_code(&self) -> u8 {
        match self {
            Self::LocalVersion(_) => 2,
            Self::NoConfig { .. } => 3,
            Self::NotAConfig { .. } | Self::Unknown { .. } | Self::NoPackage { .. } => 1,
        }
    }
}

/// How many names a message shows.
const SHOWN: usize = 40;

fn listed(names: &[String]) -> String {
    let mut text: String = names.iter().take(SHOWN).map(|name| format!("  {name}\n")).collect();
    if names.len() > SHOWN {
        text.push_str(&format!("  and {} more", names.len() - SHOWN));
    }
    text.trim_end().to_owned()
}
