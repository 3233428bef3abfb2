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
    let (fits, mut said) = patch_tool(file.path(), source, &["--dry-run"], interrupts)?;
    if fits {
        let applied;
        (applied, said) = patch_tool(file.path(), source, &[], interrupts)?;
        if applied {
            return Ok(());
        }
    }
    let (file_name, hunk) = first_failure(&said);
    let backwards = ["--dry-run", "--reverse"];
    let has_it = !fits && patch_tool(file.path(), source, &backwards, interrupts)?.0;
    let hunk = if has_it { "which has the change already".into() } else { hunk };
    Err(Error::Patch {
        patch: patch.name.clone(),
        version: version.into(),
        file: file_name,
        hunk,
        output: said.join("\n"),
    })
}

/// Runs patch(1); gives whether it did it, and what it printed.
fn patch_tool(
    patch: &Path,
    source: &Path,
    options: &[&str],
    interrupts: &Interrupts,
) -> Result<(bool, Vec<String>)> {
    let mut command = Command::new("patch");
    command.args(["-p1", "--fuzz=0", "--force", "--no-backup-if-mismatch", "--reject-file=-"]);
    command.args(options).arg("-d").arg(source).arg("-i").arg(patch).env("LC_ALL", "C");
    let mut said = Vec::new();
    let status = process::run(&mut command, interrupts, &mut |event| {
        if let Event::Line(line) = event {
            said.push(line.to_owned());
        }
        Ok(())
    })?;
    Ok((status.success(), said))
}

/// The file and the hunk that failed first, from what patch printed.
fn first_failure(said: &[String]) -> (String, String) {
    let mut file = "no file".to_owned();
    for (index, line) in said.iter().enumerate() {
        let name = line.strip_prefix("patching file ");
        if let Some(name) = name.or_else(|| line.strip_prefix("checking file ")) {
            file = name.trim_matches('\'').to_owned();
        } else if line.starts_with("can't find file to patch") {
            // patch quotes the header of what it looked for after a bar.
            let missing = said[index..].iter().find_map(|line| line.strip_prefix("|+++ b/"));
            let missing = missing.map_or("a file", |name| name.split('\t').next().unwrap_or(name));
            return (missing.to_owned(), "which this source does not have".into());
        } else if line.starts_with("Hunk #") && line.contains("FAILED") {
            let line = line.split(" -- ").next().unwrap_or(line);
            return (file, line.trim_end_matches('.').replace("Hunk", "hunk"));
        }
    }
    (file, said.last().cloned().unwrap_or_else(|| "patch said nothing".into()))
}

/// Whether `patch` is a patch at all: used before anything is unpacked.
pub(super) fn check_form(series: &Series) -> Result<()> {
    for patch in &series.patches {
        let text = String::from_utf8_lossy(&patch.content);
        if !text.lines().any(|line| line.starts_with("@@ ")) {
            return Err(Error::Patch {
                patch: patch.name.clone(),
                version: "(any)".into(),
                file: "no file".into(),
                hunk: "no hunk in it".into(),
                output: format!("{} bytes, and no line that begins with @@", patch.content.len()),
            });
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
        for part in ["0003-x.patch", "7.3.4", "a.c", "hunk #2 FAILED at 8"] {
            assert!(text.contains(part), "{part} in {text}");
        }
    }

    #[test]
    fn a_missing_file_and_a_change_that_is_there_are_told_apart() {
        let source = source();
        let elsewhere = GOOD.replace("a.c", "b.c");
        let text = run(&patch("1.patch", &elsewhere), source.path()).unwrap_err().to_string();
        assert!(text.contains("b.c, which this source does not have"), "{text}");
        run(&patch("1.patch", GOOD), source.path()).unwrap();
        let text = run(&patch("1.patch", GOOD), source.path()).unwrap_err().to_string();
        assert!(text.contains("a.c, which has the change already"), "{text}");
    }

    #[test]
    fn a_file_without_a_hunk_is_no_patch() {
        assert!(check_form(&patch("1.patch", "hello\n")).is_err());
        assert!(check_form(&patch("1.patch", GOOD)).is_ok());
    }
}
