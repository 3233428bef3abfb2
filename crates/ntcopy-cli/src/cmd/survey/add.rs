//! `ntcopy survey add`: records that are here already, into the store.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy_record::{FILE_NAME, Record};
use ntcopy_survey::engine::frame::{PREFIX, Reader};
use ntcopy_survey::engine::{Piece, fleet, machine_id};
use ntcopy_survey::store::{Added, Entry, Origin, Store};
use ntcopy_survey::summary::MachineId;
use serde_json::json;

use super::StoreArg;
use crate::cmd::{records, report};

/// Arguments.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  ntcopy survey add ~/.local/share/ntcopy/records --node web7\n  \
                        ntcopy survey add bench/record/DATE-CPU\n  ssh web7 ntcopy survey measure \
                        --node web7 | ntcopy survey add -\n\nA record is stored once, by its id. \
                        Without --node, the records of one folder that are of one kind of machine \
                        count as one machine's."
)]
pub struct Args {
    /// Records, folders with records in them, files that `survey measure` printed, or - for its
    /// output
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// The node that the records are of
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// The node's fleet
    #[arg(long, value_name = "NAME", default_value = "local")]
    fleet: String,
    #[command(flatten)]
    store: StoreArg,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What became of them.
#[derive(Default)]
struct Tally {
    new: usize,
    known: usize,
    failed: Vec<String>,
}

impl Tally {
    fn put(&mut self, store: &mut Store, entry: &Entry) -> anyhow::Result<()> {
        match store.insert(std::slice::from_ref(entry))?.as_slice() {
            [Added::New] => self.new += 1,
            [Added::Known] => self.known += 1,
            _ => self.failed.push(format!(
                "{}: the store has a record of this id and with other bytes, and keeps that",
                entry.summary.record
            )),
        }
        Ok(())
    }
}

/// Runs it.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let mut store = args.store.open()?;
    let mut tally = Tally::default();
    for place in &args.records {
        if place == Path::new("-") {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes).context("standard input")?;
            frames(&bytes, "standard input", &mut store, &mut tally)?;
        } else if place.is_dir() {
            let mut found = Vec::new();
            records::find(place, &mut found)
                .with_context(|| format!("cannot read {}", place.display()))?;
            if found.is_empty() {
                tally.failed.push(format!("{}: no records in it", place.display()));
            }
            for record in found {
                file(args, &record.join(FILE_NAME), &mut store, &mut tally)?;
            }
        } else {
            file(args, place, &mut store, &mut tally)?;
        }
    }
    for why in &tally.failed {
        eprintln!("ntcopy: {why}");
    }
    let text = if args.json {
        let (new, known) = (tally.new, tally.known);
        let object = json!({"store": store.name(), "new": new, "known": known,
            "failed": tally.failed});
        format!("{object:#}\n")
    } else {
        format!("{} new, {} there already, in {}\n", tally.new, tally.known, store.name())
    };
    report::print(&text)?;
    Ok(if tally.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A record's file, or one of frames.
fn file(args: &Args, path: &Path, store: &mut Store, tally: &mut Tally) -> anyhow::Result<()> {
    let name = path.display().to_string();
    let raw = match fs::read(path) {
        Ok(raw) => raw,
        Err(error) => {
            tally.failed.push(format!("cannot read {name}: {error}"));
            return Ok(());
        }
    };
    if raw.split(|&byte| byte == b'\n').any(|line| line.starts_with(PREFIX.as_bytes())) {
        return frames(&raw, &name, store, tally);
    }
    let machine = match (&args.node, Record::parse(path, &raw)) {
        (_, Err(error)) => {
            tally.failed.push(error.to_string());
            return Ok(());
        }
        (Some(node), Ok(_)) => machine_id(&args.fleet, node),
        (None, Ok(record)) => machine_of(path, &record),
    };
    let origin = Origin {
        machine,
        fleet: args.node.is_some().then(|| args.fleet.clone()),
        node: args.node.clone(),
        asked: None,
        dimms: None,
    };
    tally.put(store, &Entry::parse(path, raw, origin)?)
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

/// What `survey measure` printed.
fn frames(bytes: &[u8], name: &str, store: &mut Store, tally: &mut Tally) -> anyhow::Result<()> {
    let mut reader = Reader::default();
    let text = String::from_utf8_lossy(bytes);
    let mut pieces: Vec<Piece> = text.lines().filter_map(|line| reader.line(line)).collect();
    pieces.extend(reader.cut_short());
    for piece in pieces {
        match piece {
            Piece::Done => {}
            Piece::Failed { asked, why } => {
                let asked = asked.map(|asked| format!("{asked}: ")).unwrap_or_default();
                tally.failed.push(format!("{name}: {asked}{why}"));
            }
            Piece::Record(record) => {
                let facts = &record.facts;
                match fleet::entry(&facts.fleet, &facts.node, &record) {
                    Ok(entry) => tally.put(store, &entry)?,
                    Err(why) => tally.failed.push(format!("{name}: {why}")),
                }
            }
        }
    }
    if !reader.is_done() {
        tally.failed.push(format!("{name}: it ends before the node was done"));
    }
    Ok(())
}
