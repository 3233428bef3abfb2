//! Lines of a program's output, as they come.

use std::io::{BufRead, BufReader, Read};

use ntcopy_record::foreign::visible;

/// A longer line is of no program that we know: it is passed over.
const LONGEST_BYTES: usize = 64 << 10;

/// Hands on every line, without its newline, until the output ends or cannot be read.
pub fn each(output: impl Read, mut line: impl FnMut(&str)) {
    let mut output = BufReader::new(output);
    let mut bytes = Vec::new();
    let mut is_too_long = false;
    loop {
        let available = match output.fill_buf() {
            Ok([]) => break,
            Ok(available) => available,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        let end = available.iter().position(|&byte| byte == b'\n');
        let taken = end.map_or(available.len(), |at| at + 1);
        is_too_long |= bytes.len() + taken > LONGEST_BYTES;
        if !is_too_long {
            bytes.extend_from_slice(&available[..taken]);
        }
        output.consume(taken);
        if end.is_some() {
            if !is_too_long {
                line(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']));
            }
            bytes.clear();
            is_too_long = false;
        }
    }
    if !bytes.is_empty() && !is_too_long {
        line(&String::from_utf8_lossy(&bytes));
    }
}

/// The last lines that a program said, for a message.
#[derive(Debug, Default, Clone)]
pub struct Tail(Vec<String>);

impl Tail {
    /// Lines that are kept.
    const LINES: usize = 5;

    /// Takes a line.
    pub fn push(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        if self.0.len() == Self::LINES {
            self.0.remove(0);
        }
        self.0.push(visible(line.trim()).chars().take(300).collect());
    }

    /// All of it in one line.
    pub fn text(&self) -> String {
        self.0.join("; ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_one_by_one_and_the_longest_are_left_out() {
        let text = format!("one\r\n\ntwo\n{}\nthree", "x".repeat(LONGEST_BYTES + 1));
        let mut seen = Vec::new();
        each(text.as_bytes(), |line| seen.push(line.to_owned()));
        assert_eq!(seen, ["one", "", "two", "three"]);
    }

    #[test]
    fn the_tail_keeps_the_last_lines() {
        let mut tail = Tail::default();
        for number in 0..9 {
            tail.push(&format!("line {number}\u{7}"));
            tail.push("  ");
        }
        assert_eq!(
            tail.text(),
            (4..9).map(|number| format!("line {number}\\u{{7}}")).collect::<Vec<_>>().join("; ")
        );
    }
}
