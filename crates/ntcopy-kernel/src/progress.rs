//! Telling how far a long step has come.

use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Hears how a build goes on.
pub trait Progress {
    /// Something worth a line of its own, that stays: what was chosen, what is waited for.
    fn note(&mut self, text: &str);
    fn begin(&mut self, step: &str);
    /// What is done of the step, in a unit of its own.
    fn advance(&mut self, done: u64);
    fn end(&mut self);
}

pub fn for_stderr() -> Box<dyn Progress> {
    Box::new(Lines::default())
}

const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A line for each step, and one every ten seconds.
#[derive(Default)]
struct Lines {
    step: String,
    begun: Option<Instant>,
    spoke: Option<Instant>,
}

impl Progress for Lines {
    fn note(&mut self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    fn begin(&mut self, step: &str) {
        let now = Some(Instant::now());
        *self = Self { step: step.to_owned(), begun: now, spoke: now };
        self.note(step);
    }

    fn advance(&mut self, done: u64) {
        let (Some(begun), Some(spoke)) = (self.begun, self.spoke) else { return };
        if spoke.elapsed() >= LINE_INTERVAL {
            self.spoke = Some(Instant::now());
            let gone_s = begun.elapsed().as_secs();
            self.note(&format!("{}: {done} done, {gone_s} s gone", self.step));
        }
    }

    fn end(&mut self) {
        self.begun = None;
    }
}
