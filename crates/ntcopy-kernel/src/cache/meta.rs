//! What is known about a built kernel, kept beside it as `meta.json`.

use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceId {
    Package {
        name: String,
        version: String,
    },
    Tree {
        path: String,
        /// Hash over the names, sizes and times of its files.
        digest: String,
    },
}

impl fmt::Display for SourceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package { name, version } => write!(f, "{name} {version}"),
            Self::Tree { path, digest } => {
                write!(f, "{path} ({})", digest.get(..12).unwrap_or(digest))
            }
        }
    }
}

/// What a kernel was made of, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// Number of the recipe; another number makes the kernel stale.
    pub recipe: u32,
    pub kind: String,
    pub version: String,
    /// What `uname -r` says in it.
    pub release: String,
    pub source: SourceId,
    pub series: String,
    pub patches: Vec<String>,
    /// Hash of the configuration fragment, hexadecimal.
    pub config: String,
    /// When it was built, in seconds since 1970.
    pub built_unix_s: u64,
}
