//! Telling how far a long step has come.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

/// Hears how a build goes on.
pub trait Progress {
    /// Something worth a line of its own, that stays: what was chosen, what is waited for.
    fn note(&mut self, text: &str);
    /// A step begins. With a total it is counted; `seconds` is what it is expected to take.
    fn begin(&mut self, step: &str, total: Option<u64>, seconds: Option<u64>);
    /// What is done of the step, in the unit of the total.
    fn advance(&mut self, done: u64);
    /// The step is over.
    fn end(&mut self);
}

/// Says nothing.
pub struct Silent;

impl Progress for Silent {
    fn note(&mut self, _text: &str) {}
    fn begin(&mut self, _step: &str, _total: Option<u64>, _seconds: Option<u64>) {}
    fn advance(&mut self, _done: u64) {}
    fn end(&mut self) {}
}

/// The progress that fits standard error: a bar on a terminal, else a line every ten seconds.
pub fn for_stderr() -> Box<dyn Progress> {
    if io::stderr().is_terminal() { Box::new(Bar::default()) } else { Box::new(Lines::default()) }
}

/// A bar with an estimate.
#[derive(Default)]
struct Bar {
    bar: Option<ProgressBar>,
}

impl Progress for Bar {
    fn note(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => eprintln!("{text}"),
        }
    }

    fn begin(&mut self, step: &str, total: Option<u64>, _seconds: Option<u64>) {
        self.end();
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr());
        let template = if total.is_some() {
            "{msg:<22} [{bar:32}] {percent:>3} %  {elapsed} gone, {to_go}"
        } else {
            "{msg:<22} {spinner} {elapsed}"
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("to_go", to_go).progress_chars("=> "));
        }
        bar.set_message(step.to_owned());
        bar.enable_steady_tick(Duration::from_millis(200));
        self.bar = Some(bar);
    }

    fn advance(&mut self, done: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(bar.length().map_or(done, |total| unfinished(done, total)));
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// What is shown of `done`: a total is what an earlier run took, and one that takes more must not
/// stand at 100 % and go on.
fn unfinished(done: u64, total: u64) -> u64 {
    done.min((total * 99 / 100).max(1))
}

/// Whether all is done that the estimate knows of.
fn is_overdue(done: u64, total: u64) -> bool {
    total > 1 && done >= total * 99 / 100
}

/// What is said then.
const OVERDUE: &str = "longer than expected";

/// Writes "about 3m to go", once something is done that this can be estimated from.
fn to_go(state: &ProgressState, text: &mut dyn std::fmt::Write) {
    let _ = match state.pos() {
        0 => write!(text, "time to go not known yet"),
        done if state.len().is_some_and(|total| is_overdue(done, total)) => {
            write!(text, "{OVERDUE}")
        }
        _ => write!(text, "about {:#} to go", HumanDuration(state.eta())),
    };
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.end();
    }
}

/// How often [`Lines`] speaks.
const LINE_INTERVAL: Duration = Duration::from_secs(10);

/// A line now and then, for logs.
#[derive(Default)]
struct Lines {
    step: String,
    total: Option<u64>,
    seconds: Option<u64>,
    begun: Option<Instant>,
    spoke: Option<Instant>,
}

impl Progress for Lines {
    fn note(&mut self, text: &str) {
        let _ = writeln!(io::stderr(), "{text}");
    }

    fn begin(&mut self, step: &str, total: Option<u64>, seconds: Option<u64>) {
        let now = Some(Instant::now());
        *self = Self { step: step.to_owned(), total, seconds, begun: now, spoke: now };
        match seconds {
            Some(seconds) => self.note(&format!("{step} (about {seconds} s on a quiet machine)")),
            None => self.note(step),
        }
    }

    fn advance(&mut self, done: u64) {
        let (Some(begun), Some(spoke)) = (self.begun, self.spoke) else { return };
        if spoke.elapsed() < LINE_INTERVAL {
            return;
        }
        self.spoke = Some(Instant::now());
        let line = line(&self.step, done, self.total, begun.elapsed(), self.seconds);
        self.note(&line);
    }

    fn end(&mut self) {
        self.begun = None;
    }
}

/// "compiling: 43 %, 51 s gone, about 68 s to go".
fn line(step: &str, done: u64, total: Option<u64>, gone: Duration, seconds: Option<u64>) -> String {
    let gone_s = gone.as_secs();
    let Some(total) = total.filter(|&total| total > 0) else {
        return format!("{step}: {gone_s} s gone");
    };
    let percent = unfinished(done, total) * 100 / total;
    if is_overdue(done, total) {
        return format!("{step}: {percent} %, {gone_s} s gone, {OVERDUE}");
    }
    let left_s = match seconds {
        _ if done > 0 => (gone.as_secs_f64() * (total - done) as f64 / done as f64).round() as u64,
        Some(seconds) => seconds.saturating_sub(gone_s),
        None => return format!("{step}: {gone_s} s gone, time to go not known yet"),
    };
    format!("{step}: {percent} %, {gone_s} s gone, about {left_s} s to go")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_extrapolates_from_what_is_done() {
        let text = line("compiling", 250, Some(1000), Duration::from_secs(30), None);
        assert_eq!(text, "compiling: 25 %, 30 s gone, about 90 s to go");
    }

    #[test]
    fn what_goes_on_is_never_at_its_end() {
        for done in [990, 1000, 1200] {
            let text = line("compiling", done, Some(1000), Duration::from_secs(60), None);
            assert_eq!(text, "compiling: 99 %, 60 s gone, longer than expected");
        }
        let text = line("compiling", 980, Some(1000), Duration::from_secs(98), None);
        assert_eq!(text, "compiling: 98 %, 98 s gone, about 2 s to go");
    }

    #[test]
    fn a_bar_stops_short_of_its_end_too() {
        assert_eq!(
            [0, 500, 990, 1000, 1200].map(|done| unfinished(done, 1000)),
            [0, 500, 990, 990, 990]
        );
        assert_eq!(unfinished(1, 1), 1);
    }

    #[test]
    fn nothing_is_said_of_the_time_before_anything_is_known_of_it() {
        let line = |seconds| line("compiling", 0, Some(1000), Duration::from_secs(6), seconds);
        assert_eq!(line(None), "compiling: 6 s gone, time to go not known yet");
        assert_eq!(line(Some(10)), "compiling: 0 %, 6 s gone, about 4 s to go");
    }

    #[test]
    fn without_a_total_only_the_time_is_told() {
        assert_eq!(
            line("downloading", 7, None, Duration::from_secs(4), None),
            "downloading: 4 s gone"
        );
    }
}
