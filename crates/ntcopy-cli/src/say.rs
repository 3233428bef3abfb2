//! The one way to standard output, whose reader may have gone.
//!
//! The standard library's `println!` panics then, and on a full disk. Here a reader that has seen
//! enough is none of the program's business: what it does, such as removing kernels, it does to
//! the end. A full disk is an error.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _, stdout};

/// It is the standard library's, but for a reader that has gone.
macro_rules! print {
    ($($what:tt)*) => { $crate::say::write(format_args!($($what)*), "") };
}

/// It is the standard library's, but for a reader that has gone.
macro_rules! println {
    () => { $crate::say::write(format_args!(""), "\n") };
    ($($what:tt)*) => { $crate::say::write(format_args!($($what)*), "\n") };
}

/// Writes to standard output; the program ends with 1 where that is impossible.
pub(crate) fn write(what: Arguments<'_>, end: &str) {
    let mut out = stdout().lock();
    is_read(out.write_fmt(what).and_then(|()| out.write_all(end.as_bytes())));
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
