//! What a survey keeps of a record: the machine, and every ratio with its interval.
//!
//! A summary is a pure function of a record, judged: its figures are those of `ntcopy report`.

use std::collections::BTreeSet;
use std::fmt;

use ntcopy_judge::Judged;
use ntcopy_judge::claims::{Point, results};
use ntcopy_judge::experiments::experiment;
use ntcopy_judge::params::{self, identity};
use ntcopy_judge::stats::Use;
use ntcopy_record::{ExperimentKind, Machine, Params, Sends};
use ntcopy_report::text;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The parameters that are a cell's size, the one that its experiment is about first.
const SIZES: [&str; 5] =
    ["size_bytes", "in_flight_bytes", "asked_bytes", "hot_set_bytes", "object_bytes"];

/// A record's id: unique, and the same wherever the record is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RecordId(pub String);

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A machine's id, 32 hexadecimal digits: a hash, from which the machine's name or its
/// `/etc/machine-id` cannot be read. The same for every record of one machine.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MachineId(pub String);

impl MachineId {
    /// It is made from what names the machine: its node's name with the cluster's before it, or
    /// the text of `/etc/machine-id`. `kind` keeps the one apart from the other.
    #[must_use]
    pub fn of(kind: &str, name: &str) -> MachineId {
        // machine-id(5) asks for a keyed hash of the program's own: the raw id must not leave.
        let mut hasher = blake3::Hasher::new_derive_key("ntcopy survey 1: machine id");
        hasher.update(kind.as_bytes()).update(&[0]).update(name.as_bytes());
        MachineId(hasher.finalize().to_hex()[..32].to_owned())
    }
}

impl fmt::Display for MachineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The machine that a record is of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    pub id: MachineId,
    /// The record's own machine line, without its list of hardware counters.
    /// [`Machine::cpu_signature`] is the key of a CPU model.
    pub machine: Machine,
}

/// What was asked: cells of different records with the same question can be held against each
/// other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Question {
    /// The experiment, with `booted ` before it if it ran in a kernel that ntcopy booted, and then
    /// `own-caches ` if each CPU of that was one of the host's.
    pub experiment: String,
    pub mode: String,
    /// The mode that it is compared with.
    pub baseline: String,
    /// `throughput`, `walks`, `bytes_per_cpu_s` or `p99_rate`; more is better in each.
    pub metric: String,
    /// The cell's other parameters, in one line: [`identity`] without the size.
    pub about: String,
    /// The same for a reader: `destination cold, source cold, threads 1`.
    pub words: String,
    /// What the size is of: `in flight`.
    pub size_of: String,
    /// The size that the experiment is about: bytes of a call, or in flight; of a hot set where
    /// there is none of these.
    pub size_bytes: Option<u64>,
}

/// One mode against another in one cell of one record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub question: Question,
    /// Median of the pairs' ratios: above 1 the mode does more.
    pub ratio: f64,
    /// Lower end of its interval.
    pub low: f64,
    pub high: f64,
    /// Interleaved pairs that it rests on.
    pub pairs: u32,
}

/// What a store keeps of a record, ready to hand.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub record: RecordId,
    pub experiment: ExperimentKind,
    /// When it began: nanoseconds since 1970-01-01 UTC.
    pub taken_unix_ns: u64,
    pub machine: MachineFacts,
    pub node: Option<String>,
    /// Why the record does not count (no timing, a wrong byte), if it does not. It then has no
    /// findings.
    pub not_counted: Option<String>,
    pub findings: Vec<Finding>,
}

impl Summary {
    #[must_use]
    pub fn of(record: &Judged, id: MachineId, node: Option<String>) -> Self {
        let machine =
            Machine { hardware_counters: Vec::new(), topology: None, ..record.machine.clone() };
        let not_counted = record.flaw();
        Summary {
            record: RecordId(record.header.id.clone()),
            experiment: record.header.experiment.clone(),
            taken_unix_ns: record.header.started_unix_ns,
            machine: MachineFacts { id, machine },
            node,
            findings: if not_counted.is_none() { findings(record) } else { Vec::new() },
            not_counted,
        }
    }
}

fn findings(record: &Judged) -> Vec<Finding> {
    let booted = match (record.machine.kernel_kind.as_str(), record.machine.own_cpus()) {
        ("host", _) => "",
        (_, None) => "booted ",
        (_, Some(_)) => "booted own-caches ",
    };
    let kind = &record.header.experiment;
    let asked = (format!("{booted}{kind}"), experiment(kind).size_of);
    let is_asked = |point: &Point<'_>| record.header.sends(point.question.mode) != Sends::Idle;
    let mut seen = BTreeSet::new();
    let all = results(record, &[Use::Judged]).into_iter().filter(is_asked);
    all.filter_map(|point| finding((&asked.0, asked.1), &point))
        .filter(|finding| seen.insert(finding.question.clone()))
        .collect()
}

/// A cell's size, and what else was asked.
fn split(params: &Params) -> (Option<u64>, Params) {
    let number = |name: &str| params.get(name).and_then(Value::as_u64);
    let Some(name) = SIZES.into_iter().find(|name| number(name).is_some()) else {
        return (None, params.clone());
    };
    let mut rest = params.clone();
    rest.remove(name);
    if name == "in_flight_bytes" {
        // The bytes in flight are sockets x object: the number of sockets is the size again.
        rest.remove("sockets");
    }
    (number(name), rest)
}

/// Parameters for a reader.
fn words(params: &Params) -> String {
    let asked = params::asked(params).filter(|(name, _)| *name != "form");
    let words = asked.map(|(name, value)| {
        let bytes = name.strip_suffix("_bytes").zip(value.as_number());
        let (name, value) = match (bytes, value) {
            (Some((name, bytes)), _) => (name, text::size(bytes.as_u64().unwrap_or_default())),
            (None, Value::String(value)) => (name, value.clone()),
            (None, value) => (name, value.to_string()),
        };
        format!("{} {value}", name.replace('_', " "))
    });
    words.collect::<Vec<String>>().join(", ")
}

fn finding(
    (experiment, size_of): (&str, &str),
    Point { question, cell, versus, .. }: &Point<'_>,
) -> Option<Finding> {
    let is_whole =
        [versus.ratio, versus.ci.0, versus.ci.1].iter().all(|x| x.is_finite() && *x > 0.0);
    let (size_bytes, rest) = split(&cell.params);
    is_whole.then(|| Finding {
        question: Question {
            experiment: experiment.to_owned(),
            mode: question.mode.to_owned(),
            baseline: question.other.to_owned(),
            metric: question.metric.to_owned(),
            about: identity(&rest),
            words: words(&rest),
            size_of: size_of.to_owned(),
            size_bytes,
        },
        ratio: versus.ratio,
        low: versus.ci.0,
        high: versus.ci.1,
        pairs: u32::try_from(versus.ratios.len()).unwrap_or(u32::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_told_with_their_units_and_without_their_form() {
        let params: Params = serde_json::from_str(
            r#"{"dataset_bytes": 268435456, "family": "unix", "form": "rounds", "note": "a", "threads": 1}"#,
        )
        .unwrap();
        assert_eq!(words(&params), "dataset 256 MiB, family unix, threads 1");
        assert_eq!(words(&Params::new()), "");
    }
}
