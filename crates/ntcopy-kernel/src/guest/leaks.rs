//! Asking kmemleak, where the kernel has it, what was allocated and lost.

use std::path::Path;
use std::time::Duration;
use std::{fs, io};

/// Where it is asked.
const FILE: &str = "/sys/kernel/debug/kmemleak";

/// kmemleak names no object that is younger than this (MSECS_MIN_AGE of mm/kmemleak.c), and a
/// little more.
const MIN_AGE: Duration = Duration::from_millis(5200);

/// Prints what was lost to the console, where the host looks for it. The command and all that it
/// left behind have ended.
pub(super) fn report() {
    if !Path::new(FILE).exists() {
        return;
    }
    if let Err(error) = scan() {
        eprintln!("BUG: kmemleak could not be asked: {error}");
    }
}

fn scan() -> io::Result<()> {
    // The first scan notes what an object holds; only one that holds the same at the second is
    // named.
    fs::write(FILE, "scan")?;
    std::thread::sleep(MIN_AGE);
    fs::write(FILE, "scan")?;
    eprint!("{}", String::from_utf8_lossy(&fs::read(FILE)?));
    Ok(())
}
