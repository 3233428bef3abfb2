//! The report for a terminal.

use ntcopy_report::text::{self, ascii_lines, wrapped};

use super::{Report, words};
use crate::analysis::series::{Basis, Series};
use crate::analysis::unlike::Unlike;
use crate::analysis::{Analysis, ModelView};

/// Columns of the terminal.
const WIDTH: usize = 100;

/// All of it: what it comes to, the machines that are unlike their model, model by model. ASCII,
/// ends in a newline.
#[must_use]
pub fn terminal(report: &Report<'_>) -> String {
    let analysis = report.analysis;
    let mut out = String::new();
    for sentence in words::verdict_of(analysis) {
        out.push_str(&wrapped(&sentence));
    }
    if !analysis.unlike.is_empty() {
        out.push_str("\nMachines unlike their model\n");
        for one in &analysis.unlike {
            out.push_str(&unlike(analysis, one));
        }
    }
    for view in &analysis.models {
        out.push_str(&model(report, view));
    }
    ascii_lines(&out)
}

fn unlike(analysis: &Analysis, one: &Unlike) -> String {
    let mut out = format!(
        "\n  {}, {}\n",
        words::machine(analysis, one.machine),
        words::plain(&one.signature)
    );
    let mut line = |label: &str, said: &str| {
        out.push_str(&hanging(&format!("{label:<9}"), said));
    };
    line("how", &words::unlike(one));
    for reason in words::reasons(&one.differs) {
        line("differs", &reason);
    }
    for example in &one.examples {
        line("shown by", &words::example(example));
    }
    out
}

/// Words beside a label, both four columns in.
fn hanging(label: &str, said: &str) -> String {
    text::hanging(&format!("    {label}"), said, WIDTH)
}

fn model(report: &Report<'_>, view: &ModelView) -> String {
    let unlike = match view.machines.len() - view.like.len() {
        0 => String::new(),
        count => format!(", {count} of them unlike it and left out below"),
    };
    let mut out = format!("\n== {}\n", words::plain(&view.signature));
    out.push_str(&wrapped(&format!(
        "{}; {}{unlike}; {}.",
        view.names.join(" / "),
        words::count(view.machines.len(), "machine"),
        words::count(view.records, "record"),
    )));
    for one in &view.thresholds {
        out.push_str(&wrapped(&words::thresholds(one)));
    }
    if let Some(note) = &view.note {
        out.push_str(&wrapped(&format!("{}.", sentence(note))));
    }
    if !view.series.is_empty() {
        out.push('\n');
        out.push_str(&table(&view.series));
    }
    if let Some(advice) = report.advice_of(&view.signature) {
        out.push_str(&format!("Wants, {}:\n", words::rests(advice)));
        let wanted = words::to_do(advice);
        if wanted.is_empty() {
            out.push_str("    nothing: no setting wins\n");
        }
        for one in wanted {
            out.push_str(&hanging("", &words::setting(one)));
        }
    }
    out
}

fn sentence(words: &str) -> String {
    let mut chars = words.chars();
    let first: String = chars.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}", chars.as_str())
}

/// What was asked in a line of its own: it is many words, and figures are read down.
fn table(series: &[Series]) -> String {
    let mut out = columns(["wins from", "ratio there", "crossover", "least"].map(str::to_owned));
    for one in series {
        let about = words::about(&one.question.about);
        let what = words::kind(&one.question);
        let said = if about.is_empty() { what } else { format!("{what}; {about}") };
        out.push_str(&wrapped(&said));
        out.push_str(&columns(row(one)));
    }
    out
}

fn columns(fields: [String; 4]) -> String {
    let [wins, ratio, crossover, least] = fields;
    let line = format!("    {wins:<16}{ratio:<24}{crossover:<28}{least}");
    format!("{}\n", line.trim_end())
}

fn row(series: &Series) -> [String; 4] {
    let least = series.least();
    let size = least.size_bytes.map_or(String::new(), |bytes| format!(" at {}", text::size(bytes)));
    // Said once in the note where it is not an interval over machines.
    let mark = if series.basis() == Basis::Machines { "" } else { "*" };
    [
        words::wins_from(series),
        format!("{}{mark}", words::figure(series.gain.median, series.gain_bracket)),
        series.crossover.as_ref().map_or(String::new(), words::crossover),
        format!("{}{size}", text::ratio(least.ratio.median)),
    ]
}
