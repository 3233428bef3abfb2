//! What the guest's kernel said.

use std::path::Path;

/// How many lines an error shows.
const LAST_LINES: usize = 25;

/// The end of the console, for an error.
pub(super) fn last_lines(path: &Path) -> Vec<String> {
    let text = read(path);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    // After a panic come registers and the stack; what it was about stands at its beginning.
    let panic = lines.iter().position(|line| line.contains("Kernel panic"));
    let from = panic.unwrap_or_else(|| lines.len().saturating_sub(LAST_LINES));
    lines[from..].iter().take(LAST_LINES).map(|line| (*line).to_owned()).collect()
}

/// The lines in which the kernel reports a fault of its own. A command that succeeds in a kernel
/// that complains has not shown much.
pub(super) fn complaints(path: &Path) -> Vec<String> {
    read(path).lines().filter(|line| is_complaint(line)).map(str::to_owned).collect()
}

fn is_complaint(line: &str) -> bool {
    ["WARNING: ", "BUG: ", "kernel BUG at", "Oops", "INFO: task ", "INFO: rcu", "UBSAN: "]
        .iter()
        .any(|mark| line.contains(mark))
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_told_from_news() {
        assert!(is_complaint("WARNING: net/core/skbuff.c:12 at skb_x+0x1/0x2, CPU#0: sh/12"));
        assert!(is_complaint("BUG: sleeping function called from invalid context"));
        assert!(!is_complaint("NET: Registered PF_INET protocol family"));
    }

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
