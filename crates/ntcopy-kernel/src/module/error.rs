//! What can go wrong with the module, and what to do about it.

use std::path::PathBuf;

use super::source::Range;
use crate::error::{Error, PartError};

/// A failure to build, load or unload the module.
#[derive(Debug, thiserror::Error)]
pub enum ModuleError {
    /// A kernel that the module's sources are not for.
    #[error(
        "the module is for kernels {range}, and this is {release}; {}",
        if *is_newer { "look for a newer version of ntcopy" } else { "older ones lack MSG_SPLICE_PAGES" }
    )]
    OutOfRange {
        /// The kernel's release.
        release: String,
        /// The kernels that the sources are for.
        range: Range,
        /// Whether the kernel is newer than those.
        is_newer: bool,
    },
    /// A kernel of this program that has the series, or takes no modules at all.
    #[error(
        "'{0}' is built without modules; those that take it are stock, stock:7.3, um+module, \
         x86+module and x86:6.12+module. For a kernel of your own, --headers names the source tree \
         that it was built in"
    )]
    TakesNoModule(&'static str),
    /// The headers of a kernel are not here.
    #[error("the headers of Linux {release} are not here ({looked_for}). {fix}")]
    NoHeaders {
        /// The kernel's release.
        release: String,
        /// Where they were looked for, and what was missing.
        looked_for: String,
        /// The one command that brings them.
        fix: String,
    },
    /// A folder that isn't what a module can be built against.
    #[error("{path} is not what a module can be built against: {reason}")]
    BadHeaders {
        /// The folder.
        path: PathBuf,
        /// What is missing or wrong, and what to do.
        reason: String,
    },
    /// The compiler that the kernel was built with is not here, and this one can't replace it.
    #[error(
        "Linux {release} was compiled by {wanted}, and building for it needs {program}, which is \
         not here; as root: apt-get install {package}"
    )]
    NoCompiler {
        /// The kernel's release.
        release: String,
        /// The compiler, as the kernel's configuration names it.
        wanted: String,
        /// The program that is looked for.
        program: String,
        /// The package that has it.
        package: String,
    },
    /// Compiling failed.
    #[error("{step} failed:\n{}\n{hint}the whole log: {}", errors.join("\n"), log.display())]
    Failed {
        /// The step.
        step: String,
        /// The first lines that look like errors.
        errors: Vec<String>,
        /// What the reason may be, with a newline, or empty.
        hint: String,
        /// The log.
        log: PathBuf,
    },
    /// What came out is not for the kernel that was asked for.
    #[error("{path} came out for Linux {made}, not {wanted}: the headers are of another kernel")]
    OtherKernel {
        /// The module.
        path: PathBuf,
        /// The release that it is for.
        made: String,
        /// The release that was asked for.
        wanted: String,
    },
    /// A folder that takes no files.
    #[error("{path} takes no files ({source}); --out DIR names another folder")]
    ReadOnly {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// No module has been built for this kernel.
    #[error(
        "there is no ntcopy.ko for Linux {release} (looked in {looked_in}); this makes one: \
         ntcopy module build"
    )]
    NotBuilt {
        /// The running kernel's release.
        release: String,
        /// Where it was looked for.
        looked_in: String,
    },
    /// The kernel has no use for the module: it knows the flag itself.
    #[error("this kernel knows MSG_NTCOPY itself; it needs no module, and takes none")]
    HasSeries,
    /// The kernel refused to load it, or to let go of it.
    #[error("{0}")]
    Refused(String),
    /// Sockets are attached.
    #[error("{0}")]
    InUse(String),
}

impl From<ModuleError> for Error {
    fn from(error: ModuleError) -> Error {
        let exit_code = error.exit_code();
        Error::Part(PartError::new(error, exit_code))
    }
}

impl ModuleError {
    /// 2 for a wrong argument, 3 for what is not to be had here, 1 for the rest.
    fn exit_code(&self) -> u8 {
        match self {
            Self::TakesNoModule(_) => 2,
            Self::OutOfRange { .. }
            | Self::NoHeaders { .. }
            | Self::BadHeaders { .. }
            | Self::NoCompiler { .. }
            | Self::NotBuilt { .. }
            | Self::HasSeries => 3,
            _ => 1,
        }
    }
}
