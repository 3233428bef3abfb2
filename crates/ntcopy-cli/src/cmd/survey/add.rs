//! `ntcopy survey add`: records that are here already, into the store.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ntcopy_record::foreign::visible;
use ntcopy_record::{FILE_NAME, Record, file};
use ntcopy_survey::engine::machine_id;
use ntcopy_survey::store::{Added, Entry, Origin, Store};
use ntcopy_survey::summary::MachineId;
use serde::Serialize;
use serde_json::json;

use super::StoreArg;
use crate::cmd::sources;
use crate::say;

#[derive(clap::Args)]
#[command(
    after_help = "A record is stored once, by its id. Without --node, the records of one folder \
                  that are of one kind of machine count as one machine's."
)]
pub struct Args {
    /// Records, or folders with records in them
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// The node that the records are of
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Object<'a> {
    store: &'a str,
    new: u32,
    known: u32,
    failed: &'a [String],
}

pub fn run(asked: &StoreArg, args: &Args) -> anyhow::Result<ExitCode> {
    let mut store = asked.open()?;
    let (mut new, mut known, mut failed) = (0, 0, Vec::new());
    for place in &args.records {
        let mut found = Vec::new();
        match place.is_dir() {
            true => sources::find(place, &mut found)?,
            false => found.push(place.clone()),
        }
        if found.is_empty() {
            failed.push(format!("{}: no records in it", place.display()));
        }
        for place in found {
            let file = if place.is_dir() { place.join(FILE_NAME) } else { place };
            match put(&mut store, &file, asked.fleet(), args.node.as_deref()) {
                Ok(Added::New) => new += 1,
                Ok(Added::Known) => known += 1,
                Ok(Added::Differs) => failed.push(format!(
                    "{}: the store has a record of this id and with other bytes, and keeps that",
                    file.display()
                )),
                Err(error) => failed.push(error.to_string()),
            }
        }
    }
    for why in &failed {
        eprintln!("ntcopy: {}", visible(why));
    }
    if asked.json {
        say::object(&Object { store: store.name(), new, known, failed: &failed })?;
    } else {
        println!("{new} new, {known} there already, in {}", store.name());
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn put(store: &mut Store, path: &Path, fleet: &str, node: Option<&str>) -> anyhow::Result<Added> {
    let raw = file::read(path).map_err(|error| anyhow::anyhow!("{}: {error}", path.display()))?;
    let record = Record::parse(path, &raw)?;
    let machine = node.map_or_else(|| machine_of(path, &record), |node| machine_id(fleet, node));
    let fleet = node.map(|_| fleet.to_owned());
    let origin = Origin { machine, fleet, node: node.map(str::to_owned), asked: None };
    Ok(store.insert(&Entry::parse(path, raw, origin)?)?)
}

/// The machine of a record that has no name: one for each folder and kind of machine.
fn machine_of(path: &Path, record: &Record) -> MachineId {
    let here = fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // FOLDER/RECORD/record.jsonl
    let folder = path.ancestors().nth(2).unwrap_or(&path).display().to_string();
    let machine = &record.machine;
    let facts = json!([machine.cpu_signature, machine.cpus, machine.caches, machine.hypervisor]);
    MachineId::of("folder", &format!("{} {folder} {facts}", here.trim()))
}
