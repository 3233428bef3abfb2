//! Colours for what a person reads on a terminal; a file or a pipe gets none.

use std::io::{IsTerminal as _, stdout};

const RESET: &str = "\x1b[0m";
const GREEN: &str = "\x1b[32m";
const RED: &str = "\x1b[31m";
const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";

/// Whether standard output takes colours: a terminal, and nothing in the environment against it
/// (no-color.org).
pub fn is_wanted() -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stdout().is_terminal()
        && !is_set("NO_COLOR")
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A text for standard output: with colours where they are wanted.
pub fn of(text: &str) -> String {
    if is_wanted() { coloured(text) } else { text.to_owned() }
}

/// The lines of a text, each with the colour of what it says.
fn coloured(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        out.push_str(&one(line));
        out.push_str(end);
    }
    out
}

/// What a line ends in, and its colour.
const ENDS: [(&str, &str); 5] = [
    (" win", GREEN),
    (" loss", RED),
    (" equal", DIM),
    (" unresolved", DIM),
    (" not available", DIM),
];

fn one(line: &str) -> String {
    for (end, colour) in ENDS {
        if let Some(before) = line.strip_suffix(end) {
            return format!("{before}{colour}{end}{RESET}");
        }
    }
    let trimmed = line.trim_start();
    if let Some(advice) = trimmed.strip_prefix("advice") {
        let advice = advice.trim_start();
        let is_to_do = advice.starts_with("SET ") || advice.starts_with("USE ");
        return format!("{}{line}{RESET}", if is_to_do { GREEN } else { BOLD });
    }
    line.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_has_its_colour_and_the_rest_of_its_line_none() {
        let text = "1 MiB  nt  1.20x  1.1-1.3  win\n2 MiB  nt  0.90x  loss\n3 MiB  unresolved";
        assert_eq!(
            coloured(text),
            "1 MiB  nt  1.20x  1.1-1.3 \x1b[32m win\x1b[0m\n2 MiB  nt  0.90x \x1b[31m \
             loss\x1b[0m\n3 MiB \x1b[2m unresolved\x1b[0m"
        );
    }

    #[test]
    fn advice_stands_out_and_words_that_only_end_alike_do_not() {
        assert_eq!(coloured("    advice  SET x"), "\x1b[32m    advice  SET x\x1b[0m");
        assert_eq!(coloured("    advice  leave it"), "\x1b[1m    advice  leave it\x1b[0m");
        assert_eq!(coloured("a window\nglosses"), "a window\nglosses");
    }
}
