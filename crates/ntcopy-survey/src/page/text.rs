//! The report for a terminal.

use std::borrow::Cow;

use ntcopy_record::foreign::visible;
use ntcopy_report::text::{ascii_lines, hanging, wrapped};

use super::words;
use crate::analysis::{Analysis, Model};

/// Columns of the terminal.
const WIDTH: usize = 100;

/// What it comes to, the machines that are unlike their model, model by model. ASCII, ends in a
/// newline.
#[must_use]
pub fn terminal(analysis: &Analysis) -> String {
    let mut out = String::new();
    for sentence in words::verdict(analysis) {
        out.push_str(&wrapped(&sentence));
    }
    if !analysis.unlike.is_empty() {
        out.push_str("\nMachines unlike their model\n");
    }
    for one in &analysis.unlike {
        let (machine, signature) = (words::machine(one), visible(&one.signature));
        out.push_str(&format!("\n  {machine}, {signature}\n"));
        out.push_str(&hanging("    how      ", &words::unlike(one), WIDTH));
        out.push_str(&hanging("    differs  ", &words::differs(one), WIDTH));
    }
    for view in &analysis.models {
        out.push_str(&model(view));
    }
    ascii_lines(&out)
}

fn model(view: &Model) -> String {
    let names: Vec<Cow<'_, str>> = view.names.iter().map(|name| visible(name)).collect();
    let unlike = match view.unlike {
        0 => String::new(),
        count => format!(", {count} of them unlike it and left out below"),
    };
    let mut out = format!("\n== {}\n", visible(&view.signature));
    out.push_str(&wrapped(&format!(
        "{}; {}{unlike}; {}.",
        names.join(" / "),
        words::count(view.machines, "machine"),
        words::count(view.records, "record"),
    )));
    if !view.series.is_empty() {
        out.push_str(&columns(["wins from", "ratio there", "least"].map(str::to_owned)));
    }
    for one in &view.series {
        // What was asked is many words, and figures are read down: a line of its own.
        out.push_str(&wrapped(&words::question(&one.question)));
        out.push_str(&columns([
            words::wins_from(one),
            words::figure(&one.gain),
            words::least(one),
        ]));
    }
    out
}

fn columns([wins, ratio, least]: [String; 3]) -> String {
    let line = format!("    {wins:<16}{ratio:<24}{least}");
    format!("{}\n", line.trim_end())
}
