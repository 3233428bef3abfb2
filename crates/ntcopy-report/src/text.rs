//! Quantities as text, and lines of text.

use std::borrow::Cow;
use std::fmt;

use ntcopy_judge::claims::Claim;
use ntcopy_judge::stats::Tally;
use ntcopy_record::foreign;
use ntcopy_record::units::Bytes;
pub use ntcopy_record::units::{about_size, percent, sentence};
use time::OffsetDateTime;

/// Columns before the words of a line.
pub(crate) const VERDICT_LABEL: usize = 9;

/// Words with what stands before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line<'s> {
    pub label: &'static str,
    pub words: Cow<'s, str>,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:<width$}{}", self.label, self.words, width = VERDICT_LABEL)
    }
}

/// Columns of a terminal's tables and sentences.
pub(crate) const WIDTH: u16 = 100;

/// `1 MiB`: the largest unit that divides the number.
#[must_use]
pub fn size(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// A number without its fraction, digits in groups of three.
#[must_use]
pub fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3 + 1);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if value < 0.0 { format!("-{grouped}") } else { grouped }
}

/// Three or four digits, whatever the size: `0.0123`, `1.234`, `15.34`, `77,500`.
pub(crate) fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => thousands(value),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        size if size >= 0.1 || size == 0.0 => format!("{value:.3}"),
        _ => format!("{value:.2e}"),
    }
}

/// `1.31x`.
#[must_use]
pub fn ratio(ratio: f64) -> String {
    format!("{ratio:.2}x")
}

/// `1.20x to 1.90x`: from the cell that gains least to that which gains most.
#[must_use]
pub fn range(claim: &Claim) -> String {
    let [least, most] = [claim.least, claim.most].map(|one| ratio(one.ratio));
    if least == most { least } else { format!("{least} to {most}") }
}

/// `1 win, 3 equal`: wins, losses, equals and what is unresolved, those that there are, in the words
/// for one and for several.
pub(crate) fn tally(tally: &Tally, words: [(&str, &str); 4]) -> String {
    let counts = [tally.wins, tally.losses, tally.equal, tally.unresolved];
    let told = counts.into_iter().zip(words).filter_map(|told| match told {
        (0, _) => None,
        (1, (one, _)) => Some(format!("1 {one}")),
        (count, (_, many)) => Some(format!("{count} {many}")),
    });
    told.collect::<Vec<String>>().join(", ")
}

/// `2026-11-21 01:29 UTC`.
#[must_use]
pub fn utc(unix_ns: u64) -> String {
    match OffsetDateTime::from_unix_timestamp_nanos(unix_ns.into()) {
        Ok(at) => format!(
            "{:04}-{:02}-{:02} {:02}:{:02} UTC",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute()
        ),
        Err(_) => format!("{unix_ns} ns after 1970"),
    }
}

/// A command as a line that a shell takes apart into the same words.
pub fn shell_line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

fn quoted(word: &str) -> String {
    // The crate quotes commas too, which no shell needs outside braces, and lists are common here.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // A NUL cannot be in a real command line, but a record is only a file.
    let word = word.replace('\0', "?");
    shlex::try_quote(&word).map_or_else(|_| word.clone(), |quoted| quoted.into_owned())
}

/// For terminals: what is not printable ASCII is written as an escape.
pub(crate) fn ascii(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            ' '..='~' => out.push(c),
            c => out.extend(c.escape_default()),
        }
    }
    out
}

/// A cell of a table, or a line beside one: nothing of a record's text leaves it.
pub(crate) fn cell(text: &str, is_for_terminal: bool) -> String {
    if is_for_terminal { ascii(text) } else { foreign::markdown(text) }
}

pub(crate) fn cells<'a>(
    row: impl IntoIterator<Item = &'a String>,
    is_for_terminal: bool,
) -> Vec<String> {
    row.into_iter().map(|text| cell(text, is_for_terminal)).collect()
}

/// The same of lines: what is not printable ASCII is written as an escape.
#[must_use]
pub fn ascii_lines(text: &str) -> String {
    text.lines().map(|line| ascii(line) + "\n").collect()
}

/// Words in lines of at most 100 columns. Ends in a newline.
#[must_use]
pub fn wrapped(text: &str) -> String {
    hanging("", text, usize::from(WIDTH))
}

/// Words beside what leads them, in lines of at most `width` columns that all begin under the
/// first word. Ends in a newline.
#[must_use]
pub fn hanging(lead: &str, words: &str, width: usize) -> String {
    let indent = lead.len();
    let mut out = lead.to_owned();
    let mut column = indent;
    for (index, word) in words.split_whitespace().enumerate() {
        if index > 0 && column + 1 + word.len() > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if index > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.len();
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use ntcopy_judge::Ratio;

    use super::*;

    #[test]
    fn numbers_are_grouped() {
        for (value, text) in [
            (0.0, "0"),
            (999.4, "999"),
            (1000.0, "1,000"),
            (77_499.6, "77,500"),
            (1_234_567.0, "1,234,567"),
            (-1234.0, "-1,234"),
        ] {
            assert_eq!(thousands(value), text);
        }
    }

    #[test]
    fn a_figure_of_a_chart_keeps_its_digits() {
        let figures = [0.00123, 0.5, 1.0, 15.336, 235.06, 77_499.6].map(figure);
        assert_eq!(figures, ["1.23e-3", "0.500", "1.000", "15.34", "235.1", "77,500"]);
    }

    #[test]
    fn an_interval_shows_on_which_side_of_one_it_lies_and_its_ratio_lies_within() {
        for (ratio, ci, told) in [
            (1.311, (1.281, 1.349), "1.31x (1.28-1.35)"),
            (1.0044, (1.003, 1.006), "1.004x (1.003-1.006)"),
            (0.97, (0.95, 0.998), "0.970x (0.950-0.998)"),
            (1.02, (1.0, 1.05), "1.02x (1.00-1.05)"),
            (1.02, (1.002, 1.05), "1.020x (1.002-1.050)"),
            (0.081, (0.0795, 0.0825), "0.081x (0.080-0.083)"),
        ] {
            assert_eq!(Ratio { ratio, ci }.to_string(), told);
        }
    }

    #[test]
    fn sizes_and_times() {
        assert_eq!(size(1 << 20), "1 MiB");
        assert_eq!(about_size(24_900_000_000), "23.2 GiB");
        assert_eq!(about_size(32 << 20), "32 MiB");
        assert_eq!(about_size(12), "12 bytes");
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(1_795_224_599_000_000_000), "2026-11-21 01:29 UTC");
    }

    #[test]
    fn words_become_a_sentence() {
        assert_eq!(sentence("every socket filled, e.g."), "Every socket filled, e.g.");
        assert_eq!(sentence("unix sockets"), "Unix sockets.");
    }

    #[test]
    fn a_command_line_can_be_pasted() {
        let words = ["ntcopy", "bench", "1,2,4", "a b", "it's", ""].map(String::from);
        let line = shell_line(&words);
        assert_eq!(shlex::split(&line).unwrap(), words);
        assert!(line.starts_with("ntcopy bench 1,2,4 "), "{line}");
    }
}
