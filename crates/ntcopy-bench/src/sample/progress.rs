//! A bar on standard error for measurements that take longer than a moment.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const MOMENT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    shown: bool,
}

impl Progress {
    /// A bar on standard error, if that is a terminal.
    pub fn on_stderr() -> Progress {
        Progress { bar: ProgressBar::hidden(), since: Instant::now(), shown: false }
    }

    pub fn none() -> Progress {
        Progress { shown: true, ..Progress::on_stderr() }
    }

    pub fn begin(&mut self, samples: u64) {
        self.bar.set_position(0);
        self.bar.set_length(samples);
        let style = "{msg} [{bar:30}] {pos}/{len} samples, {eta} left";
        let style = ProgressStyle::with_template(style).expect("a fixed template is one");
        self.bar.set_style(style.progress_chars("=> "));
    }

    pub fn at(&mut self, what: &str) {
        if !self.shown && self.since.elapsed() > MOMENT {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            self.shown = true;
        }
        self.bar.set_message(what.to_owned());
    }

    pub fn step(&mut self) {
        self.bar.inc(1);
    }

    pub fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}
