//! Watching, from the host's side, a record grow that a booted kernel writes.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use ntcopy_record::FILE_NAME;

/// Seldom enough to cost the guest nothing, often enough for a bar.
const EVERY: Duration = Duration::from_millis(500);

/// A bar on standard error, if that is a terminal, until dropped.
pub struct Watch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Begins to watch for a record of `samples` samples.
    pub fn start(place: &Path, samples: u64) -> Watch {
        let over = Arc::new(AtomicBool::new(false));
        let bar = ProgressBar::with_draw_target(Some(samples), ProgressDrawTarget::stderr());
        if bar.is_hidden() {
            return Watch { over, thread: None };
        }
        let style = "in the booted kernel [{bar:30}] {pos}/{len} samples, {eta} left";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        let (file, seen) = (place.join(FILE_NAME), Arc::clone(&over));
        let thread = thread::spawn(move || follow(&file, &bar, &seen));
        Watch { over, thread: Some(thread) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic in the bar must not hide the measurement.
            let _ = thread.join();
        }
    }
}

fn follow(file: &Path, bar: &ProgressBar, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        bar.set_position(samples(file));
        thread::park_timeout(EVERY);
    }
    bar.finish_and_clear();
}

/// Samples in the file so far; it may not be there yet.
fn samples(file: &Path) -> u64 {
    let text = fs::read(file).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    lines.filter(|line| line.starts_with(br#"{"type":"sample""#)).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_counted_as_they_come() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join(FILE_NAME);
        assert_eq!(samples(&file), 0);
        fs::write(&file, "{\"type\":\"cell\"}\n{\"type\":\"sample\",\"cell\":0}\n{\"typ").unwrap();
        assert_eq!(samples(&file), 1);
    }

    #[test]
    fn a_watch_ends_when_dropped() {
        let place = tempfile::tempdir().unwrap();
        drop(Watch::start(place.path(), 10));
    }
}
