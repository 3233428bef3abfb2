//! What a booted guest leaves behind.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// Nothing of a guest whose temporary files go into this folder is left: no file, no process.
///
/// What was killed may still be on its way out, on a busy machine: `patience` is for that.
pub fn assert_nothing_left(folder: &Path, patience: Duration) {
    let left: Vec<_> = fs::read_dir(folder).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
    let mark = folder.to_str().unwrap();
    let of_guest = |pid: &str| {
        fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(mark))
    };
    let left = || -> Vec<String> {
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let names = processes.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|pid| of_guest(pid)).collect()
    };
    let deadline = Instant::now() + patience;
    while !left().is_empty() && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(20));
    }
    assert!(left().is_empty(), "processes {:?}", left());
}
