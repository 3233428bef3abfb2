//! What can go wrong, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A failure to get, build or boot a kernel.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name of a kernel that is not known.
    #[error("no kernel is called '{name}'; there are: {known}")]
    UnknownKind { name: String, known: String },
    /// A host that this crate cannot work on.
    #[error("{0}")]
    NotHere(String),
    /// Programs or headers that a build needs.
    #[error("{0}")]
    MissingTools(String),
    /// No kernel source could be found.
    #[error("no kernel source: {looked_for}. {fix}")]
    NoSource { looked_for: String, fix: String },
    /// A directory that is not a kernel source.
    #[error("{path} is not a Linux source tree: {reason}")]
    NotATree { path: PathBuf, reason: String },
    /// A package that does not hold what it should.
    #[error(
        "the package {path} is damaged: {reason}; ntcopy kernel clean --all lets it be downloaded \
         again"
    )]
    Damaged { path: PathBuf, reason: String },
    /// One of our numbers means something else in this source.
    #[error(
        "{ours} ({value:#x}) collides with {theirs} at {file}:{line} of Linux {version}: this \
         kernel gave the number away; uapi/ntcopy.h needs another one"
    )]
    Collision {
        ours: String,
        value: u64,
        theirs: String,
        file: String,
        line: usize,
        version: String,
    },
    /// A patch does not apply.
    #[error("patch {patch} does not apply to Linux {version}:\n{output}")]
    Patch { patch: String, version: String, output: String },
    /// Configuration symbols that did not come out as asked for.
    #[error("Linux {version} did not accept these settings of the configuration: {}", lost.join("; "))]
    ConfigLost { version: String, lost: Vec<String> },
    /// The compiler, or another step of the build, failed.
    #[error("{step} failed:\n{}\nthe whole log: {}", errors.join("\n"), log.display())]
    Build { step: String, errors: Vec<String>, log: PathBuf },
    /// Too little room on a file system.
    #[error(
        "too little room on {path} for {purpose}: {} MiB needed, {} MiB free, {} MiB missing; {fix}",
        mib(*needed_bytes), mib(*free_bytes), mib(needed_bytes - free_bytes)
    )]
    NoRoom { path: PathBuf, purpose: String, needed_bytes: u64, free_bytes: u64, fix: String },
    /// SIGINT, SIGTERM or SIGHUP came; everything was ended and cleared away.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
    /// The guest did not come up, or did not finish in time. It was killed.
    #[error("the guest {what} within {} s, and was killed; its last lines:\n{}", limit.as_secs_f32(), indent(last_lines))]
    TimedOut { what: &'static str, limit: Duration, last_lines: Vec<String> },
    /// The guest's kernel ended without having said how the command ended.
    #[error("the guest's kernel died ({how}); its last lines:\n{}", indent(last_lines))]
    Died { how: String, last_lines: Vec<String> },
    /// The guest refused its orders: a sysctl, a mount, a directory.
    #[error("in the guest: {0}")]
    Guest(String),
    /// The guest sent more than arrived.
    #[error(
        "the command's output is not whole: the guest sent {sent_bytes} bytes of it, and \
         {came_bytes} arrived"
    )]
    OutputLost { sent_bytes: u64, came_bytes: u64 },
    /// The running kernel refused the module, or keeps it.
    #[error("{0}")]
    Refused(String),
    /// A system call on the host failed.
    #[error("{doing} {path}: {source}")]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

/// Result with this crate's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Exit code of a program that ends with this error: 2 usage, 3 not available here, 128 + n
    /// for signal n, 1 for the rest.
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::UnknownKind { .. } => 2,
            Self::NotHere(_)
            | Self::MissingTools(_)
            | Self::NoSource { .. }
            | Self::NoRoom { .. } => 3,
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
        self.map_err(|source| Error::Io {
            doing,
            path: path.as_ref().to_path_buf(),
            source: source.into(),
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
