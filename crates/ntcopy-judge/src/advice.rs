//! What to set on a machine, by its records. Pure functions of records and of what the machine
//! has set now.
//!
//! Advice is given where the figures carry it and nowhere else. Of sends it is the smallest length
//! from which on no hinted one loses out of more data than the caches hold, where they win together;
//! of copies and fills the size from which on every cell that was measured wins. Where none does, the
//! advice is to leave it, with the figure. Where nothing was measured, the advice is the command that
//! measures it. `docs/reference/measuring.md` says what each piece rests on.

mod glibc;
mod hints;
mod in_flight;
mod pays;
mod programs;
mod rows;
mod run;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::Judged;
use crate::claims::{Claim, Parts};
use crate::ratio::Ratio;
use ntcopy_record::Machine;

pub use hints::{Source, is_round};
pub use in_flight::{InFlight, for_program};

/// What a piece of advice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Topic {
    /// Its name for programs.
    #[serde(rename = "topic")]
    pub slug: &'static str,
    #[serde(rename = "what")]
    pub title: &'static str,
    /// Whether it is a setting of the machine, rather than something for who writes programs.
    #[serde(skip)]
    pub is_setting: bool,
    /// How to go back, once it is set.
    pub undo: &'static str,
}

const SOCKETS_BACK: &str = "setsockopt() of SO_NTCOPY to 0, or the program without it; of all programs \
                            at once: sudo sysctl net.core.ntcopy=0";
const RUN_BACK: &str =
    "start PROGRAM without ntcopy run; after ntcopy set --pid PID: the same with --off";
const TUNABLE_BACK: &str = "take it out of GLIBC_TUNABLES, and start the programs anew";
const HINTS_BACK: &str = "take the hint out of the call: without one the library decides";

impl Topic {
    pub const MEMCPY_THRESHOLD: Topic =
        setting("glibc-memcpy", "glibc's memcpy: non-temporal from which size", TUNABLE_BACK);
    pub const MEMSET_THRESHOLD: Topic =
        setting("glibc-memset", "glibc's memset: non-temporal from which size", TUNABLE_BACK);
    pub const RUN: Topic = setting(
        "ntcopy-run",
        "ntcopy run: an unmodified program, its large sends hinted",
        RUN_BACK,
    );
    pub const COPIES: Topic =
        program("copies", "libntcopy: copies into memory that is not read soon", HINTS_BACK);
    pub const COPIES_IN_USE: Topic =
        program("copies-in-use", "libntcopy: copies into a buffer in use", HINTS_BACK);
    pub const FILLS: Topic = program("fills", "libntcopy: fills", HINTS_BACK);
    pub const SENDS: Topic = program("sends", "hinted sends", SOCKETS_BACK);
    /// Proxy and backend whole.
    pub const HTTP: Topic = program("http", "hinted responses behind a proxy", SOCKETS_BACK);
    pub const APP: Topic = program("app", "ntcopy run: small requests beside large ones", RUN_BACK);
    pub const HOT_SET_SENDS: Topic =
        program("hot-set-sends", "sends beside a hot set", SOCKETS_BACK);
}

const fn setting(slug: &'static str, title: &'static str, undo: &'static str) -> Topic {
    Topic { slug, title, is_setting: true, undo }
}

const fn program(slug: &'static str, title: &'static str, undo: &'static str) -> Topic {
    Topic { slug, title, is_setting: false, undo }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    /// Set it: it pays.
    Set,
    /// Leave it off, or as it is: it does not pay.
    Leave,
    /// Leave it as it is: it makes no difference, or one here and another there.
    #[serde(rename = "as it is")]
    AsItIs,
    /// Leave it as it is until more is measured: the interval over all cells is too wide.
    Unresolved,
    /// Nothing was measured that would tell.
    #[serde(rename = "no evidence")]
    NoEvidence,
    #[serde(rename = "not here")]
    NotHere,
}

/// What hinted sends come to out of a source in the caches: what is in flight decides there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Hot {
    #[serde(flatten)]
    pub claim: Claim,
    pub losses: usize,
    /// With so much in flight and more no cell loses, and some win; none where that is so of no
    /// number, or of all.
    pub wins_from_in_flight_bytes: Option<u64>,
}

/// A value of a setting, for programs that set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Value {
    /// A socket's option.
    Option { name: &'static str, value: u64 },
    /// `name=value` of `GLIBC_TUNABLES`.
    Glibc { name: &'static str, value: u64 },
}

/// As JSON, it is what programs are told.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    #[serde(flatten)]
    pub topic: Topic,
    /// What of it, where there are several: `tcp sockets`.
    pub about: Option<String>,
    pub decision: Decision,
    /// What to type or write, if something is to be set; of [`Decision::Leave`] what to leave off.
    pub setting: Option<String>,
    /// What it holds now, if known.
    pub current: Option<String>,
    /// Why, in a sentence or two.
    pub why: String,
    /// Ids of the records that it rests on, newest first.
    pub records: Vec<String>,
    /// What is gained, or lost: ratio and interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<Claim>,
    /// What a source in the caches gains or loses by the same number, where that was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hot: Option<Hot>,
    /// What else there is beside the hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parts: Option<Parts>,
    /// Plain sends relative to plain ones of other turns: where that is a win or a loss, the machine is
    /// not fit to show what a hint does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alike: Option<Ratio>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The command that would give evidence, or more of it.
    #[serde(rename = "measure", skip_serializing_if = "Option::is_none")]
    pub run: Option<Vec<String>>,
    /// The size in bytes from which on every cell wins, if there is one.
    #[serde(skip)]
    pub wins_from: Option<u64>,
    /// Which of the cells that were measured lose, in a sentence; none where nothing was.
    #[serde(skip)]
    pub costs: Option<String>,
}

impl Advice {
    /// A decision and why it is so, and nothing else.
    #[must_use]
    pub fn bare(topic: Topic, decision: Decision, why: impl Into<String>) -> Advice {
        Advice {
            topic,
            about: None,
            decision,
            setting: None,
            current: None,
            why: why.into(),
            records: Vec::new(),
            gain: None,
            hot: None,
            parts: None,
            alike: None,
            value: None,
            run: None,
            wins_from: None,
            costs: None,
        }
    }

    /// Nothing was measured; this command would.
    fn no_evidence(topic: Topic, why: impl Into<String>, run: &str) -> Advice {
        let run = Some(run.split(' ').map(str::to_owned).collect());
        Advice { run, ..Advice::bare(topic, Decision::NoEvidence, why) }
    }
}

/// What a profile of `ntcopy footprint calibrate` says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileFacts {
    pub place: String,
    pub date: String,
    /// Bytes from which copies are non-temporal; none: never.
    pub copy_from_bytes: Option<u64>,
    pub fill_from_bytes: Option<u64>,
}

/// The machine that advice is for.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    pub machine: Machine,
    /// Its profile, if it has one that can be used.
    pub profile: Option<ProfileFacts>,
}

impl Target {
    /// Another machine, as its records describe it.
    #[must_use]
    pub fn of(machine: Machine) -> Target {
        Target { machine, profile: None }
    }
}

/// Every piece of advice, by topic. The records are of this machine, timings all of them.
#[must_use]
pub fn advise(records: &[&Judged], target: &Target) -> Vec<Advice> {
    let mut records = records.to_vec();
    records.sort_by_key(|record| std::cmp::Reverse(record.header.started_unix_ns));
    let records = records.as_slice();
    let sends = hints::sends(records);
    // Those over unix sockets are always the first.
    let of_unix = &sends[0];
    let mut all = vec![
        glibc::advice(&glibc::MEMCPY, records, target),
        glibc::advice(&glibc::MEMSET, records, target),
        run::advice(of_unix),
    ];
    all.extend(rows::LIBRARY.iter().map(|row| row.advice(records, target)));
    let hot_set = hints::hot_set(records, of_unix);
    all.extend(sends);
    all.extend(programs::http(records));
    all.extend([programs::app(records), hot_set]);
    all
}

/// Why a record does not count for a machine, if it does not.
pub fn counts(record: &Judged, machine: &Machine) -> Result<(), String> {
    let flaw = record.flaw().or((record.samples == 0).then(|| "it holds no samples".to_owned()));
    flaw.map_or(Ok(()), Err)?;
    crate::compare::is_same_machine(&record.machine, machine)
        .map_err(|differs| format!("it is of another machine ({differs})"))
}
