//! Applying a series with patch(1), which builds need anyway and which knows no repositories
//! around the cache.

use std::path::Path;
use std::process::Command;

use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::process::{self, Event};
use crate::series::{Patch, Series};

/// Applies the patches in order. Not a line of context may differ.
pub(super) fn apply(
    series: &Series,
    source: &Path,
    version: &str,
    interrupts: &Interrupts,
) -> Result<()> {
    for patch in &series.patches {
        apply_one(patch, source, version, interrupts)?;
    }
    Ok(())
}

fn apply_one(patch: &Patch, source: &Path, version: &str, interrupts: &Interrupts) -> Result<()> {
    let mut file = tempfile::NamedTempFile::new().doing("creating", std::env::temp_dir())?;
    std::io::Write::write_all(&mut file, &patch.content).doing("writing", file.path())?;
    let mut command = Command::new("patch");
    command.args(["-p1", "--fuzz=0", "--force", "--no-backup-if-mismatch", "--reject-file=-"]);
    command.arg("-d").arg(source).arg("-i").arg(file.path()).env("LC_ALL", "C");
    let mut said = Vec::new();
    let status = process::run(&mut command, interrupts, &mut |event| {
        if let Event::Line(line) = event {
            said.push(line.to_owned());
        }
        Ok(())
    })?;
    if status.success() {
        return Ok(());
    }
    Err(refused(patch, version, said.join("\n")))
}

fn refused(patch: &Patch, version: &str, output: String) -> Error {
    Error::Patch { patch: patch.name.clone(), version: version.into(), output }
}

/// Whether `patch` is a patch at all: used before anything is unpacked.
pub(super) fn check_form(series: &Series) -> Result<()> {
    for patch in &series.patches {
        let text = String::from_utf8_lossy(&patch.content);
        if !text.lines().any(|line| line.starts_with("@@ ")) {
            let output = format!("{} bytes, and no hunk in them", patch.content.len());
            return Err(refused(patch, "(any)", output));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn source() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let text: String = (1..=20).map(|n| format!("line {n}\n")).collect();
        fs::write(folder.path().join("a.c"), text).unwrap();
        folder
    }

    fn patch(name: &str, content: &str) -> Series {
        Series { patches: vec![Patch { name: name.into(), content: content.into() }] }
    }

    const GOOD: &str =
        "why\n\n--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,3 @@\n line 1\n-line 2\n+line two\n line 3\n";
    const BAD: &str = "--- a/a.c\n+++ b/a.c\n@@ -1,3 +1,3 @@\n line 1\n-line 2\n+line two\n line 3\n\
                       @@ -8,3 +8,3 @@\n line 8\n-line nine\n+line 9\n line 10\n";

    fn run(series: &Series, source: &Path) -> Result<()> {
        apply(series, source, "7.3.4", &Interrupts::arm().unwrap())
    }

    #[test]
    fn a_patch_that_fits_is_applied() {
        let source = source();
        run(&patch("1.patch", GOOD), source.path()).unwrap();
        let text = fs::read_to_string(source.path().join("a.c")).unwrap();
        assert!(text.contains("line two"));
    }

    #[test]
    fn a_patch_that_does_not_fit_names_patch_file_and_hunk() {
        let source = source();
        let text = run(&patch("0003-x.patch", BAD), source.path()).unwrap_err().to_string();
        for part in ["0003-x.patch", "7.3.4", "a.c", "Hunk #2 FAILED at 8"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let text = run(&patch("1.patch", &GOOD.replace("a.c", "b.c")), source().path());
        let text = text.unwrap_err().to_string();
        assert!(text.contains("can't find file to patch") && text.contains("b.c"), "{text}");
    }

    #[test]
    fn a_file_without_a_hunk_is_no_patch() {
        assert!(check_form(&patch("1.patch", "hello\n")).is_err());
        assert!(check_form(&patch("1.patch", GOOD)).is_ok());
    }
}
