//! The one way to standard output and to standard error, whose readers may have gone.
//!
//! The standard library's `println!` and `eprintln!` panic then, and on a full disk. Here a reader
//! that has seen enough is none of the program's business: what it does, such as removing kernels,
//! it does to the end. A full disk is an error, and where nothing can be said of it, none is.
//!
//! What is printed may name files, processes or machines of somebody else: a terminal obeys none of
//! it (CWE-150).

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _, stderr, stdout};

use ntcopy_record::foreign::{visible_lines, visible_output};
use ntcopy_report::text::hanging;
use rustix::termios::tcgetwinsize;
use serde::Serialize;

/// It is the standard library's, but for a reader that has gone and for what a terminal obeys.
macro_rules! print {
    ($($what:tt)*) => { $crate::say::write(format_args!($($what)*), "") };
}

/// It is the standard library's, but for a reader that has gone and for what a terminal obeys.
macro_rules! println {
    () => { $crate::say::write(format_args!(""), "\n") };
    ($($what:tt)*) => { $crate::say::write(format_args!($($what)*), "\n") };
}

/// It is the standard library's, but for a reader that has gone and for what a terminal obeys.
macro_rules! eprintln {
    ($($what:tt)*) => { $crate::say::complain(format_args!($($what)*)) };
}

/// Writes to standard output; the program ends with 1 where that is impossible.
pub(crate) fn write(what: Arguments<'_>, end: &str) {
    let text = format!("{what}{end}");
    all_written(stdout().lock().write_all(visible_output(&text).as_bytes()));
}

/// Writes an object to standard output as JSON, in lines.
pub(crate) fn object(object: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(object)?);
    Ok(())
}

/// Sentences for standard output: on a terminal in lines as wide as it is, and as the help no wider
/// than 100 columns; elsewhere a line each.
pub(crate) fn sentences(all: &[String]) -> String {
    let window = tcgetwinsize(stdout()).map(|size| usize::from(size.ws_col));
    in_lines(all, window.ok().filter(|columns| *columns > 0))
}

fn in_lines(sentences: &[String], columns: Option<usize>) -> String {
    let line = |sentence: &String| match columns {
        Some(columns) => hanging("", sentence, columns.min(100)),
        None => format!("{sentence}\n"),
    };
    sentences.iter().map(line).collect()
}

/// Writes a line, or lines, to standard error.
pub(crate) fn complain(what: Arguments<'_>) {
    let text = format!("{}\n", visible_lines(&what.to_string()));
    let _ = stderr().write_all(text.as_bytes());
}

/// Ends the program with 1 where a write to standard output was impossible; that nobody reads is
/// none of its business.
pub(crate) fn all_written(written: io::Result<()>) {
    // Also what ends in the middle of a line, or is printed before a long wait.
    if let Err(error) = written.and_then(|()| stdout().flush())
        && error.kind() != ErrorKind::BrokenPipe
    {
        eprintln!("ntcopy: cannot write to standard output: {error}");
        std::process::exit(1);
    }
}

#[cfg(test)]
mod tests {
    use super::in_lines;

    #[test]
    fn sentences_are_as_wide_as_the_terminal_and_whole_in_a_pipe() {
        let all = ["one two three four".to_owned(), "five".to_owned()];
        assert_eq!(in_lines(&all, Some(9)), "one two\nthree\nfour\nfive\n");
        assert_eq!(in_lines(&all, None), "one two three four\nfive\n");
        let long = ["word ".repeat(40)];
        assert!(in_lines(&long, Some(300)).lines().all(|line| line.len() <= 100));
    }
}
