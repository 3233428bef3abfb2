//! `ntcopy survey add`: records that are here already, into the store.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use ntcopy_record::foreign::visible;
use ntcopy_record::{FILE_NAME, Record};
use ntcopy_survey::engine::budget::Budget;
use ntcopy_survey::engine::frame::{PREFIX, Reader};
use ntcopy_survey::engine::{Piece, fleet, lines, machine_id};
use ntcopy_survey::store::{Added, Entry, Origin, Store};
use ntcopy_survey::summary::MachineId;
use serde_json::json;

use super::StoreArg;
use crate::cmd::records;

/// Arguments.
#[derive(clap::Args)]
#[command(
    after_help = "Example:\n  ssh web7 ntcopy survey measure --node web7 | ntcopy survey add -\n\n\
                  A record is stored once, by its id. Without --node, the records of one folder \
                  that are of one kind of machine count as one machine's."
)]
pub struct Args {
    /// Records, folders with records in them, files that `survey measure` printed, or - for its
    /// output
    #[arg(required = true, value_name = "RECORD")]
    records: Vec<PathBuf>,
    /// The node that the records are of
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
}

/// Reasons that the JSON object has; all are said on standard error.
const MOST_REASONS: usize = 1000;

/// The store, and what became of the records.
struct Adding<'a> {
    args: &'a Args,
    fleet: &'a str,
    budget: Budget,
    store: Store,
    new: usize,
    known: usize,
    failed: Vec<String>,
}

/// Runs it.
pub fn run(asked: &StoreArg, args: &Args) -> anyhow::Result<ExitCode> {
    let (fleet, budget, store) = (asked.fleet(), asked.budget(), asked.open()?);
    let mut adding = Adding { args, fleet, budget, store, new: 0, known: 0, failed: Vec::new() };
    for place in &args.records {
        if place == Path::new("-") {
            adding.frames(io::stdin().lock(), "standard input")?;
        } else if place.is_dir() {
            let mut found = Vec::new();
            records::find(place, &mut found)
                .with_context(|| format!("cannot read {}", place.display()))?;
            if found.is_empty() {
                adding.fail(format!("{}: no records in it", place.display()));
            }
            for record in found {
                adding.file(&record.join(FILE_NAME))?;
            }
        } else {
            adding.file(place)?;
        }
    }
    let Adding { store, new, known, failed, .. } = adding;
    if asked.json {
        let object = json!({"store": store.name(), "new": new, "known": known, "failed": failed});
        println!("{object:#}");
    } else {
        println!("{new} new, {known} there already, in {}", store.name());
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Adding<'_> {
    fn put(&mut self, entry: &Entry) -> anyhow::Result<()> {
        match self.store.insert(entry)? {
            Added::New => self.new += 1,
            Added::Known => self.known += 1,
            Added::Differs => self.fail(format!(
                "{}: the store has a record of this id and with other bytes, and keeps that",
                entry.summary.record
            )),
        }
        Ok(())
    }

    /// Says it at once: what a node prints has no end.
    fn fail(&mut self, why: String) {
        eprintln!("ntcopy: {}", visible(&why));
        if self.failed.len() < MOST_REASONS {
            self.failed.push(why);
        }
    }

    /// A record's file, or one of frames.
    fn file(&mut self, path: &Path) -> anyhow::Result<()> {
        let name = path.display().to_string();
        let raw = match fs::read(path) {
            Ok(raw) => raw,
            Err(error) => {
                self.fail(format!("cannot read {name}: {error}"));
                return Ok(());
            }
        };
        if raw.split(|&byte| byte == b'\n').any(|line| line.starts_with(PREFIX.as_bytes())) {
            return self.frames(raw.as_slice(), &name);
        }
        let (node, fleet) = (&self.args.node, self.fleet);
        let machine = match (node, Record::parse(path, &raw)) {
            (_, Err(error)) => {
                self.fail(error.to_string());
                return Ok(());
            }
            (Some(node), Ok(_)) => machine_id(fleet, node),
            (None, Ok(record)) => machine_of(path, &record),
        };
        let fleet = node.is_some().then(|| fleet.to_owned());
        let origin = Origin { machine, fleet, node: node.clone(), asked: None };
        self.put(&Entry::parse(path, raw, origin)?)
    }

    /// What `survey measure` printed, record by record.
    fn frames(&mut self, from: impl Read, name: &str) -> anyhow::Result<()> {
        let mut reader = Reader::new(self.budget.clone());
        let mut stored = Ok(());
        lines::each(from, |line| {
            if let Some(piece) = reader.line(line).filter(|_| stored.is_ok()) {
                stored = self.take(piece, name);
            }
        });
        stored?;
        if let Some(piece) = reader.cut_short() {
            self.take(piece, name)?;
        }
        if !reader.is_done() {
            self.fail(format!("{name}: it ends before the node was done"));
        }
        Ok(())
    }

    fn take(&mut self, piece: Piece, name: &str) -> anyhow::Result<()> {
        match piece {
            Piece::Done => {}
            Piece::Failed { asked, why } => {
                let asked = asked.map(|asked| format!("{asked}: ")).unwrap_or_default();
                self.fail(format!("{name}: {asked}{why}"));
            }
            Piece::Record(mut record) => {
                let facts = record.facts.clone();
                match fleet::entry(&facts.fleet, &facts.node, &mut record) {
                    Ok(entry) => self.put(&entry)?,
                    Err(why) => self.fail(format!("{name}: {why}")),
                }
            }
        }
        Ok(())
    }
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
