//! What can go wrong, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A failure to get, build or boot a kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no kernel is called '{name}'; there are: {known}")]
    UnknownKind { name: String, known: String },
    #[error("{0}")]
    NotHere(String),
    #[error("no kernel source: {looked_for}. {fix}")]
    NoSource { looked_for: String, fix: String },
    #[error("{path} is not a Linux source tree: {reason}")]
    NotATree { path: PathBuf, reason: String },
    #[error(
        "the package {path} is damaged: {reason}; ntcopy kernel clean --all lets it be downloaded \
         again"
    )]
    Damaged { path: PathBuf, reason: String },
    #[error(
        "{ours} ({value:#x}) collides with {theirs} at {file}:{line} of Linux {version}: this \
         kernel gave the number away; uapi/ntcopy/uapi.h needs another one"
    )]
    Collision {
        ours: String,
        value: u64,
        theirs: String,
        file: String,
        line: usize,
        version: String,
    },
    #[error("patch {patch} does not apply to Linux {version}:\n{output}")]
    Patch { patch: String, version: String, output: String },
    /// Behind it is why this source cannot be taken.
    #[error("the patches are for Linux {made_for}, and this source is {version}{instead}: {cause}")]
    OtherVersion { made_for: &'static str, version: String, instead: String, cause: Box<Error> },
    #[error("Linux {version} did not accept these settings of the configuration: {}", lost.join("; "))]
    ConfigLost { version: String, lost: Vec<String> },
    #[error("{step} failed:\n{}\nthe whole log: {}", errors.join("\n"), log.display())]
    Build { step: String, errors: Vec<String>, log: PathBuf },
    #[error(
        "too little room on {path} for {purpose}: {} MiB needed, {} MiB free, {} MiB missing; {fix}",
        mib(*needed_bytes), mib(*free_bytes), mib(needed_bytes - free_bytes)
    )]
    NoRoom { path: PathBuf, purpose: String, needed_bytes: u64, free_bytes: u64, fix: String },
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
    #[error("the guest {what} within {} s, and was killed; its last lines:\n{}", limit.as_secs_f32(), indent(last_lines))]
    TimedOut { what: &'static str, limit: Duration, last_lines: Vec<String> },
    #[error("the guest's kernel died ({how}); its last lines:\n{}", indent(last_lines))]
    Died { how: String, last_lines: Vec<String> },
    #[error("in the guest: {0}")]
    Guest(String),
    #[error(
        "the command's output is not whole: the guest sent {sent_bytes} bytes of it, and \
         {came_bytes} arrived"
    )]
    OutputLost { sent_bytes: u64, came_bytes: u64 },
    #[error("{0}")]
    Refused(String),
    #[error("{doing} {path}: {cause}")]
    Io { doing: &'static str, path: PathBuf, cause: io::Error },
}

pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Exit code of a program that ends with this error: 2 usage, 3 not available here, 128 + n
    /// for signal n, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownKind { .. } => 2,
            Self::NotHere(_) | Self::NoSource { .. } | Self::NoRoom { .. } => 3,
            Self::Interrupted(signal) => 128u8.wrapping_add(*signal as u8),
            _ => 1,
        }
    }
}

/// Adds to an I/O error what was being done, and to what.
pub(crate) trait Context<T> {
    fn doing(self, doing: &'static str, path: impl AsRef<Path>) -> Result<T>;
}

impl<T, E: Into<io::Error>> Context<T> for std::result::Result<T, E> {
    fn doing(self, doing: &'static str, path: impl AsRef<Path>) -> Result<T> {
        self.map_err(|cause| Error::Io {
            doing,
            path: path.as_ref().to_path_buf(),
            cause: cause.into(),
        })
    }
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

fn indent(lines: &[String]) -> String {
    if lines.is_empty() {
        return "  (it said nothing)".into();
    }
    lines.iter().map(|line| format!("  {line}")).collect::<Vec<_>>().join("\n")
}
