//! Advice as text and as JSON.

mod json;
mod topics;
pub(crate) mod words;

use ntcopy_judge::advice::{Advice, Decision, Target};
use ntcopy_judge::claims::Claim;
use ntcopy_record::lists::grouped;

pub use json::{Told, object, told};

use crate::text::{self, Line, hanging};

const WIDTH: usize = 96;
/// How far the labels of a piece of advice stand in, and what is beside them.
const LABEL: usize = 4;
const BODY: usize = 12;

/// What is said before any piece of advice.
pub struct Opening<'a> {
    /// Which records it rests on, in a line.
    pub origin: &'a str,
    /// What a page of these records says first.
    pub verdict: &'a [Line<'a>],
}

/// A record that was found, and whether it counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// Its directory or file.
    pub place: String,
    /// Its id, if it could be read.
    pub id: Option<String>,
    /// Why it does not count, if it does not.
    pub not_counted: Option<String>,
    /// The signature of its CPU, if it could be read.
    pub cpu_signature: Option<String>,
}

/// All of it for a terminal. Ends in a newline.
pub fn terminal(
    opening: &Opening<'_>,
    all: &[Advice],
    target: &Target,
    sources: &[Source],
) -> String {
    let mut out = head(opening, target);
    let is_known =
        |advice: &&Advice| !matches!(advice.decision, Decision::NoEvidence | Decision::NotHere);
    let (settings, programs): (Vec<&Advice>, Vec<&Advice>) =
        all.iter().filter(is_known).partition(|advice| advice.topic.is_setting());
    for (title, group) in [("To set on this machine", settings), ("In programs", programs)] {
        if !group.is_empty() {
            out.push_str(&format!("\n{title}\n"));
        }
        for advice in group {
            out.push('\n');
            out.push_str(&piece(advice));
        }
    }
    if let Some(line) = both_tunables(all) {
        out.push_str("\nBoth thresholds in one line:\n");
        out.push_str(&format!("  {line}\n"));
    }
    out.push_str(&unknown(all));
    out.push_str(&left_out(sources));
    text::ascii_lines(&out)
}

/// What nothing was measured for, with the command that does, and what is not to be had here.
fn unknown(all: &[Advice]) -> String {
    let mut out = String::new();
    for (decision, title) in [
        (Decision::NoEvidence, "No evidence yet; these commands measure it"),
        (Decision::NotHere, "Not available here"),
    ] {
        let ours: Vec<&Advice> = all.iter().filter(|one| one.decision == decision).collect();
        if !ours.is_empty() {
            out.push_str(&format!("\n{title}\n"));
        }
        for advice in ours {
            out.push_str(&format!("  {}\n", named(advice)));
            // A command is copied, and stays in one line.
            out.push_str(&match words::measure(advice) {
                Some(command) => format!("      {}\n", text::shell_line(&command)),
                None => wrapped(&words::why(advice), 6),
            });
        }
    }
    out
}

/// The topic, and what it is about.
pub(crate) fn named(advice: &Advice) -> String {
    let about = topics::about(advice).map_or(String::new(), |about| format!(": {about}"));
    format!("{}{about}", topics::words(advice.topic).title)
}

fn head(opening: &Opening<'_>, target: &Target) -> String {
    let machine = &target.machine;
    let mut out = format!("Advice from {}.\n", opening.origin);
    out.push_str(&wrapped(
        &format!(
            "{} ({}), {} CPUs, last-level cache {}, {}.",
            machine.cpu_model,
            machine.cpu_signature,
            machine.cpus,
            text::about_size(machine.llc_bytes),
            machine.libc,
        ),
        0,
    ));
    if machine.hypervisor.is_some() {
        out.push_str(&wrapped(
            "A guest: what its neighbours leave of a shared cache changes by the hour, and the \
             figures with it.",
            0,
        ));
    }
    if !opening.verdict.is_empty() {
        out.push('\n');
        for Line { label, words } in opening.verdict {
            let label = format!("{label:<width$}", width = text::VERDICT_LABEL);
            out.push_str(&hanging(&label, words, WIDTH));
        }
    }
    out
}

/// One piece of it, in lines. Ends in a newline.
pub fn piece(advice: &Advice) -> String {
    let mut out = format!("  {}\n", named(advice));
    let mut line = |label: &str, words: &str| {
        let body = wrapped(words, BODY);
        out.push_str(&format!("{:LABEL$}{label:<width$}", "", width = BODY - LABEL));
        out.push_str(body.trim_start());
    };
    line("advice", &headline_with_figure(advice));
    if let Some(now) = words::now(advice) {
        line("now", &now);
    }
    if let Some(gain) = advice.gain.filter(|_| advice.decision == Decision::Set) {
        line("gain", &gained(&gain));
    }
    if advice.decision == Decision::Set {
        line("undo", topics::words(advice.topic).undo);
    }
    line("why", &words::why(advice));
    if !advice.records.is_empty() {
        line("record", &advice.records.join(" "));
    }
    if let Some(command) = words::measure(advice) {
        line("measure", &text::shell_line(&command));
    }
    out
}

/// What is advised, with the figure where that is not to set anything.
fn headline_with_figure(advice: &Advice) -> String {
    let is_left =
        matches!(advice.decision, Decision::Leave | Decision::AsItIs | Decision::Unresolved);
    let told = advice.gain.filter(|_| is_left).map(|gain| format!(": {gain}"));
    headline(advice) + &told.unwrap_or_default()
}

/// What is advised, in a line.
pub(crate) fn headline(advice: &Advice) -> String {
    let setting = words::setting(advice).unwrap_or_else(|| "it".to_owned());
    match advice.decision {
        Decision::Set if topics::tunable(advice.topic).is_some() => format!("SET {setting}"),
        Decision::Set => format!("USE {setting}"),
        Decision::Leave => format!("leave off {setting}"),
        Decision::AsItIs => "leave it as it is".to_owned(),
        Decision::Unresolved => "unresolved: leave it as it is, and measure longer".to_owned(),
        Decision::NoEvidence => "no evidence".to_owned(),
        Decision::NotHere => "not available here".to_owned(),
    }
}

fn gained(gain: &Claim) -> String {
    if gain.cells == 1 {
        return format!("{gain}, 1 cell");
    }
    format!(
        "{gain} over {} cells (geometric mean); the least {}, the most {}",
        gain.cells, gain.least, gain.most,
    )
}

/// One line for both, if there are two.
fn both_tunables(all: &[Advice]) -> Option<String> {
    let tunable = |advice: &Advice| {
        let is_set = advice.decision == Decision::Set;
        let bytes = advice.from_bytes.filter(|_| is_set)?;
        Some(format!("{}={bytes}", topics::tunable(advice.topic)?))
    };
    let set: Vec<String> = all.iter().filter_map(tunable).collect();
    (set.len() > 1).then(|| format!("GLIBC_TUNABLES={}", set.join(":")))
}

/// The records that do not count, by reason.
fn left_out(sources: &[Source]) -> String {
    let left_out = sources.iter().filter_map(|one| Some((one.not_counted.as_deref()?, one)));
    let reasons = grouped(left_out);
    let mut out = String::new();
    if !reasons.is_empty() {
        out.push_str("\nNot counted\n");
    }
    for (why, list) in reasons {
        out.push_str(&format!("  {:>3} x ", list.len()));
        out.push_str(wrapped(why, 8).trim_start());
        for source in list.iter().take(3) {
            out.push_str(&format!("        {}\n", source.place));
        }
        if list.len() > 3 {
            out.push_str(&format!("        and {} more (--json names them)\n", list.len() - 3));
        }
    }
    out
}

/// Words in lines that begin `indent` columns in.
fn wrapped(words: &str, indent: usize) -> String {
    hanging(&" ".repeat(indent), words, WIDTH)
}

#[cfg(test)]
mod tests;
