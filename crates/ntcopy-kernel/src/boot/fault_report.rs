//! What a guest's kernel said on its console, and the reports in it that something is wrong with
//! the kernel itself.
//!
//! A command that succeeds in a kernel that complains has not shown much, so every report counts,
//! whoever caused it. Marks are looked for at the beginning of a message only: programs may speak
//! of bugs as they like.

use std::path::Path;

use crate::kind::RunsAs;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultReport {
    /// Its first line, without the time.
    pub title: String,
    /// All of it, the first line included; a long one is cut.
    pub lines: Vec<String>,
}

const MOST_LINES: usize = 80;

/// What a report begins with.
const MARKS: [&str; 14] = [
    // KASAN, KCSAN, KFENCE, sleeping in atomic context, bad page states, spinlocks, lost stacks.
    "BUG: ",
    // Slab debugging: "BUG kmalloc-64 (Not tainted): Right Redzone overwritten".
    "BUG ",
    "UBSAN: ",
    "kernel BUG at ",
    "Oops",
    "general protection fault",
    "Kernel panic",
    // WARN_ON and what is built on it: refcounts, lists, objects, DEBUG_NET; lockdep; RCU.
    "WARNING: ",
    "INFO: trying to register non-static key",
    "INFO: task ",
    "INFO: rcu",
    "rcu: INFO: ",
    "watchdog: BUG: soft lockup",
    // kmemleak, as init prints it when the command has ended.
    "unreferenced object 0x",
];

/// The reports of a console, in their order.
pub(super) fn find(console: &str, runs_as: RunsAs) -> Vec<FaultReport> {
    let messages: Vec<&str> = console.lines().map(|line| message(line.trim_end())).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < messages.len() {
        if !is_fault(messages[at]) || is_of_time(messages[at], runs_as) {
            at += 1;
            continue;
        }
        let length = length(&messages[at..]);
        let lines = messages[at..].iter().take(length.min(MOST_LINES));
        found.push(FaultReport {
            title: messages[at].to_owned(),
            lines: lines.map(|line| (*line).to_owned()).collect(),
        });
        at += length;
    }
    found
}

/// Whether what a line says ends a kernel, for showing why a guest died.
pub(super) fn is_fatal(line: &str) -> bool {
    let message = message(line.trim_end());
    let fatal = ["BUG: ", "kernel BUG at ", "Oops", "general protection fault", "Kernel panic"];
    fatal.iter().any(|mark| message.starts_with(mark))
}

/// What a line says, without the time and the CPU or thread before it:
/// `[   12.345678] [ T42] text`, `[   12.345678][ T42] text`.
fn message(line: &str) -> &str {
    let mut rest = line;
    while let Some(inner) = rest.strip_prefix('[') {
        let Some((stamp, after)) = inner.split_once(']') else { break };
        let is_stamp = !stamp.is_empty()
            && stamp.chars().all(|c| c.is_ascii_digit() || matches!(c, ' ' | '.' | 'T' | 'C'));
        if !is_stamp {
            break;
        }
        rest = after.strip_prefix(' ').unwrap_or(after);
    }
    rest
}

fn is_fault(message: &str) -> bool {
    MARKS.iter().any(|mark| message.starts_with(mark))
}

/// Whether a report is about time: an emulated CPU has none to keep.
fn is_of_time(message: &str, runs_as: RunsAs) -> bool {
    let of_time = ["INFO: rcu", "rcu: INFO: ", "INFO: task ", "watchdog: BUG: soft lockup"];
    runs_as == RunsAs::Qemu && of_time.iter().any(|mark| message.starts_with(mark))
}

/// How many of the messages belong to the report that begins with the first.
fn length(messages: &[&str]) -> usize {
    let has_ruler = messages[0].starts_with("BUG: K");
    let is_leak = messages[0].starts_with("unreferenced object");
    for (index, message) in messages.iter().enumerate().skip(1) {
        let is_ruler = message.len() >= 20 && message.chars().all(|c| c == '=');
        let is_end =
            matches!(message.trim(), "</TASK>" | "</IRQ>") || message.starts_with("---[ end ");
        if if has_ruler { is_ruler } else { is_end } {
            return index + 1;
        }
        // The next report, where this one broke off. An oops says first what happened, then that
        // it is one.
        let is_next = message.starts_with("------------[ cut here ]")
            || is_fault(message) && !message.starts_with("Oops");
        if is_next || is_leak && !message.starts_with(' ') {
            return index;
        }
    }
    messages.len()
}

/// How many lines an error shows.
const LAST_LINES: usize = 25;

pub(super) fn last_lines(path: &Path) -> Vec<String> {
    let text = read_console(path);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    // After a fault come registers and the stack; what it was about stands at its beginning.
    let fault = lines.iter().position(|line| is_fatal(line));
    let from = fault.unwrap_or_else(|| lines.len().saturating_sub(LAST_LINES));
    lines[from..].iter().take(LAST_LINES).map(|line| (*line).to_owned()).collect()
}

pub(super) fn read_console(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
#[path = "fault_report_tests.rs"]
mod tests;
