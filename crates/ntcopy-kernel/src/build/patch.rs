//! Applying a series with patch(1), which builds need anyway and which knows no repositories
//! around the cache.

use std::fs;
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
    let file = source.with_file_name("patch");
    fs::write(&file, &patch.content).doing("writing", &file)?;
    let mut command = Command::new("patch");
    command.args(["-p1", "--fuzz=0", "--force", "--no-backup-if-mismatch", "--reject-file=-"]);
    command.arg("-d").arg(source).arg("-i").arg(&file).env("LC_ALL", "C");
    let mut said = Vec::new();
    let status = process::run(&mut command, interrupts, &mut |event| {
        if let Event::Line(line) = event {
            said.push(line.to_owned());
        }
        Ok(())
    })?;
    fs::remove_file(&file).doing("removing", &file)?;
    if status.success() {
        return Ok(());
    }
    let (patch, output) = (patch.name.clone(), said.join("\n"));
    Err(Error::Patch { patch, version: version.into(), output })
}
