//! The access log: a JSON object a line.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Buffered before it is written, in bytes; a worker also writes when it has nothing to do.
const FLUSH_BYTES: usize = 32 << 10;

/// The file, that can be opened anew after it was renamed.
#[derive(Debug)]
pub struct AccessLog {
    path: PathBuf,
    file: Mutex<File>,
}

impl AccessLog {
    pub fn open(path: &Path) -> io::Result<AccessLog> {
        Ok(AccessLog { path: path.to_owned(), file: Mutex::new(append(path)?) })
    }

    /// Opens the path anew.
    ///
    /// # Errors
    ///
    /// The same as [`open`](AccessLog::open); the old file stays in use then.
    pub fn reopen(&self) -> io::Result<()> {
        let file = append(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        Ok(())
    }

    fn write(&self, lines: &[u8]) {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(lines) {
            tracing::warn!(%error, path = %self.path.display(), "cannot write the access log");
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).open(path)
}

/// A worker's lines that are not written yet.
#[derive(Debug, Default)]
pub struct Lines(Vec<u8>);

impl Lines {
    pub fn push(&mut self, line: &serde_json::Value, log: &AccessLog) {
        // Writing to memory does not fail.
        let _ = serde_json::to_writer(&mut self.0, line);
        self.0.push(b'\n');
        if self.0.len() >= FLUSH_BYTES {
            self.flush(log);
        }
    }

    pub fn flush(&mut self, log: &AccessLog) {
        if !self.0.is_empty() {
            log.write(&self.0);
            self.0.clear();
        }
    }
}
