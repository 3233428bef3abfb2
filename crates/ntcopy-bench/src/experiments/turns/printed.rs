//! A number among what a program printed.

use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::process::{Command, Stdio};

use rustix::fs::{MemfdFlags, memfd_create};

/// A substitution of sed(1), in its extended form: what it makes of the last line that it matches
/// is the number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expression(String);

impl std::str::FromStr for Expression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let delimiter = text.strip_prefix('s').and_then(|rest| rest.chars().next());
        let fits = delimiter.is_some_and(|delimiter| {
            !delimiter.is_alphanumeric() && !delimiter.is_whitespace() && delimiter != '\\'
        });
        if !fits {
            let what = "write s/PATTERN/\\1/ with the number in brackets";
            return Err(format!("`{text}` is no substitution: {what}"));
        }
        let expression = Expression(text.to_owned());
        match expression.apply(b"") {
            Ok(Err(why)) => Err(format!("sed does not take `{text}`: {why}")),
            // Where sed cannot be run, no option is wrong: the first turn says so.
            Ok(Ok(_)) | Err(_) => Ok(expression),
        }
    }
}

impl Expression {
    /// The number as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn number(&self, output: &[u8]) -> Result<f64, String> {
        let found = self.apply(output).map_err(|error| format!("cannot run sed: {error}"))??;
        let last = found.lines().last().ok_or_else(|| format!("no line matches {}", self.0))?;
        number(last.trim()).map_err(|why| format!("{} makes `{last}` of a line: {why}", self.0))
    }

    /// What sed prints of the lines that match, or says of the expression.
    fn apply(&self, output: &[u8]) -> io::Result<Result<String, String>> {
        // A file, so that neither side waits for the other.
        let mut input = File::from(memfd_create("output", MemfdFlags::CLOEXEC)?);
        input.write_all(output).and_then(|()| input.rewind())?;
        // The sandbox: a substitution reads, writes and starts nothing.
        let print = format!("{}p", self.0);
        let done = Command::new("sed")
            .args(["--sandbox", "-nE", "-e", &print])
            .stdin(input)
            .stderr(Stdio::piped())
            .output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok(if done.status.success() { Ok(text(&done.stdout)) } else { Err(text(&done.stderr)) })
    }
}

/// A number above 0. Commas are taken where they can only be between groups of three digits: with a
/// decimal point after them, or if there are several. Where a comma may be a decimal one, 9,875 is
/// another number to each reader.
pub(super) fn number(word: &str) -> Result<f64, String> {
    let whole = word.split('.').next().unwrap_or_default();
    let mut groups = whole.split(',');
    let is_first = groups.next().is_some_and(|first| (1..=3).contains(&first.len()));
    let has_point = word.contains('.');
    let rest: Vec<&str> = groups.collect();
    let is_grouped = is_first
        && (has_point || rest.len() > 1)
        && word.matches(',').count() == rest.len()
        && rest.iter().all(|group| group.len() == 3);
    if word.contains(',') && !is_grouped {
        return Err(format!(
            "the comma in `{word}` may be a decimal one: have the number printed with a point \
             (LC_ALL=C)"
        ));
    }
    match word.replace(',', "").parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err(format!("`{word}` is not a number above 0")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_substitution_finds_the_last_number() {
        let expression: Expression = "s/^rate: ([0-9.,]+) .*/\\1/".parse().unwrap();
        let output = b"rate: 10 MB\nother 7\nrate: 1,234.5 MB\nend\n";
        assert_eq!(expression.number(output), Ok(1234.5));
        assert!(expression.number(b"none").unwrap_err().contains("no line matches"));
        let word: Expression = "s/rate: .*(MB)/\\1/".parse().unwrap();
        assert!(word.number(output).unwrap_err().contains("`MB`"));
    }

    #[test]
    fn what_is_no_substitution_is_refused_in_words() {
        for text in ["", "s", "p", "rate", "sxaxbx", "s/a", "s/(/b/", "s/a/b/w /tmp/x", "s/a/b/e"] {
            let error = text.parse::<Expression>().unwrap_err().to_string();
            assert!(error.contains("substitution") || error.contains("sed does"), "{error}");
        }
    }

    #[test]
    fn a_number_with_a_comma_is_read_as_one_number_or_refused() {
        let expression: Expression = "s/^rate: (.*)/\\1/".parse().unwrap();
        for (printed, read) in [
            ("1,234.5", Some(1234.5)),
            ("1,234,567", Some(1_234_567.0)),
            ("12,345,678.9", Some(12_345_678.9)),
            ("998.5", Some(998.5)),
            ("9,8", None),
            ("10,02", None),
            ("1,234", None),
            ("998,5", None),
            ("1.002,5", None),
            ("1.234.567", None),
            ("1234,567.5", None),
            ("1,23,456.0", None),
            (",234.5", None),
            ("1,,234.5", None),
            ("1'234", None),
            ("1 234", None),
            ("1\u{202f}234.5", None),
            ("1.5.2", None),
            ("0x10", None),
            ("1k", None),
            ("NaN", None),
            ("1e999", None),
            ("1e3", Some(1000.0)),
            ("-3", None),
            ("0", None),
            ("inf", None),
        ] {
            let found = expression.number(format!("rate: {printed}\n").as_bytes());
            match read {
                Some(number) => assert_eq!(found, Ok(number), "{printed}"),
                None => assert!(found.unwrap_err().contains(printed), "{printed}"),
            }
        }
    }
}
