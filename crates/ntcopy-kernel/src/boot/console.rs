//! What the guest's kernel said.

use std::path::Path;

use super::splat;

/// How many lines an error shows.
const LAST_LINES: usize = 25;

/// The end of the console, for an error.
pub(super) fn last_lines(path: &Path) -> Vec<String> {
    let text = read(path);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    // After a fault come registers and the stack; what it was about stands at its beginning.
    let fault = lines.iter().position(|line| splat::is_fatal(line));
    let from = fault.unwrap_or_else(|| lines.len().saturating_sub(LAST_LINES));
    lines[from..].iter().take(LAST_LINES).map(|line| (*line).to_owned()).collect()
}

/// All of it.
pub(super) fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_lines_are_shown() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: String = (0..100).map(|n| format!("line {n}\r\n\n")).collect();
        std::fs::write(file.path(), text).unwrap();
        let lines = last_lines(file.path());
        assert_eq!(lines.len(), LAST_LINES);
        assert_eq!(lines.last().unwrap(), "line 99");
    }

    #[test]
    fn a_panic_is_shown_from_its_beginning() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let trace = "Call Trace:\n".repeat(60);
        let text = format!("news\nKernel panic - not syncing: why\n{trace}");
        std::fs::write(file.path(), text).unwrap();
        let lines = last_lines(file.path());
        assert_eq!(lines[0], "Kernel panic - not syncing: why");
        assert_eq!(lines.len(), LAST_LINES);
    }
}
