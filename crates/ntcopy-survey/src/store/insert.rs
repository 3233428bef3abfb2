//! Putting records in.

use std::collections::BTreeMap;

use ntcopy_record::{FORMAT, Record};

use super::StoreError;
use super::schema::now_unix_ns;
use super::sql::{Database, Value, text, transaction};
use crate::summary::{Dimms, MachineFacts, MachineId, Question, Summary};

/// Records are small and read again and again; a higher level gains a few per cent.
const ZSTD_LEVEL: i32 = 9;

/// A record to be put in.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// What it says.
    pub summary: Summary,
    /// The fleet whose node it is of.
    pub fleet: Option<String>,
    /// What was asked of the node: the words behind `ntcopy bench`. Who asks the same
    /// again finds it by these.
    pub asked: Option<String>,
    /// The bytes of its file; empty to keep the summary alone.
    pub raw: Vec<u8>,
}

/// What is known of a record beside what it says itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The machine.
    pub machine: MachineId,
    /// The fleet.
    pub fleet: Option<String>,
    /// The node's name in it.
    pub node: Option<String>,
    /// What was asked, see [`Entry::asked`].
    pub asked: Option<String>,
    /// The machine's memory modules, where known.
    pub dimms: Option<Dimms>,
}

impl Entry {
    /// Reads the bytes of a record's file; `name` names it in errors.
    ///
    /// # Errors
    ///
    /// When the bytes are no record that this program can read.
    pub fn parse(
        name: &std::path::Path,
        raw: Vec<u8>,
        origin: Origin,
    ) -> Result<Entry, StoreError> {
        let record = Record::parse(name, &raw)?;
        let Origin { machine, fleet, node, asked, dimms } = origin;
        Ok(Entry { summary: Summary::of(&record, machine, node, dimms), fleet, asked, raw })
    }
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// It was put in.
    New,
    /// It was there already.
    Known,
    /// One with this id and other bytes was there already, and stays.
    Differs,
}

pub(super) fn insert(db: &mut dyn Database, entries: &[Entry]) -> Result<Vec<Added>, StoreError> {
    let name = db.name().to_owned();
    let packed = entries.iter().map(|entry| Packed::of(entry, &name));
    let packed = packed.collect::<Result<Vec<Packed<'_>>, StoreError>>()?;
    // In one order whoever writes: two writers with the same rows wait for each other, and not
    // each for the other.
    let mut order: Vec<usize> = (0..entries.len()).collect();
    order.sort_by_key(|&at| &entries[at].summary.record);
    let begin = db.dialect().begin;
    transaction(db, begin, |db| {
        machines(db, &packed)?;
        questions(db, entries)?;
        let mut added = vec![Added::Known; entries.len()];
        for at in order {
            added[at] = record(db, &entries[at], &packed[at])?;
        }
        Ok(added)
    })
}

/// An entry as it goes into the tables.
struct Packed<'a> {
    facts: &'a MachineFacts,
    /// The facts as JSON.
    body: String,
    /// And their digest, the key.
    facts_key: String,
    digest: String,
    raw: Option<Vec<u8>>,
}

impl<'a> Packed<'a> {
    fn of(entry: &'a Entry, store: &str) -> Result<Packed<'a>, StoreError> {
        let failed = |why: String| StoreError::Failed { place: store.to_owned(), why };
        let facts = entry.summary.machine.as_ref();
        let body = serde_json::to_string(facts).map_err(|error| failed(error.to_string()))?;
        let facts_key = blake3::hash(body.as_bytes()).to_hex()[..32].to_owned();
        let raw = (!entry.raw.is_empty())
            .then(|| zstd::bulk::compress(&entry.raw, ZSTD_LEVEL))
            .transpose()
            .map_err(|error| failed(format!("cannot compress a record: {error}")))?;
        let digest = blake3::hash(&entry.raw).to_hex().to_string();
        Ok(Packed { facts, body, facts_key, digest, raw })
    }
}

fn machines(db: &mut dyn Database, packed: &[Packed<'_>]) -> Result<(), StoreError> {
    let machines: BTreeMap<&str, &Packed<'_>> =
        packed.iter().map(|one| (one.facts_key.as_str(), one)).collect();
    for (key, one) in machines {
        db.execute(
            "INSERT INTO ntcopy_machine (facts, machine, cpu_signature, body) \
             VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
            &[
                Value::Text(key),
                Value::Text(&one.facts.id.0),
                Value::Text(one.facts.cpu_signature()),
                Value::Text(&one.body),
            ],
        )?;
    }
    Ok(())
}

fn questions(db: &mut dyn Database, entries: &[Entry]) -> Result<(), StoreError> {
    let findings = entries.iter().flat_map(|entry| &entry.summary.findings);
    let questions: BTreeMap<i64, &Question> = findings
        .map(|finding| (question_key(&finding.question), finding.question.as_ref()))
        .collect();
    for (key, question) in questions {
        db.execute(
            "INSERT INTO ntcopy_question (id, experiment, mode, baseline, metric, about, \
             size_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
            &[
                Value::Int(key),
                Value::Text(&question.experiment),
                Value::Text(&question.mode),
                Value::Text(&question.baseline),
                Value::Text(&question.metric),
                Value::Text(&question.about),
                Value::int(question.size_bytes),
            ],
        )?;
    }
    Ok(())
}

/// The key of a question: a number that every writer comes to by itself.
///
/// A fleet asks some thousands of different questions; that two of them share 64 bits of a hash is
/// less likely than a wrong byte from the disk.
fn question_key(question: &Question) -> i64 {
    let Question { experiment, mode, baseline, metric, about, size_bytes } = question;
    let mut hasher = blake3::Hasher::new();
    for word in [experiment, mode, baseline, metric, about] {
        hasher.update(word.as_bytes()).update(&[0]);
    }
    hasher.update(&size_bytes.map_or([0xff; 8], u64::to_le_bytes));
    let mut first = [0; 8];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..8]);
    i64::from_le_bytes(first)
}

fn record(db: &mut dyn Database, entry: &Entry, packed: &Packed<'_>) -> Result<Added, StoreError> {
    let summary = &entry.summary;
    let changed = db.execute(
        "INSERT INTO ntcopy_record (id, experiment, asked, fleet, node, facts, taken_unix_ns, \
         added_unix_ns, not_counted, format, digest, raw_bytes, raw) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT DO NOTHING",
        &[
            Value::Text(&summary.record.0),
            Value::Text(summary.experiment.as_str()),
            Value::text(entry.asked.as_deref()),
            Value::text(entry.fleet.as_deref()),
            Value::text(summary.node.as_deref()),
            Value::Text(&packed.facts_key),
            Value::from(summary.taken_unix_ns),
            Value::from(now_unix_ns()),
            Value::text(summary.not_counted.as_deref()),
            Value::Int(i64::from(FORMAT)),
            Value::Text(&packed.digest),
            Value::from(entry.raw.len() as u64),
            packed.raw.as_deref().map_or(Value::Null, Value::Bytes),
        ],
    )?;
    if changed == 0 {
        return known(db, entry, &packed.digest);
    }
    for (place, finding) in (0_i64..).zip(&summary.findings) {
        db.execute(
            "INSERT INTO ntcopy_finding (record, place, question, ratio, low, high, pairs) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
            &[
                Value::Text(&summary.record.0),
                Value::Int(place),
                Value::Int(question_key(&finding.question)),
                Value::Real(finding.ratio),
                Value::Real(finding.low),
                Value::Real(finding.high),
                Value::Int(i64::from(finding.pairs)),
            ],
        )?;
    }
    Ok(Added::New)
}

/// Whether the record that is there is this one.
fn known(db: &mut dyn Database, entry: &Entry, digest: &str) -> Result<Added, StoreError> {
    let mut there = String::new();
    db.query(
        "SELECT digest FROM ntcopy_record WHERE id = $1",
        &[Value::Text(&entry.summary.record.0)],
        &mut |row| {
            there = text(row, 0)?;
            Ok(())
        },
    )?;
    Ok(if there == digest { Added::Known } else { Added::Differs })
}
