//! What programs of the suite say: the Test Anything Protocol.

use std::fmt::Write as _;

/// Skips that are right in every kernel: a socket that is both ends has no other end, and a
/// user-mode kernel has no huge pages.
const SKIPS_ANYWHERE: [&str; 3] =
    ["one socket is both ends", "no such huge pages here", "takes no bundles"];

/// How programs of the suite ended.
#[derive(Debug, Default)]
pub struct Report {
    plan: Option<usize>,
    pub passed: usize,
    pub skipped: Vec<String>,
    pub failed: Vec<String>,
    exit: Option<i32>,
}

impl Report {
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>) -> Self {
        let mut report = Self::default();
        for line in lines {
            if let Some(plan) = line.strip_prefix("1..") {
                report.plan = plan.split(' ').next().and_then(|count| count.parse().ok());
            } else if line.starts_with("not ok ") || line.starts_with("Bail out!") {
                report.failed.push(line.to_owned());
            } else if line.starts_with("ok ") {
                match line.split_once("# SKIP") {
                    Some((_, reason)) => report.skipped.push(reason.trim_start().to_owned()),
                    None => report.passed += 1,
                }
            } else if let Some(code) = line.strip_prefix("# exit ") {
                report.exit = code.parse().ok();
            }
        }
        report
    }

    /// What is wrong with one program, a line each. Without a number of tests its own plan is one;
    /// a skipped test has to say what the kernel lacks.
    pub fn faults(&self, name: &str, tests: Option<usize>, lacks: &[&str]) -> String {
        let mut text = String::new();
        let ran = self.passed + self.skipped.len() + self.failed.len();
        let tests = tests.or(self.plan).unwrap_or_default();
        if self.plan != Some(tests) || ran != tests || self.passed == 0 {
            let _ = writeln!(text, "{name}: {ran} tests of plan {:?}, not {tests}", self.plan);
        }
        if self.exit != Some(0) {
            let _ = writeln!(text, "{name}: exit code {:?}", self.exit);
        }
        let expected = |reason: &&String| {
            let mut known = SKIPS_ANYWHERE.iter().chain(lacks);
            !known.any(|start| reason.starts_with(start))
        };
        for reason in self.skipped.iter().filter(expected) {
            let _ = writeln!(text, "{name}: skipped for no reason that is known here: {reason}");
        }
        text
    }
}

/// What a program said, of all that were run one after another.
pub fn section<'a>(output: &'a str, program: &str) -> impl Iterator<Item = &'a str> {
    let begin = format!("# program {program}");
    let lines = output.lines().skip_while(move |line| *line != begin).skip(1);
    lines.take_while(|line| !line.starts_with("# program "))
}
