//! Writes a store with a generated fleet in it: 10,000 records of 40 CPU models, 12 machines with
//! another model's behaviour. SYNTHETIC: for the time that `ntcopy survey report` takes, and to see
//! what it looks like.
//!
//! ```sh
//! cargo run -p ntcopy-survey --example generated_fleet -- STORE [SEED [small]]
//! ```
//!
//! `small` is a fleet of 8 models, 120 machines and 4 such machines.

#[path = "../tests/generated/mod.rs"]
mod generated;

use std::error::Error;
use std::process::ExitCode;

use generated::{Fleet, Size, WHOLE};
use ntcopy_record::{End, Line, Record};
use ntcopy_survey::store::{Entry, Place, Store};

/// Enough for every part of a report.
const SMALL: Size = Size { models: 8, machines: 120, carriers: 4 };

/// Records that go into the store at once.
const BATCH: usize = 200;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (place, seed, size) = match arguments.as_slice() {
        [place] => (place, 1, WHOLE),
        [place, seed] => (place, seed.parse()?, WHOLE),
        [place, seed, word] if word == "small" => (place, seed.parse()?, SMALL),
        _ => {
            eprintln!("usage: generated_fleet STORE [SEED [small]]");
            return Ok(ExitCode::from(2));
        }
    };
    let fleet = Fleet::new(size, seed);
    let mut store = Store::open(&Place::parse(place)?)?;
    let numbers: Vec<usize> = (0..fleet.records()).collect();
    for batch in numbers.chunks(BATCH) {
        let entries = batch.iter().map(|number| entry(&fleet, *number));
        store.insert(&entries.collect::<Result<Vec<Entry>, serde_json::Error>>()?)?;
    }
    println!(
        "{} records in {place}; these machines carry another model's behaviour:",
        numbers.len()
    );
    for carrier in &fleet.carriers {
        let fact = carrier.fact.unwrap_or("nothing");
        let (own, other) = (&carrier.signature, &carrier.carries);
        println!("  {} {own} carries {other}, recorded: {fact}", carrier.machine);
    }
    Ok(ExitCode::SUCCESS)
}

fn entry(fleet: &Fleet, number: usize) -> Result<Entry, serde_json::Error> {
    Ok(Entry {
        summary: fleet.summary(number),
        fleet: Some("synthetic".to_owned()),
        asked: None,
        raw: lines(fleet.record(number))?,
    })
}

/// A record's file, as `ntcopy bench` writes it.
fn lines(record: Record) -> Result<Vec<u8>, serde_json::Error> {
    let end = End {
        samples: record.samples.len() as u64,
        ended_unix_ns: record.header.started_unix_ns + 1,
    };
    let lines = [Line::Header(record.header), Line::Machine(Box::new(record.machine))]
        .into_iter()
        .chain(record.cells.into_iter().map(Line::Cell))
        .chain(record.samples.into_iter().map(Line::Sample))
        .chain([Line::End(end)]);
    let mut raw = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut raw, &line)?;
        raw.push(b'\n');
    }
    Ok(raw)
}
