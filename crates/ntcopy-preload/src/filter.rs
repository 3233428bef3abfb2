//! Filters of system calls (seccomp) that were in force before this program began: of systemd's
//! `SystemCallFilter=`, of a container, of the program that started it.
//!
//! A `setsockopt` after its `socket` can be the end of a program under one, and nothing can be asked
//! of a filter without doing what it may forbid. `ntcopy run` tries that before the program begins,
//! in processes of its own, and says how many filters were in force then. A filter is never taken
//! away again, and every process has those of the one that started it: as many are the same ones. More
//! are some that were not tried, and then this library does nothing.

use crate::settings::number;
use crate::sys;

/// Whether no filter is in force, or those alone that are known to allow what this library does.
///
/// It opens, reads and closes a file, as the dynamic loader did just now to load this library.
pub fn allows(allowing: usize) -> bool {
    in_force().is_some_and(|count| count == 0 || count == allowing)
}

/// How many are in force; `None` where that can't be found out.
fn in_force() -> Option<usize> {
    let file = sys::open_to_read(c"/proc/self/status").ok()?;
    let mut status = Status::new();
    let mut buffer = [0; 512];
    let is_whole = loop {
        match sys::read(file, &mut buffer) {
            Ok(0) => break true,
            Ok(size) => status.take(buffer.get(..size).unwrap_or_default()),
            Err(_) => break false,
        }
    };
    sys::close(file);
    if is_whole { status.filters() } else { None }
}

/// Longer than the lines that matter.
const LINE_BYTES: usize = 64;

/// What `/proc/self/status` says of filters, read piece by piece: its list of groups has no limit.
struct Status {
    line: [u8; LINE_BYTES],
    /// Bytes of the line so far; above [`LINE_BYTES`], it is none that matters.
    size: usize,
    /// A kernel that was built without filters says nothing of them.
    is_free: bool,
    count: Option<usize>,
}

impl Status {
    const fn new() -> Self {
        Status { line: [0; LINE_BYTES], size: 0, is_free: true, count: None }
    }

    fn take(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if *byte == b'\n' {
                self.end_line();
                self.size = 0;
                continue;
            }
            if let Some(slot) = self.line.get_mut(self.size) {
                *slot = *byte;
            }
            self.size = self.size.saturating_add(1);
        }
    }

    fn end_line(&mut self) {
        let Some(line) = self.line.get(..self.size) else { return };
        if let Some(mode) = line.strip_prefix(b"Seccomp:\t") {
            self.is_free = mode == b"0";
        } else if let Some(count) = line.strip_prefix(b"Seccomp_filters:\t") {
            self.count = number(count);
        }
    }

    /// How many there are. Kernels before 5.9 don't count them.
    fn filters(&self) -> Option<usize> {
        if self.is_free { Some(0) } else { self.count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In pieces of every size.
    fn filters(text: &str) -> Option<usize> {
        let read = |piece_bytes| {
            let mut status = Status::new();
            text.as_bytes().chunks(piece_bytes).for_each(|piece| status.take(piece));
            status.filters()
        };
        let whole = read(text.len());
        assert!((1..text.len()).all(|piece_bytes| read(piece_bytes) == whole), "{text:?}");
        whole
    }

    #[test]
    fn filters_are_counted() {
        let groups = "1000 ".repeat(1000);
        for (said, count) in [
            ("Seccomp:\t0\nSeccomp_filters:\t0\n", Some(0)),
            ("Seccomp:\t2\nSeccomp_filters:\t1\n", Some(1)),
            ("Seccomp:\t2\nSeccomp_filters:\t12\n", Some(12)),
            // Before 5.9, and without filters.
            ("Seccomp:\t2\n", None),
            ("NoNewPrivs:\t1\n", Some(0)),
            ("Seccomp:\t\nSeccomp_filters:\tmany\n", None),
        ] {
            let text = format!("Name:\tSeccomp:\nGroups:\t{groups}\n{said}Threads:\t1\n");
            assert_eq!(filters(&text), count, "{said:?}");
        }
    }

    #[test]
    fn more_filters_than_were_tried_are_unknown_ones() {
        let count = in_force().expect("/proc");
        assert!(allows(count));
        assert_eq!(allows(count + 1), count == 0);
    }
}
