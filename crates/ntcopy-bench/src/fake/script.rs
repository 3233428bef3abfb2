//! Lanes that measure nothing, with a clock that stands still, in place of the real ones: what the
//! drivers ask of a lane, and what they write, as text. The feature `fake-lanes` puts them there.
//!
//! A script lets one call fail, so that every way through a driver can be gone.

use std::cell::RefCell;
use std::fmt::Arguments;

use super::{Failure, Stop};

/// The signal that a script sends.
const SIGINT: usize = 2;

/// How a call goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Fails,
    /// It fails, and so does every later call of the same words.
    FailsAlways,
    WrongByte,
    /// A signal comes, and the call says so.
    Stopped,
    /// A signal comes, and the call fails because of it, in other words.
    Interrupted,
    /// A signal comes while it does what it should.
    SignalMeanwhile,
    /// It is done, and some answers did not come.
    Late,
}

impl Kind {
    pub const ALL: [Kind; 7] = [
        Kind::Fails,
        Kind::FailsAlways,
        Kind::WrongByte,
        Kind::Stopped,
        Kind::Interrupted,
        Kind::SignalMeanwhile,
        Kind::Late,
    ];
}

/// Which call goes wrong, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Script {
    /// The call's number, from 1.
    pub at: u64,
    pub kind: Kind,
}

#[derive(Default)]
struct State {
    script: Option<Script>,
    stop: Stop,
    calls: u64,
    /// The words of a call that fails whenever it comes.
    failing: Option<String>,
    log: String,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Begins a log; signals of the script are sent to `stop`.
pub fn begin(script: Option<Script>, stop: &Stop) {
    let state = State { script, stop: stop.clone(), ..State::default() };
    STATE.with(|kept| *kept.borrow_mut() = state);
}

/// What was called and written since [`begin`], and how many calls could have gone wrong.
#[must_use]
pub fn end() -> (String, u64) {
    STATE.with(|kept| {
        let state = kept.take();
        (state.log, state.calls)
    })
}

/// Notes something that cannot go wrong.
pub fn note(what: Arguments<'_>) {
    STATE.with(|kept| kept.borrow_mut().log.push_str(&format!("{what}\n")));
}

/// Notes a line of the record, without what differs from run to run.
pub fn line(bytes: &[u8]) {
    let mut line: serde_json::Value = serde_json::from_slice(bytes).unwrap_or_default();
    if let Some(id) = line.get_mut("id") {
        *id = "".into();
    }
    note(format_args!("> {line}"));
}

/// Notes a call, and lets it go as the script says; gives whether answers are to be late.
pub fn call(what: Arguments<'_>) -> Result<bool, Failure> {
    let words = what.to_string();
    let wrong = Failure::WrongByte { socket: 0, position: 1, expected: 2, got: 3 };
    note(format_args!("{words}"));
    STATE.with(|kept| {
        let mut state = kept.borrow_mut();
        state.calls += 1;
        let failed = || Failure::Answer("the script says so".to_owned());
        if state.failing.as_ref() == Some(&words) {
            return Err(failed());
        }
        let calls = state.calls;
        let Some(kind) = state.script.filter(|script| script.at == calls).map(|it| it.kind) else {
            return Ok(false);
        };
        if matches!(kind, Kind::Stopped | Kind::Interrupted | Kind::SignalMeanwhile) {
            state.stop.ask(SIGINT);
        }
        match kind {
            Kind::Fails | Kind::Interrupted => Err(failed()),
            Kind::FailsAlways => {
                state.failing = Some(words);
                Err(failed())
            }
            Kind::WrongByte => Err(wrong),
            Kind::Stopped => Err(Failure::Stopped(SIGINT as i32)),
            Kind::SignalMeanwhile => Ok(false),
            Kind::Late => Ok(true),
        }
    })
}

/// A call whose wrong bytes are those of a copy.
pub fn copying(what: Arguments<'_>) -> Result<(), Failure> {
    match call(what) {
        Err(Failure::WrongByte { position, expected, got, .. }) => {
            Err(Failure::WrongCopy { position, expected, got })
        }
        result => result.map(drop),
    }
}

pub fn due(schedule: &super::schedule::Schedule) -> String {
    let sum: u128 = schedule.due_ns.iter().map(|ns| u128::from(*ns)).sum();
    format!("{} due, {sum} in all", schedule.due_ns.len())
}
