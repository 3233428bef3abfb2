//! The access log: lines of all workers, written by a thread of its own, so that no worker waits
//! for a disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Lines that wait to be written; those beyond are lost, and counted.
const WAITING: usize = 64 << 10;
/// How long lines gather.
const GATHER: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct AccessLog {
    path: PathBuf,
    file: Arc<Mutex<File>>,
    lines: Option<SyncSender<Vec<u8>>>,
    lost: AtomicU64,
    thread: Option<JoinHandle<()>>,
}

impl AccessLog {
    /// Opens the file to append; `-` stands for standard output.
    pub fn open(path: &Path) -> io::Result<AccessLog> {
        let file = Arc::new(Mutex::new(append(path)?));
        let (lines, waiting) = sync_channel(WAITING);
        let writer = (Arc::clone(&file), path.to_owned());
        let thread = thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write(&writer.0, &writer.1, &waiting))?;
        let (lines, thread) = (Some(lines), Some(thread));
        Ok(AccessLog { path: path.to_owned(), file, lines, lost: AtomicU64::new(0), thread })
    }

    /// Opens the path anew.
    ///
    /// # Errors
    ///
    /// It can't be opened; the old file stays in use then.
    pub fn reopen(&self) -> io::Result<()> {
        let file = append(&self.path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = file;
        Ok(())
    }

    /// Adds a line, which has its line feed.
    pub fn line(&self, line: Vec<u8>) {
        let kept = self.lines.as_ref().is_some_and(|lines| lines.try_send(line).is_ok());
        if !kept && self.lost.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::warn!("the access log can't keep up: lines are lost");
        }
    }

    /// Lines that were lost because those before them could not be written in time.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

impl Drop for AccessLog {
    /// Writes what waits.
    fn drop(&mut self) {
        self.lines = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn append(path: &Path) -> io::Result<File> {
    if path == Path::new("-") {
        return Ok(File::from(rustix::io::dup(io::stdout())?));
    }
    OpenOptions::new().create(true).append(true).open(path)
}

fn write(file: &Mutex<File>, path: &Path, lines: &Receiver<Vec<u8>>) {
    let mut failed = false;
    while let Ok(mut gathered) = lines.recv() {
        thread::sleep(GATHER);
        while let Ok(line) = lines.try_recv() {
            gathered.extend_from_slice(&line);
        }
        let written = file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&gathered);
        // A log that can't be written to is no reason to stop serving.
        if let Err(error) = &written
            && !failed
        {
            tracing::warn!(%error, path = %path.display(), "cannot write the access log");
        }
        failed = written.is_err();
    }
}

/// A text in which nothing ends the line or the quotes, and no terminal finds an order: whatever
/// is not visible ASCII or a blank is percent-encoded, and so are quotes and backslashes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | 0..0x20 | 0x7f.. => {
                let _ = std::fmt::Write::write_fmt(&mut out, format_args!("%{byte:02X}"));
            }
            plain => out.push(char::from(plain)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_in_order_and_follow_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let (path, old) = (folder.path().join("log"), folder.path().join("old"));
        let log = AccessLog::open(&path).unwrap();
        log.line(b"one\n".to_vec());
        log.line(b"two\n".to_vec());
        while std::fs::read(&path).unwrap() != b"one\ntwo\n" {
            thread::yield_now();
        }
        std::fs::rename(&path, &old).unwrap();
        log.reopen().unwrap();
        log.line(b"three\n".to_vec());
        drop(log);
        assert_eq!(std::fs::read(&path).unwrap(), b"three\n");
        assert_eq!(std::fs::read(&old).unwrap(), b"one\ntwo\n");
    }

    #[test]
    fn no_quote_breaks_out() {
        let text = "GET /a\"b\\\n\u{85}\u{9b}\u{2028}\u{1b}";
        assert_eq!(escape(text), "GET /a%22b%5C%0A%C2%85%C2%9B%E2%80%A8%1B");
    }
}
