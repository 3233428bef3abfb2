//! What several test programs came to, told as they end.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use crate::error::Error;
use crate::report::{Counts, News, Report};
use crate::running;

#[derive(Default)]
pub struct Sum(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    counts: Counts,
    not_run: BTreeSet<String>,
    failed: Vec<String>,
}

impl Sum {
    /// Runs one program, says what it came to, and adds that.
    pub fn run(&self, name: &str, command: Command) -> Result<(), Error> {
        running::check()?;
        let begun = Instant::now();
        let mut report = Report::default();
        let code = running::lines(command, |line| match report.read(line) {
            Some(News::Failed(test)) => println!("FAILED: {name}: {test}"),
            Some(News::Slow(words)) => println!("{name}: {words}"),
            None => {}
        })?;
        running::check()?;
        let Counts { passed, failed, skipped } = report.counts;
        let word = if code == Some(0) { "ok" } else { "FAILED" };
        let seconds = begun.elapsed().as_secs_f32();
        let mut line = format!("{word:<6} {seconds:>6.1} s  {passed:>4} passed");
        for (count, what) in [(failed, "failed"), (skipped, "skipped")] {
            if count > 0 {
                line += &format!(", {count} {what}");
            }
        }
        let mut inner = self.lock();
        println!("{line:<50} {name}");
        if code != Some(0) {
            // One that died has told no test's failure.
            let died = report.failures.is_empty();
            print!("{}", if died { &report.all } else { &report.failures });
            inner.failed.push(name.to_owned());
        }
        inner.counts.add(report.counts);
        inner.not_run.append(&mut report.not_run);
        Ok(())
    }

    pub fn fail(&self, what: String) {
        self.lock().failed.push(what);
    }

    pub fn failures(&self) -> usize {
        self.lock().failed.len()
    }

    /// Says what it all came to. An error if anything failed.
    pub fn end(&self, who: &str, skipped_for: &str) -> Result<(), Error> {
        let inner = self.lock();
        for why in &inner.not_run {
            println!("{who}: not run here: {why}");
        }
        let Counts { passed, failed, skipped } = inner.counts;
        println!("{who}: {passed} passed, {failed} failed, {skipped} skipped{skipped_for}");
        if inner.failed.is_empty() {
            return Ok(());
        }
        Err(Error::Failed(format!("failed: {}", inner.failed.join(", "))))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
