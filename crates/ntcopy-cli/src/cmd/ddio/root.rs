//! The folder below which everything is read and written: `/`, or a recorded machine.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// That folder.
pub struct Root(PathBuf);

impl Root {
    pub fn new(folder: &Path) -> Root {
        Root(folder.to_owned())
    }

    /// A path that is absolute on the machine, as it is here.
    pub fn at(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }

    /// A text file, trimmed; none where it cannot be read.
    pub fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.at(path)).ok().map(|text| text.trim().to_owned())
    }

    /// The names in a folder, sorted; empty where there is none.
    pub fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(path)) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

/// What an error at a register means and what to do about it.
pub fn explain(error: &io::Error, what: &str) -> String {
    use rustix::io::Errno;
    let fix = match Errno::from_io_error(error) {
        Some(Errno::NOENT) => "it is not there",
        Some(Errno::ACCESS) => "only root may: run it with sudo",
        Some(Errno::PERM) => {
            "refused even so: it needs root, and a kernel that is not locked down (Secure Boot; \
             for MSRs, also msr.allow_writes=on)"
        }
        Some(Errno::IO | Errno::NXIO) => "this CPU has no such register",
        _ if error.kind() == io::ErrorKind::UnexpectedEof => "it ends before that register",
        _ => return format!("{what}: {error}"),
    };
    format!("{what}: {fix}")
}
