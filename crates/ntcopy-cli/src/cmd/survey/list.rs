//! `ntcopy survey list` and `ntcopy survey export`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy_record::foreign::visible;
use ntcopy_record::{ExperimentKind, FILE_NAME};
use ntcopy_survey::store::Stored;
use ntcopy_survey::summary::{MachineId, RecordId};
use serde::Serialize;

use super::StoreArg;
use crate::cmd::report;
use crate::say;

#[derive(clap::Args)]
#[command(after_help = "Writes DIR/FLEET/NODE/ID/record.jsonl; what is there already stays.")]
pub struct ExportArgs {
    /// The folder to write to
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// Lists what there is.
pub fn list(asked: &StoreArg) -> anyhow::Result<ExitCode> {
    let store = asked.open_existing()?;
    let listed = store.records(asked.fleet.as_deref())?;
    if asked.json {
        let records = listed.iter().map(Listed::of).collect();
        say::object(&Object { store: store.name(), records })?;
    } else {
        listed.iter().for_each(|one| println!("{}", line(one)));
        eprintln!("records: {} in {}", listed.len(), store.name());
    }
    Ok(ExitCode::SUCCESS)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Object<'a> {
    store: &'a str,
    records: Vec<Listed<'a>>,
}

#[derive(Serialize)]
struct Listed<'a> {
    record: &'a RecordId,
    experiment: &'a ExperimentKind,
    asked: Option<&'a str>,
    fleet: Option<&'a str>,
    node: Option<&'a str>,
    machine: &'a MachineId,
    cpu_signature: &'a str,
    taken_unix_ns: u64,
    not_counted: Option<&'a str>,
    raw_bytes: u64,
}

impl Listed<'_> {
    fn of(one: &Stored) -> Listed<'_> {
        let summary = &one.summary;
        Listed {
            record: &summary.record,
            experiment: &summary.experiment,
            asked: one.asked.as_deref(),
            fleet: one.fleet.as_deref(),
            node: summary.node.as_deref(),
            machine: &summary.machine.id,
            cpu_signature: &summary.machine.machine.cpu_signature,
            taken_unix_ns: summary.taken_unix_ns,
            not_counted: summary.not_counted.as_deref(),
            raw_bytes: one.raw_bytes,
        }
    }
}

/// Record, node, CPU, what was asked, and why it does not count if it does not.
fn line(one: &Stored) -> String {
    let summary = &one.summary;
    let machine = &summary.machine.id.0;
    let node = match (&one.fleet, &summary.node) {
        (Some(fleet), Some(node)) => format!("{fleet}/{node}"),
        _ => format!("({})", machine.get(..8).unwrap_or(machine)),
    };
    let asked = one.asked.as_deref().unwrap_or(summary.experiment.as_str());
    let note = summary.not_counted.as_ref().map(|why| format!("  does not count: {why}"));
    let (record, cpu) = (&summary.record, &summary.machine.machine.cpu_signature);
    let line = format!("{record}  {node}  {cpu}  {asked}{}", note.unwrap_or_default());
    visible(&line).into_owned()
}

/// Writes records out.
pub fn export(asked: &StoreArg, args: &ExportArgs) -> anyhow::Result<ExitCode> {
    let store = asked.open_existing()?;
    let (mut written, mut there) = (0, 0);
    for one in &store.records(asked.fleet.as_deref())? {
        let summary = &one.summary;
        let fleet = safe(one.fleet.as_deref().unwrap_or("none"));
        let node = safe(summary.node.as_deref().unwrap_or(&summary.machine.id.0));
        let folder = args.out.join(fleet).join(node).join(safe(&summary.record.0));
        let file = folder.join(FILE_NAME);
        if file.exists() {
            there += 1;
        } else if let Some(raw) = store.raw(&summary.record)? {
            fs::create_dir_all(&folder)
                .with_context(|| format!("cannot write {}", folder.display()))?;
            report::replace(&file, &raw, report::READABLE)?;
            written += 1;
        }
    }
    println!("{written} written, {there} there already");
    Ok(ExitCode::SUCCESS)
}

/// A name as a folder's: a store that others write to must not choose where files go.
fn safe(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    if name.is_empty() || name.starts_with('.') { format!("_{name}") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_leads_to_no_other_folder() {
        for name in ["..", "../../etc", "/etc/passwd", "", ".hidden", "a/b"] {
            let safe = safe(name);
            assert!(!safe.contains('/') && !safe.starts_with('.') && !safe.is_empty(), "{safe}");
        }
        assert_eq!(safe("20261121-224234-http-61730fa9"), "20261121-224234-http-61730fa9");
    }
}
