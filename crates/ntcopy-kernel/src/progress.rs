//! Telling how far a long step has come.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Hears how a build goes on.
pub trait Progress {
    /// Something worth a line of its own, that stays: what was chosen, what is waited for.
    fn note(&mut self, text: &str);
    /// A step begins. With a total it is counted.
    fn begin(&mut self, step: &str, total: Option<u64>);
    /// What is done of the step, in the unit of the total.
    fn advance(&mut self, done: u64);
    fn end(&mut self);
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn note(&mut self, _text: &str) {}
    fn begin(&mut self, _step: &str, _total: Option<u64>) {}
    fn advance(&mut self, _done: u64) {}
    fn end(&mut self) {}
}

pub fn for_stderr() -> Box<dyn Progress> {
    Box::new(Lines::default())
}

const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A line for each step, and one every ten seconds.
#[derive(Default)]
struct Lines {
    step: String,
    total: Option<u64>,
    begun: Option<Instant>,
    spoke: Option<Instant>,
}

impl Progress for Lines {
    fn note(&mut self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    fn begin(&mut self, step: &str, total: Option<u64>) {
        let now = Some(Instant::now());
        *self = Self { step: step.to_owned(), total, begun: now, spoke: now };
        self.note(step);
    }

    fn advance(&mut self, done: u64) {
        let (Some(begun), Some(spoke)) = (self.begun, self.spoke) else { return };
        if spoke.elapsed() >= LINE_INTERVAL {
            self.spoke = Some(Instant::now());
            self.note(&line(&self.step, done, self.total, begun.elapsed()));
        }
    }

    fn end(&mut self) {
        self.begun = None;
    }
}

/// "downloading: 43 %, 51 s gone"
fn line(step: &str, done: u64, total: Option<u64>, gone: Duration) -> String {
    let gone_s = gone.as_secs();
    match total.filter(|&total| total > 0) {
        Some(total) => format!("{step}: {} %, {gone_s} s gone", (done * 100 / total).min(100)),
        None => format!("{step}: {done} done, {gone_s} s gone"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_done_and_never_more_than_all() {
        let line = |done, total| line("compiling", done, total, Duration::from_secs(30));
        assert_eq!(line(250, Some(1000)), "compiling: 25 %, 30 s gone");
        assert_eq!(line(1200, Some(1000)), "compiling: 100 %, 30 s gone");
        assert_eq!(line(7, None), "compiling: 7 done, 30 s gone");
    }
}
