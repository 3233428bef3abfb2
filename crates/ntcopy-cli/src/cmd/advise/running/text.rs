//! `ntcopy advise --pid` for a terminal.

use ntcopy::socket::{Support, kernel_support};
use ntcopy_inflight::follow::{Family, Sum};
use ntcopy_inflight::share::Share;
use ntcopy_inflight::watch::Seen;
use ntcopy_inflight::{Percentiles, Pid};
use ntcopy_judge::advice::Decision;
use ntcopy_record::foreign;
use ntcopy_report::advice as show;
use ntcopy_report::text::{about_size, percent, wrapped};

use super::sends::Sends;
use super::{Finding, Full, readers, touchers};

/// How many of all processes are listed.
const LISTED: usize = 20;
/// A send buffer that most responses fit in.
const ROOMY: u64 = 1 << 20;

/// What was seen, and what it comes to. Ends in a newline.
pub fn report(all: &[Finding<'_>], seen: &Seen, notes: &[String]) -> String {
    let mut out = String::new();
    if let [finding, others @ ..] = all {
        if others.is_empty() {
            out.push_str(&one(finding, seen));
        } else {
            out.push_str(&list(all));
        }
        out.push('\n');
        out.push_str(&advice(finding));
    }
    for note in notes {
        out.push_str(&wrapped(&format!("note: {note}")));
    }
    if !seen.missing.is_empty() {
        let families = seen.missing.join(", ");
        out.push_str(&wrapped(&format!("note: this kernel has no diagnostics of {families}")));
    }
    out
}

/// For `--watch`: a line. Ends in a newline.
pub fn line(finding: &Finding<'_>) -> String {
    let [p50, p90, last] = three(finding.in_flight).map(about_size);
    let ended = if finding.series.ended_after.is_some() { ", ended" } else { "" };
    format!(
        "{}: {}{p50} (p50), {p90} (p90), {last} ({}) in flight{ended}\n",
        name(finding),
        at_least(finding),
        last_title(finding.in_flight)
    )
}

fn one(finding: &Finding<'_>, seen: &Seen) -> String {
    let series = finding.series;
    let over = |of: &dyn Fn(&Sum) -> u64| Percentiles::of(series.samples.iter().map(of));
    let with_bytes = over(&|sum| sum.with_bytes() as u64).map_or(0, |found| found.p50);
    let sockets = over(&|sum| sum.sockets as u64).map_or(0, |found| found.p50);
    let sends = finding.sends.as_ref().map(|sends| wrapped(&sends.sentence(pid(finding))));
    let mut out = sends.unwrap_or_default();
    out.push_str(&wrapped(&format!(
        "{} has {}{} in flight (p50) on {with_bytes} of its {sockets} sockets.",
        name(finding),
        at_least(finding),
        about_size(finding.in_flight.p50),
    )));
    if let Some(full) = finding.buffers() {
        out.push_str(&wrapped(&buffers(&full)));
    }
    out.push('\n');
    out.push_str(&columns("", titles(finding.in_flight)));
    let mut row = |title: &str, found: Option<Percentiles>, format: &dyn Fn(u64) -> String| {
        if let Some(all) = found {
            out.push_str(&columns(title, three(all).map(format)));
        }
    };
    row("in flight", Some(finding.in_flight), &about_size);
    for family in Family::ALL {
        let found = over(&|sum| sum.parts[family as usize].bytes);
        if found.is_some_and(|all| all.max > 0) {
            row(&format!("  on its {} sockets", family.as_str()), found, &about_size);
        }
    }
    for reader in readers(finding) {
        let title = format!("  passed on by {} ({})", reader.name, reader.pid);
        row(&title, Some(reader.bytes), &about_size);
    }
    row("the most that one socket has", over(&|sum| sum.most_bytes), &about_size);
    row("sockets with any", over(&|sum| sum.with_bytes() as u64), &|count| count.to_string());
    if let Some(full) = finding.buffers() {
        row("sockets with a full buffer", Some(full.full), &|count| count.to_string());
    }
    out.push('\n');
    out.push_str(&rates(finding, seen));
    if let Some(share) = finding.share.as_ref().filter(|_| finding.idle().is_none()) {
        out.push_str(&wrapped(&copy(share)));
    }
    out.push_str(&unseen(finding));
    out
}

fn columns(title: &str, [p50, p90, last]: [String; 3]) -> String {
    format!("{title:<34}{p50:>12}{p90:>12}{last:>12}\n")
}

/// With the largest in the place of a p99 that too few samples have.
fn three(all: Percentiles) -> [u64; 3] {
    [all.p50, all.p90, all.p99.unwrap_or(all.max)]
}

fn titles(all: Percentiles) -> [String; 3] {
    ["p50", "p90", last_title(all)].map(str::to_owned)
}

fn last_title(all: Percentiles) -> &'static str {
    if all.p99.is_some() { "p99" } else { "most" }
}

/// What the send buffers bound, and what is to be done where they are full.
fn buffers(full: &Full) -> String {
    let sockets = full.largest.sockets as u64;
    let each = full.largest.bytes / sockets.max(1);
    let mut words = format!(
        "No more than about {} can be: {sockets} send buffers of {}",
        about_size(full.largest.bytes),
        about_size(each)
    );
    if each < ROOMY {
        let roomy = about_size(sockets * ROOMY);
        words.push_str(&format!("; with buffers of {} {roomy}", about_size(ROOMY)));
    }
    words.push('.');
    if full.is_usual() {
        words.push_str(&format!(" {} of them are full (p50): ", full.full.p50));
        words.push_str(&raised(full.family));
    }
    words
}

/// How send buffers are raised, and put back.
fn raised(family: Family) -> String {
    let (by, names): (_, &[&str]) = match family {
        Family::Tcp => {
            ("net.ipv4.tcp_wmem, or by SO_SNDBUF", &["net.core.wmem_max", "net.ipv4.tcp_wmem"])
        }
        Family::Unix | Family::Udp => ("SO_SNDBUF", &["net.core.wmem_max"]),
    };
    let now = |name: &&str| {
        let path = format!("/proc/sys/{}", name.replace('.', "/"));
        let value = std::fs::read_to_string(path).ok()?.replace('\t', " ");
        Some(format!("{name}='{}'", value.trim()))
    };
    let back: Vec<String> = names.iter().filter_map(now).collect();
    format!(
        "raise them first, by {by} within net.core.wmem_max, and then look at hints. Back: without \
         SO_SNDBUF, and sudo sysctl {}, as it is now.",
        back.join(" ")
    )
}

/// What part of its CPU time is the copy.
fn copy(share: &Result<Share, String>) -> String {
    match share.as_ref().map(|share| share.part()) {
        Ok(Some(part)) => format!(
            "{} of its CPU time is the copy of its sends: they become cheaper by no more than that. \
             What the caches keep for it comes on top, and only `ntcopy try` shows it.",
            percent(part)
        ),
        Ok(None) => "It used too little of a CPU to say what part of that is the copy.".to_owned(),
        Err(why) => {
            format!("What part of its CPU time is the copy of its sends is not seen: {why}.")
        }
    }
}

fn rates(finding: &Finding<'_>, seen: &Seen) -> String {
    let series = finding.series;
    let elapsed = series.ended_after.unwrap_or(seen.elapsed).as_secs_f64();
    let rate = |bytes: u64| format!("{}/s", about_size((bytes as f64 / elapsed.max(1e-3)) as u64));
    let mut words = format!(
        "{} samples in {elapsed:.1} s, by {:.2} % of a CPU.",
        series.samples.len(),
        100.0 * seen.cpu.as_secs_f64() / seen.elapsed.as_secs_f64().max(1e-3)
    );
    if series.ended_after.is_some() {
        words.push_str(" Then it ended.");
    }
    if series.tcp_sent_bytes > 0 {
        words.push_str(&format!(" TCP sent {}.", rate(series.tcp_sent_bytes)));
    } else if let Some(bytes) = series.written_bytes.filter(|bytes| *bytes > 0) {
        words.push_str(&format!(
            " write(), writev() and sendfile() moved {}, files included; send() is not counted.",
            rate(bytes)
        ));
    }
    wrapped(&words)
}

/// Why it is at least that much.
fn unseen(finding: &Finding<'_>) -> String {
    let mut out = String::new();
    for reader in readers(finding) {
        out.push_str(&wrapped(&format!(
            "{} ({}) reads from it and has {} pipes with both ends, as who splices has: what is in \
             its queues counts, what is in its pipes cannot be seen. If it does not splice, {} is \
             in flight (p50).",
            reader.name,
            reader.pid,
            reader.pipes,
            about_size(
                Percentiles::of(finding.series.samples.iter().map(Sum::on_sockets))
                    .map_or(0, |all| all.p50)
            ),
        )));
    }
    let hidden = finding.series.samples.iter().map(|sum| sum.unseen_readers).max().unwrap_or(0);
    if hidden > 0 {
        out.push_str(&wrapped(&format!(
            "Who reads {hidden} of its sockets is another user's process, or in another namespace: \
             if it splices, more is in flight than is seen. Root sees it."
        )));
    }
    out
}

fn list(all: &[Finding<'_>]) -> String {
    let series = all.first().map(|finding| finding.in_flight);
    let mut out = series.map(|all| columns("in flight", titles(all))).unwrap_or_default();
    let busy: Vec<&Finding<'_>> = all.iter().filter(|finding| finding.in_flight.max > 0).collect();
    for finding in busy.iter().take(LISTED) {
        out.push_str(&columns(&name(finding), three(finding.in_flight).map(about_size)));
    }
    let idle = all.len() - busy.len();
    out.push_str(&format!("{idle} processes with sockets had nothing in flight\n"));
    if busy.len() > LISTED {
        out.push_str(&format!("and {} more had (--json names them)\n", busy.len() - LISTED));
    }
    out
}

fn advice(finding: &Finding<'_>) -> String {
    let Some(advice) = &finding.advice else {
        return without_records(finding);
    };
    let mut out = format!("For {}\n\n{}", name(finding), show::piece(advice));
    if advice.decision == Decision::Set {
        for reader in touchers(finding) {
            out.push_str(&wrapped(&format!(
                "{} ({}) reads it and cannot splice, since it has no pipe: it touches the bytes, \
                 and waits for memory where a hint left them there. That may cost more than the \
                 hint brings: try before you set it.",
                reader.name, reader.pid
            )));
        }
        let then = match kernel_support() {
            Support::None => {
                "This kernel has no MSG_NTCOPY. Try: ntcopy try --kernel um -- PROGRAM, in a \
                 kernel of its own; docs/guide/setting.md says how one gets it."
            }
            _ => {
                "Try: ntcopy try -- PROGRAM compares it, plain and hinted; ntcopy run -- PROGRAM \
                 hints it. As it runs: sudo ntcopy set --pid PID, and back by --off."
            }
        };
        out.push_str(&wrapped(&then.replace("PID", &pid(finding).to_string())));
    }
    out
}

/// What is said of an idle program, or of one whose sends have the answer.
fn without_records(finding: &Finding<'_>) -> String {
    let is_short = finding.sends.as_ref().and_then(Sends::is_large) == Some(false);
    let read_at_once = "What it sends is read at once: little of it is in flight at a time. What a \
                        hint brings, `ntcopy try` shows.";
    match finding.idle() {
        Some(idle) => wrapped(idle),
        None if is_short => String::new(),
        None => wrapped(read_at_once),
    }
}

/// The process that was named, or the first of a service.
fn pid(finding: &Finding<'_>) -> Pid {
    finding.program.processes.first().map_or(0, |process| process.pid)
}

fn at_least(finding: &Finding<'_>) -> &'static str {
    if finding.is_at_least() { "at least " } else { "" }
}

fn name(finding: &Finding<'_>) -> String {
    let program = finding.program;
    let name = foreign::visible(&program.name);
    match program.processes.as_slice() {
        [] => name.into_owned(),
        [only] => format!("{name} (pid {})", only.pid),
        [first, others @ ..] => format!("{name} (pid {} and {} more)", first.pid, others.len()),
    }
}
