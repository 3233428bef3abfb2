//! What a test program prints, line by line, and what is counted of it.

use std::collections::BTreeSet;

/// What test programs came to, together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub passed: u64,
    pub failed: u64,
    pub skipped: u64,
}

impl Counts {
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

/// Reads the output of Rust's test programs, run with `--show-output`.
#[derive(Debug, Default)]
pub struct Report {
    pub counts: Counts,
    /// What a test found missing here, in its own words.
    pub not_run: BTreeSet<String>,
    /// The failed tests' own output.
    pub failures: String,
    /// Everything, for a program that ends without a result.
    pub all: String,
    in_failures: bool,
}

/// What a line is worth saying at once.
#[derive(Debug, PartialEq, Eq)]
pub enum News {
    Failed(String),
    Slow(String),
}

impl Report {
    pub fn read(&mut self, line: &str) -> Option<News> {
        self.all.push_str(line);
        self.all.push('\n');
        if let Some(counts) = counts(line) {
            self.counts.add(counts);
            self.in_failures = false;
            return None;
        }
        match line {
            "failures:" => self.in_failures = true,
            "successes:" => self.in_failures = false,
            _ => {}
        }
        if self.in_failures {
            self.failures.push_str(line);
            self.failures.push('\n');
        } else if let Some(why) = line.strip_prefix("not run: ") {
            self.not_run.insert(why.to_owned());
        }
        let test = line.strip_prefix("test ")?;
        if let Some(name) = test.strip_suffix(" ... FAILED") {
            return Some(News::Failed(name.to_owned()));
        }
        test.contains(" has been running for over ").then(|| News::Slow(test.to_owned()))
    }
}

/// `test result: ok. 97 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out; …`
fn counts(line: &str) -> Option<Counts> {
    let (_, numbers) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let number = |what: &str| {
        let part = numbers.split("; ").find_map(|part| part.strip_suffix(what))?;
        part.trim().parse().ok()
    };
    Some(Counts {
        passed: number("passed")?,
        failed: number("failed")?,
        skipped: number("ignored")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "
running 3 tests
test a::good ... ok
test a::bad ... FAILED
test a::slow has been running for over 60 seconds
test a::other ... ignored, make test-c

successes:

---- a::good stdout ----
not run: no nginx here

failures:

---- a::bad stdout ----
not run: said before it failed
thread 'a::bad' panicked

failures:
    a::bad

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s
";

    #[test]
    fn counts_failures_and_what_was_missing_are_told_apart() {
        let mut report = Report::default();
        let news: Vec<News> = SAID.lines().filter_map(|line| report.read(line)).collect();
        let slow = News::Slow("a::slow has been running for over 60 seconds".to_owned());
        assert_eq!(news, [News::Failed("a::bad".to_owned()), slow]);
        assert_eq!(report.counts, Counts { passed: 1, failed: 1, skipped: 1 });
        assert_eq!(report.not_run, ["no nginx here".to_owned()].into());
        assert!(report.failures.contains("thread 'a::bad' panicked"), "{}", report.failures);
        assert!(!report.failures.contains("nginx"), "{}", report.failures);
    }
}
