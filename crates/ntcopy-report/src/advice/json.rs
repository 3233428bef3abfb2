//! Advice for programs.

use ntcopy_judge::Ratio;
use ntcopy_judge::advice::{Advice, Decision, Hot, Target, Topic};
use ntcopy_judge::claims::{Claim, Parts};
use ntcopy_record::Machine;
use serde::Serialize;

use super::{Source, topics, words};

/// A value of a setting, for programs that set it.
#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Value {
    /// A socket's option.
    Option { name: &'static str, value: u64 },
    /// `name=value` of `GLIBC_TUNABLES`.
    Glibc { name: &'static str, value: u64 },
}

fn value(advice: &Advice) -> Option<Value> {
    let value = advice.from_bytes.filter(|_| advice.decision == Decision::Set)?;
    match advice.topic {
        Topic::Sends => Some(Value::Option { name: "SO_NTCOPY", value }),
        topic => Some(Value::Glibc { name: topics::tunable(topic)?, value }),
    }
}

/// What programs are told of a piece of advice.
#[derive(Serialize)]
pub struct Told<'a> {
    topic: Topic,
    what: &'static str,
    undo: &'static str,
    about: Option<String>,
    decision: Decision,
    setting: Option<String>,
    current: Option<String>,
    why: String,
    records: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    gain: Option<Claim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hot: Option<Hot>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Parts>,
    #[serde(skip_serializing_if = "Option::is_none")]
    alike: Option<Ratio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    measure: Option<Vec<String>>,
}

#[must_use]
pub fn told(advice: &Advice) -> Told<'_> {
    let topic = topics::words(advice.topic);
    Told {
        topic: advice.topic,
        what: topic.title,
        undo: topic.undo,
        about: topics::about(advice),
        decision: advice.decision,
        setting: words::setting(advice),
        current: words::now(advice),
        why: words::why(advice),
        records: &advice.records,
        gain: advice.gain,
        hot: advice.hot,
        parts: advice.parts,
        alike: advice.alike,
        value: value(advice),
        measure: words::measure(advice),
    }
}

/// What `--json` prints.
#[derive(Serialize)]
pub struct Object<'a> {
    machine: &'a Machine,
    advice: Vec<Told<'a>>,
    counted: Vec<Counted<'a>>,
    not_counted: Vec<NotCounted<'a>>,
}

#[derive(Serialize)]
struct Counted<'a> {
    place: &'a str,
    record: Option<&'a str>,
}

#[derive(Serialize)]
struct NotCounted<'a> {
    #[serde(flatten)]
    source: Counted<'a>,
    why: &'a str,
    cpu_signature: Option<&'a str>,
}

#[must_use]
pub fn object<'a>(all: &'a [Advice], target: &'a Target, sources: &'a [Source]) -> Object<'a> {
    let source = |one: &'a Source| Counted { place: &one.place, record: one.id.as_deref() };
    let counted = sources.iter().filter(|one| one.not_counted.is_none());
    let not_counted = sources.iter().filter_map(|one| {
        let why = one.not_counted.as_deref()?;
        let cpu_signature = one.cpu_signature.as_deref();
        Some(NotCounted { source: source(one), why, cpu_signature })
    });
    Object {
        machine: &target.machine,
        advice: all.iter().map(told).collect(),
        counted: counted.map(source).collect(),
        not_counted: not_counted.collect(),
    }
}
