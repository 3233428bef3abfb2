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
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::Judged;
pub use crate::claims::Taker;
use crate::claims::{Claim, Outcomes, Parts, Size, Worst};
use crate::ratio::Ratio;
use ntcopy_record::Machine;

pub use hints::{Source, is_round};
pub use in_flight::{InFlight, for_program};
pub use programs::OWN_STACK;

/// What a piece of advice is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topic {
    /// From which size on glibc's memcpy is non-temporal.
    #[serde(rename = "glibc-memcpy")]
    MemcpyThreshold,
    #[serde(rename = "glibc-memset")]
    MemsetThreshold,
    /// `ntcopy run`: an unmodified program, its large sends hinted.
    #[serde(rename = "ntcopy-run")]
    Run,
    /// Copies of libntcopy into memory that is not read soon.
    Copies,
    CopiesInUse,
    Fills,
    Sends,
    /// Proxy and backend whole.
    Http,
    /// Small requests beside large ones.
    App,
    /// Sends beside a hot set.
    HotSetSends,
}

impl Topic {
    /// Whether it is a setting of the machine, rather than something for who writes programs.
    #[must_use]
    pub fn is_setting(self) -> bool {
        matches!(self, Topic::MemcpyThreshold | Topic::MemsetThreshold | Topic::Run)
    }
}

/// What of a topic, where there are several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum About {
    Whole,
    /// Sockets of this family, as records name it.
    Sockets(String),
    /// A proxy and its backend.
    Stack(String),
    /// A way to copy or to fill.
    Mode(&'static str),
    /// What is beside sends of which this is the advice.
    BesideSends(Decision),
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
    #[serde(skip)]
    pub worst: Option<Worst>,
    /// With so much in flight and more no cell loses, and some win; none where that is so of no
    /// number, or of all.
    pub wins_from_in_flight_bytes: Option<u64>,
}

/// Why a decision is as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Nothing that would tell was measured on this machine.
    NotMeasured,
    /// The C library has no such threshold to set.
    NoTunable { libc: String },
    /// Nobody says which threshold the C library has.
    ThresholdUnknown { libc: String },
    /// The C library's own threshold leaves nothing to try.
    ThresholdWithinLevel2 { libc: String, bytes: u64 },
    /// A program that was looked at had no byte in flight.
    NothingInFlight,
    /// No cell has about as much in flight as a program; those that there are have this much.
    NoneLikeIt { least_bytes: Option<u64>, most_bytes: Option<u64> },
    /// How sends came out of more data than the caches hold: those below the length from which on none
    /// loses, if any, and those from there on. No length where the longest lose.
    Lengths { from_bytes: Option<u64>, below: Option<Outcomes>, above: Outcomes, all: Outcomes },
    /// Every cell wins from a size on; how the smaller ones came out, if any were measured.
    WinsFrom { from: Size, below: Option<Outcomes> },
    /// There is no such size: how all cells came out.
    OverAll(Outcomes),
    /// Small requests beside large ones: at the median, and at the 99th percentile.
    Waits { half: Claim, tail: Claim },
}

/// What is set now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// A C library's function is non-temporal from so many bytes on.
    Threshold(u64),
    /// The library goes by a profile: non-temporal from so many bytes on; none: never.
    Profile { profile: ProfileFacts, from_bytes: Option<u64> },
    /// The library goes by CPUID.
    NoProfile,
}

/// Traffic and the other program on its CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Together {
    /// Sends and walks together.
    pub whole: Claim,
    /// The other program at its 99th percentile.
    pub tail: Claim,
}

/// A kernel that was booted to measure in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    pub release: String,
    pub kind: String,
}

/// What would have to be measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// What the topic rests on.
    Usual,
    /// These sizes, with a threshold at the first.
    Sizes(Vec<u64>),
    /// Hinted sends on so many sockets.
    Rounds { sockets: u64, object_bytes: u64 },
}

/// What is advised, and all that it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    pub topic: Topic,
    pub about: About,
    pub taker: Taker,
    pub decision: Decision,
    pub reason: Reason,
    /// The size of a send or a call from which on it is to be done, or is done already.
    pub from_bytes: Option<u64>,
    pub now: Option<Now>,
    /// Ids of the records that it rests on, newest first.
    pub records: Vec<String>,
    /// What is gained, or lost: ratio and interval.
    pub gain: Option<Claim>,
    /// What a source in the caches gains or loses by the same number, where that was measured.
    pub hot: Option<Hot>,
    /// What else there is beside the hint.
    pub parts: Option<Parts>,
    /// Plain sends relative to plain ones of other turns: where that is a win or a loss, the machine is
    /// not fit to show what a hint does.
    pub alike: Option<Ratio>,
    pub together: Option<Together>,
    pub guest: Option<Guest>,
    /// What would give evidence, where there is none.
    pub measure: Option<Measure>,
}

impl Advice {
    /// A decision and why it is so, and nothing else.
    #[must_use]
    pub fn bare(topic: Topic, decision: Decision, reason: Reason) -> Advice {
        Advice {
            topic,
            about: About::Whole,
            taker: Taker::Kernel,
            decision,
            reason,
            from_bytes: None,
            now: None,
            records: Vec::new(),
            gain: None,
            hot: None,
            parts: None,
            alike: None,
            together: None,
            guest: None,
            measure: None,
        }
    }

    /// Nothing was measured; this would be evidence.
    fn no_evidence(topic: Topic, about: About, measure: Measure) -> Advice {
        let bare = Advice::bare(topic, Decision::NoEvidence, Reason::NotMeasured);
        Advice { about, measure: Some(measure), ..bare }
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
    let hints = hints_of(records, Taker::Kernel);
    // Those over unix sockets are always the first.
    let of_unix = &hints[0];
    let mut all = vec![
        glibc::advice(&glibc::MEMCPY, records, target),
        glibc::advice(&glibc::MEMSET, records, target),
        // For a program that cannot be changed.
        Advice { topic: Topic::Run, ..of_unix.clone() },
    ];
    all.extend(rows::LIBRARY.iter().map(|row| row.advice(records, target)));
    all.extend(hints);
    let by_module = hints_of(records, Taker::Module);
    all.extend(by_module.into_iter().filter(|one| one.decision != Decision::NoEvidence));
    all
}

/// What hints bring that one taker has; of sends over unix sockets first.
fn hints_of(records: &[&Judged], taker: Taker) -> Vec<Advice> {
    let mut all = hints::sends(records, taker);
    let hot_set = hints::hot_set(records, taker, &all[0]);
    all.extend(programs::http(records, taker));
    all.extend([programs::app(records, taker), hot_set]);
    all.into_iter().map(|advice| Advice { taker, ..advice }).collect()
}

/// Why a record does not count for a machine, if it does not.
pub fn counts(record: &Judged, machine: &Machine) -> Result<(), String> {
    let flaw = record.flaw().or((record.samples == 0).then(|| "it holds no samples".to_owned()));
    flaw.map_or(Ok(()), Err)?;
    crate::compare::is_same_machine(&record.machine, machine)
        .map_err(|differs| format!("it is of another machine ({differs})"))
}
