//! Taking records and summaries out.

use std::collections::HashMap;
use std::sync::Arc;

use super::StoreError;
use super::sql::{Database, Value, count, text, text_if, transaction};
use crate::summary::{Finding, MachineFacts, Question, RecordId, Summary};

/// No record is larger unpacked: a damaged length must not take all memory.
const LARGEST_RECORD_BYTES: u64 = 4 << 30;

/// A record as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its id.
    pub record: RecordId,
    /// Its experiment.
    pub experiment: String,
    /// What was asked, if a survey asked.
    pub asked: Option<String>,
    /// The fleet.
    pub fleet: Option<String>,
    /// The node.
    pub node: Option<String>,
    /// The machine's id.
    pub machine: String,
    /// The CPU model's key.
    pub cpu_signature: String,
    /// When it was taken: nanoseconds since 1970-01-01 UTC.
    pub taken_unix_ns: u64,
    /// Why it does not count, if it does not.
    pub not_counted: Option<String>,
    /// Bytes of its file.
    pub raw_bytes: u64,
    /// Whether these are there, and not the summary alone.
    pub has_raw: bool,
}

pub(super) fn list(db: &mut dyn Database) -> Result<Vec<Listed>, StoreError> {
    let mut listed = Vec::new();
    db.query(
        "SELECT r.id, r.experiment, r.asked, r.fleet, r.node, m.machine, m.cpu_signature, \
         r.taken_unix_ns, r.not_counted, r.raw_bytes, \
         CASE WHEN r.raw IS NULL THEN CAST(0 AS BIGINT) ELSE CAST(1 AS BIGINT) END \
         FROM ntcopy_record r JOIN ntcopy_machine m ON m.facts = r.facts \
         ORDER BY r.taken_unix_ns, r.id",
        &[],
        &mut |row| {
            listed.push(Listed {
                record: RecordId(text(row, 0)?),
                experiment: text(row, 1)?,
                asked: text_if(row, 2)?,
                fleet: text_if(row, 3)?,
                node: text_if(row, 4)?,
                machine: text(row, 5)?,
                cpu_signature: text(row, 6)?,
                taken_unix_ns: count(row, 7)?,
                not_counted: text_if(row, 8)?,
                raw_bytes: count(row, 9)?,
                has_raw: count(row, 10)? == 1,
            });
            Ok(())
        },
    )?;
    Ok(listed)
}

pub(super) fn answered(
    db: &mut dyn Database,
    fleet: &str,
    since_unix_ns: u64,
) -> Result<Vec<(String, String)>, StoreError> {
    let mut answered = Vec::new();
    db.query(
        "SELECT node, asked FROM ntcopy_record WHERE fleet = $1 AND taken_unix_ns >= $2 \
         AND not_counted IS NULL AND node IS NOT NULL AND asked IS NOT NULL",
        &[Value::Text(fleet), Value::from(since_unix_ns)],
        &mut |row| {
            answered.push((text(row, 0)?, text(row, 1)?));
            Ok(())
        },
    )?;
    Ok(answered)
}

pub(super) fn raw(db: &mut dyn Database, id: &RecordId) -> Result<Option<Vec<u8>>, StoreError> {
    let place = db.name().to_owned();
    let mut found = None;
    db.query(
        "SELECT raw, raw_bytes, digest FROM ntcopy_record WHERE id = $1",
        &[Value::Text(&id.0)],
        &mut |row| {
            let Some(packed) = row.bytes(0)? else { return Ok(()) };
            let length = count(row, 1)?.min(LARGEST_RECORD_BYTES);
            let length = usize::try_from(length).map_err(|error| error.to_string())?;
            let raw = zstd::bulk::decompress(packed, length)
                .map_err(|error| format!("the record {id} does not unpack: {error}"))?;
            if Some(blake3::hash(&raw).to_hex().as_str()) != row.text(2)? {
                return Err(format!("the record {id} is not what was put in: its digest differs"));
            }
            found = Some(raw);
            Ok(())
        },
    )
    .map_err(|error| match error {
        StoreError::Failed { why, .. } if why.starts_with("the record ") => {
            StoreError::Damaged { place, what: why }
        }
        other => other,
    })?;
    Ok(found)
}

/// All summaries, of one fleet if it is named, as they were at one moment.
pub(super) fn summaries(
    db: &mut dyn Database,
    fleet: Option<&str>,
) -> Result<Vec<Summary>, StoreError> {
    let begin = db.dialect().begin_read;
    transaction(db, begin, |db| {
        let machines = machines(db)?;
        let questions = questions(db)?;
        let mut summaries = records(db, &machines, fleet)?;
        findings(db, &questions, &mut summaries)?;
        Ok(summaries)
    })
}

type Machines = HashMap<String, Arc<MachineFacts>>;

fn machines(db: &mut dyn Database) -> Result<Machines, StoreError> {
    let mut machines = HashMap::new();
    db.query("SELECT facts, body FROM ntcopy_machine", &[], &mut |row| {
        let body = row.text(1)?.unwrap_or_default();
        let facts: MachineFacts = serde_json::from_str(body)
            .map_err(|error| format!("a machine's facts cannot be read: {error}"))?;
        machines.insert(text(row, 0)?, Arc::new(facts));
        Ok(())
    })?;
    Ok(machines)
}

type Questions = HashMap<i64, Arc<Question>>;

fn questions(db: &mut dyn Database) -> Result<Questions, StoreError> {
    let mut questions = HashMap::new();
    db.query(
        "SELECT id, experiment, mode, baseline, metric, about, size_bytes FROM ntcopy_question",
        &[],
        &mut |row| {
            let question = Question {
                experiment: text(row, 1)?,
                mode: text(row, 2)?,
                baseline: text(row, 3)?,
                metric: text(row, 4)?,
                about: text(row, 5)?,
                size_bytes: row.int(6)?.and_then(|bytes| u64::try_from(bytes).ok()),
            };
            questions.insert(row.int(0)?.unwrap_or_default(), Arc::new(question));
            Ok(())
        },
    )?;
    Ok(questions)
}

fn records(
    db: &mut dyn Database,
    machines: &Machines,
    fleet: Option<&str>,
) -> Result<Vec<Summary>, StoreError> {
    let mut summaries = Vec::new();
    db.query(
        "SELECT id, experiment, node, facts, taken_unix_ns, not_counted, fleet FROM ntcopy_record",
        &[],
        &mut |row| {
            if fleet.is_some() && row.text(6)? != fleet {
                return Ok(());
            }
            let facts = row.text(3)?.unwrap_or_default();
            let machine = machines.get(facts);
            summaries.push(Summary {
                record: RecordId(text(row, 0)?),
                experiment: text(row, 1)?.into(),
                node: text_if(row, 2)?,
                taken_unix_ns: count(row, 4)?,
                machine: Arc::clone(machine.ok_or("a record of no machine")?),
                not_counted: text_if(row, 5)?,
                findings: Vec::new(),
            });
            Ok(())
        },
    )?;
    // Here, and not by the database: its order of letters depends on its locale.
    summaries.sort_by(|a, b| a.record.cmp(&b.record));
    Ok(summaries)
}

fn findings(
    db: &mut dyn Database,
    questions: &Questions,
    summaries: &mut [Summary],
) -> Result<(), StoreError> {
    let index: HashMap<String, usize> =
        summaries.iter().enumerate().map(|(at, one)| (one.record.0.clone(), at)).collect();
    let mut current: (String, Option<usize>) = (String::new(), None);
    db.query(
        "SELECT record, question, ratio, low, high, pairs FROM ntcopy_finding \
         ORDER BY record, place",
        &[],
        &mut |row| {
            let record = row.text(0)?.unwrap_or_default();
            if record != current.0 {
                current = (record.to_owned(), index.get(record).copied());
            }
            // One of another fleet.
            let Some(at) = current.1 else { return Ok(()) };
            let question = questions.get(&row.int(1)?.unwrap_or_default());
            summaries[at].findings.push(Finding {
                question: Arc::clone(question.ok_or("a finding without its question")?),
                ratio: row.real(2)?,
                low: row.real(3)?,
                high: row.real(4)?,
                pairs: u32::try_from(count(row, 5)?).unwrap_or(u32::MAX),
            });
            Ok(())
        },
    )
}
