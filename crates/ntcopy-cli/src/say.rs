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

use crate::colour;

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
    put(&visible_output(&format!("{what}{end}")));
}

/// The same for a table or advice, in colours where they are wanted.
pub(crate) fn write_coloured(what: &str) {
    put(&colour::of(&visible_output(what)));
}

fn put(text: &str) {
    is_read(stdout().lock().write_all(text.as_bytes()));
}

/// Writes a line, or lines, to standard error.
pub(crate) fn complain(what: Arguments<'_>) {
    let text = format!("{}\n", visible_lines(&what.to_string()));
    let _ = stderr().write_all(text.as_bytes());
}

/// Whether there is still a reader, by what became of a write; the program ends with 1 where
/// writing is impossible.
pub(crate) fn is_read(written: io::Result<()>) -> bool {
    // Also what ends in the middle of a line, or is printed before a long wait.
    match written.and_then(|()| stdout().flush()) {
        Ok(()) => true,
        Err(error) if error.kind() == ErrorKind::BrokenPipe => false,
        Err(error) => {
            eprintln!("ntcopy: cannot write to standard output: {error}");
            std::process::exit(1);
        }
    }
}
