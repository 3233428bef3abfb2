//! What a guest's kernel said on its console, and the reports in it that something is wrong with
//! the kernel itself.
//!
//! A command that succeeds in a kernel that complains has not shown much, so every report counts,
//! whoever caused it. Marks are looked for at the beginning of a message only: programs may speak
//! of bugs as they like.

use std::path::Path;

use crate::kind::Machine;

/// A report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splat {
    /// Its first line, without the time.
    pub title: String,
    /// All of it, the first line included; a long one is cut.
    pub lines: Vec<String>,
}

/// How many lines of a report are kept.
const MOST_LINES: usize = 80;

/// What a report begins with, and how it ends.
const MARKS: &[(&str, End)] = &[
    ("BUG: KASAN: ", End::Ruler),
    ("BUG: KCSAN: ", End::Ruler),
    ("BUG: KFENCE: ", End::Ruler),
    ("UBSAN: ", End::Trace),
    // Slab debugging: "BUG kmalloc-64 (Not tainted): Right Redzone overwritten".
    ("BUG ", End::Task),
    // Sleeping in atomic context, bad page states, spinlocks, lost stacks.
    ("BUG: ", End::Task),
    ("kernel BUG at ", End::Trace),
    ("Oops", End::Trace),
    ("general protection fault", End::Trace),
    ("Kernel panic", End::Panic),
    // lockdep and RCU.
    ("WARNING: possible ", End::Task),
    ("WARNING: inconsistent lock state", End::Task),
    ("WARNING: suspicious RCU usage", End::Task),
    ("WARNING: bad unlock balance", End::Task),
    ("WARNING: held lock freed", End::Task),
    ("WARNING: lock held when returning to user space", End::Task),
    ("WARNING: Nested lock was not taken", End::Task),
    ("INFO: trying to register non-static key", End::Task),
    ("INFO: task ", End::Task),
    ("INFO: rcu", End::Task),
    ("rcu: INFO: ", End::Task),
    ("watchdog: BUG: soft lockup", End::Task),
    // WARN_ON and what is built on it: refcounts, lists, objects, DEBUG_NET.
    ("WARNING: ", End::Trace),
    // kmemleak, as init prints it when the command has ended.
    ("unreferenced object 0x", End::Indent),
];

/// What follows a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A line of `=`.
    Ruler,
    /// The end of a stack, `</TASK>` or `</IRQ>` on a line of its own.
    Task,
    /// `---[ end trace 0000000000000000 ]---`
    Trace,
    /// `---[ end Kernel panic … ]---`
    Panic,
    /// A line that is not indented.
    Indent,
}

/// The reports of a console, in their order.
pub(super) fn find(console: &str, machine: Machine) -> Vec<Splat> {
    let messages: Vec<&str> = console.lines().map(|line| message(line.trim_end())).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < messages.len() {
        let Some(end) = mark(messages[at]).filter(|_| !is_of_time(messages[at], machine)) else {
            at += 1;
            continue;
        };
        let length = length(&messages[at..], end);
        let lines = messages[at..].iter().take(length.min(MOST_LINES));
        found.push(Splat {
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

/// How a report ends that begins with this line.
fn mark(message: &str) -> Option<End> {
    MARKS.iter().find(|(mark, _)| message.starts_with(mark)).map(|(_, end)| *end)
}

/// Whether a report is about time: an emulated CPU has none to keep.
fn is_of_time(message: &str, machine: Machine) -> bool {
    let of_time = ["INFO: rcu", "rcu: INFO: ", "INFO: task ", "watchdog: BUG: soft lockup"];
    machine == Machine::Qemu && of_time.iter().any(|mark| message.starts_with(mark))
}

/// How many of the messages belong to the report that begins with the first.
fn length(messages: &[&str], end: End) -> usize {
    for (index, message) in messages.iter().enumerate().skip(1) {
        let is_ruler = message.len() >= 20 && message.chars().all(|c| c == '=');
        let is_last = match end {
            End::Ruler => is_ruler,
            End::Task => matches!(message.trim(), "</TASK>" | "</IRQ>"),
            End::Trace => message.starts_with("---[ end trace"),
            End::Panic => message.starts_with("---[ end Kernel panic"),
            End::Indent if message.starts_with(' ') => false,
            End::Indent => return index,
        };
        if is_last {
            return index + 1;
        }
        // The next report, where this one broke off. An oops says first what happened, then that
        // it is one.
        let is_next = message.starts_with("------------[ cut here ]") || is_ruler && index > 4;
        if is_next || mark(message).is_some() && !message.starts_with("Oops") {
            return index;
        }
    }
    messages.len()
}

/// How many lines an error shows.
const LAST_LINES: usize = 25;

/// The end of the console, for an error.
pub(super) fn last_lines(path: &Path) -> Vec<String> {
    let text = read_console(path);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    // After a fault come registers and the stack; what it was about stands at its beginning.
    let fault = lines.iter().position(|line| is_fatal(line));
    let from = fault.unwrap_or_else(|| lines.len().saturating_sub(LAST_LINES));
    lines[from..].iter().take(LAST_LINES).map(|line| (*line).to_owned()).collect()
}

/// All that the console holds.
pub(super) fn read_console(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
#[path = "splat_tests.rs"]
mod tests;
