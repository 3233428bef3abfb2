//! What is said goes to standard error from a thread of its own. Where nobody reads it, the lines
//! that are too many are lost, and counted; whoever had something to say goes on.
//!
//! tracing-appender's writer says on standard output that it could not end in time, which hangs
//! where that is what is not read.

use std::fmt;
use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, sleep};
use std::time::{Duration, Instant};

use rustix::fd::AsFd;
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::{Format, Full, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, format};
use tracing_subscriber::registry::LookupSpan;

use crate::metrics::Counter;

/// Lines that wait to be written.
const LINES: usize = 4096;
/// How long the end of a program waits for the last of them.
const PATIENCE: Duration = Duration::from_secs(1);

static QUEUE: OnceLock<Queue> = OnceLock::new();
static LOST: Counter = Counter::new();

/// Lines of this process that were not written.
pub(crate) fn lost() -> u64 {
    LOST.get()
}

/// Dropped, it waits a little for what was said to be written.
#[derive(Debug)]
#[must_use]
pub struct Log(());

impl Log {
    /// Has what is logged, and what a panic says, go to standard error from now on.
    pub(crate) fn begin(level: LevelFilter) -> io::Result<Log> {
        let (sender, lines) = sync_channel(LINES);
        let writer = Builder::new().name("log".to_owned());
        writer.spawn(move || write_all(&lines, &mut io::stderr()))?;
        let queue = QUEUE.get_or_init(|| Queue { lines: sender, waiting: AtomicUsize::new(0) });
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || queue)
            .with_max_level(level)
            .with_target(false)
            // What can't be written is counted, and not told in the same place.
            .log_internal_errors(false);
        if is_journal() {
            let line = format().with_target(false).with_ansi(false).without_time();
            subscriber.event_format(Prioritised(line)).init();
        } else {
            subscriber.init();
        }
        std::panic::set_hook(Box::new(|panic| {
            tracing::error!("{}", panic.to_string().replace('\n', " "));
        }));
        Ok(Log(()))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let until = Instant::now() + PATIENCE;
        let waiting = || QUEUE.get().map_or(0, |queue| queue.waiting.load(Ordering::Acquire));
        while waiting() > 0 && Instant::now() < until {
            sleep(Duration::from_millis(1));
        }
    }
}

/// Says a line, by the log once that has begun.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    let priority = if is_journal() { "<3>" } else { "" };
    let line = format!("{priority}{line}\n");
    let _ = match QUEUE.get() {
        Some(mut queue) => queue.write_all(line.as_bytes()),
        None => io::stderr().write_all(line.as_bytes()),
    };
}

#[derive(Debug)]
struct Queue {
    lines: SyncSender<Vec<u8>>,
    waiting: AtomicUsize,
}

/// A line each.
impl Write for &Queue {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        if self.lines.try_send(line.to_vec()).is_err() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            LOST.up();
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_all(lines: &Receiver<Vec<u8>>, out: &mut impl Write) {
    let mut told = 0;
    for line in lines {
        if out.write_all(&line).is_err() {
            LOST.up();
        }
        let lost = LOST.get();
        if lost > told && tell(out, lost - told).is_ok() {
            told = lost;
        }
        if let Some(queue) = QUEUE.get() {
            queue.waiting.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

fn tell(out: &mut impl Write, lost: u64) -> io::Result<()> {
    let priority = if is_journal() { "<4>" } else { "" };
    writeln!(out, "{priority}{lost} lines of this log are lost: what reads it was too slow")
}

/// Whether standard error is systemd's journal, which has times of its own and reads priorities.
fn is_journal() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    let file = rustix::fs::fstat(io::stderr().as_fd());
    file.is_ok_and(|file| stream == format!("{}:{}", file.st_dev, file.st_ino))
}

/// A line with its priority, as sd-daemon(3) has it.
struct Prioritised(Format<Full, ()>);

impl<S, N> FormatEvent<S, N> for Prioritised
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let priority = match *event.metadata().level() {
            Level::ERROR => 3,
            Level::WARN => 4,
            Level::INFO => 6,
            Level::DEBUG | Level::TRACE => 7,
        };
        write!(writer, "<{priority}>")?;
        self.0.format_event(context, writer, event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_lost_is_told_once_somebody_reads_again() {
        let (sender, lines) = sync_channel(2);
        for line in ["one\n", "two\n"] {
            sender.send(line.into()).unwrap();
        }
        drop(sender);
        LOST.add(3);
        let mut out = Vec::new();
        write_all(&lines, &mut out);
        let expected = "one\n3 lines of this log are lost: what reads it was too slow\ntwo\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
