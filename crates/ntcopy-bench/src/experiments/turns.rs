//! A program of the user's in turns, plain and hinted, until an interval can be given.
//!
//! A turn is one run of the program by itself; or, with a load, the program as a server, and one
//! run of the load against it. Its figure is the time that the program took, a number that it (or
//! the load) printed, or the requests per second or the latency that the load printed. A load that
//! says that answers failed gives none.

mod load;
mod printed;
pub(super) mod program;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use ntcopy_record::stats::turns::{self, BETTER, LOAD, METRIC, PRINTED, PROGRAM};
use ntcopy_record::{ExperimentKind, Params, Sample};
use serde_json::json;

pub use self::printed::Expression;
use self::program::{Ended, Output, Program, adopt_orphans};
use crate::run::proof::Proof;
use crate::run::{Failure, Stop, ns};
use crate::sample::driver::{At, Context, Experiment, Halt, Lanes, Recording};
use crate::sample::{MeasureError, Outcome};
pub use ntcopy_record::stats::turns::{HINTED, PLAIN};

const MILLION: f64 = 1e6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    Time,
    Printed {
        expression: Expression,
        less_is_better: bool,
    },
    /// The requests per second that a load printed, in one of the forms that are known.
    Requests,
    /// The latency of a load that was told its rate.
    Latency,
}

/// What counts of a load for which nobody says it: requests per second, where they are not what it
/// was told to offer.
#[must_use]
pub fn metric_of(load: &str) -> Metric {
    if load::has_fixed_rate(load) { Metric::Latency } else { Metric::Requests }
}

impl Metric {
    fn is_less_better(&self) -> bool {
        matches!(
            self,
            Metric::Time | Metric::Latency | Metric::Printed { less_is_better: true, .. }
        )
    }
}

#[derive(Debug, Clone)]
pub struct Plan {
    pub program: Vec<OsString>,
    /// What the program has in its environment when it is hinted.
    pub hinting: Vec<(OsString, OsString)>,
    /// A command for the shell that asks the program, which is a server then.
    pub load: Option<String>,
    /// A command for the shell that succeeds once the server can be asked; without one, a server
    /// is ready when a socket of its listens.
    pub ready: Option<String>,
    pub metric: Metric,
    pub pairs: u32,
}

struct Turn {
    took: Duration,
    number: Option<f64>,
    counted: BTreeMap<String, u64>,
}

impl Experiment for Plan {
    fn identity(&self) -> (ExperimentKind, String) {
        (ExperimentKind::Try, PLAIN.to_owned())
    }

    fn caveats(&self) -> Vec<String> {
        let caveat = "the load has a fixed rate, which it reaches whatever the server does: its \
                      latency counts, the median or else the average";
        (self.metric == Metric::Latency).then(|| caveat.to_owned()).into_iter().collect()
    }

    /// Before the first pair each way has a turn that does not count. A turn that fails ends the
    /// measurement, with an error row: the next one would fail as well.
    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        adopt_orphans()?;
        let mut recording = Recording::begin(self, context)?;
        recording.expect(2 * u64::from(self.pairs));
        let (patience, stop) = (recording.options.patience, recording.stop);
        let mut turns = Turns { plan: self, patience, stop };
        recording.cells(0..1, |recording, _| {
            recording.cell(0, params(self))?;
            recording.at("warming up");
            for mode in [HINTED, PLAIN] {
                if let Err(failure) = turns.turn(mode) {
                    return turns.failed(mode, At::default(), failure, recording).map(drop);
                }
            }
            let modes = (&[PLAIN, HINTED][..], vec![PLAIN, HINTED]);
            recording.groups(&mut turns, modes, (&[(0, "turns")], self.pairs))
        })?;
        recording.end()
    }
}

struct Turns<'a> {
    plan: &'a Plan,
    patience: Duration,
    stop: &'a Stop,
}

impl Lanes for Turns<'_> {
    type Mode = &'static str;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        let figure = turns::figure(sample)?;
        Some(if self.plan.metric.is_less_better() { 1.0 / figure } else { figure })
    }

    fn sample(&mut self, mode: &'static str, at: At) -> Result<Sample, Failure> {
        let turn = self.turn(mode)?;
        let printed = turn.number.map(|number| (number * MILLION).round() as u64);
        let series = printed.into_iter().map(|number| (PRINTED.to_owned(), vec![number])).collect();
        Ok(Sample { counters: turn.counted, series, ..at.sample(mode, 0, ns(turn.took)) })
    }

    fn failed(
        &mut self,
        mode: &'static str,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<bool, Halt> {
        self.stop.check()?;
        recording.error(at.cell, mode, &failure)?;
        Err(Halt::Stopped)
    }
}

impl Turns<'_> {
    fn turn(&self, mode: &str) -> Result<Turn, Failure> {
        let Turns { plan, patience, stop, .. } = *self;
        let proof = Proof::begin(None)?;
        let environment = if mode == HINTED { &plan.hinting[..] } else { &[] };
        let keeps = if plan.metric == Metric::Time { Output::Dropped } else { Output::Kept };
        let ended = match &plan.load {
            None => Program::start(&plan.program, environment, keeps)?.finish(patience, stop)?,
            Some(load) => self.under_load(load, environment, keeps)?,
        };
        let counted = proof.rose()?;
        let number = match &plan.metric {
            Metric::Time => None,
            Metric::Printed { expression, .. } => {
                Some(expression.number(&ended.output).map_err(Failure::Answer)?)
            }
            Metric::Requests => {
                let found = load::requests_a_second(&ended.output);
                Some(figure(found, "requests per second", &ended.output)?)
            }
            Metric::Latency => {
                Some(figure(load::latency_ms(&ended.output), "latency", &ended.output)?)
            }
        };
        Ok(Turn { took: ended.took, number, counted })
    }

    fn under_load(
        &self,
        load: &str,
        environment: &[(OsString, OsString)],
        keeps: Output,
    ) -> Result<Ended, Failure> {
        let Turns { plan, patience, stop, .. } = *self;
        let mut server = Program::start(&plan.program, environment, Output::Dropped)?;
        server.is_ready(plan.ready.as_deref(), patience, stop)?;
        let ended = Program::shell(load, keeps)?.finish(patience, stop)?;
        server.still_runs()?;
        server.goodbye()?;
        match load::failed_answers(&ended.output) {
            Some(why) => Err(Failure::Answer(why)),
            None => Ok(ended),
        }
    }
}

fn figure(found: Option<Result<f64, String>>, what: &str, output: &[u8]) -> Result<f64, Failure> {
    let found = found.unwrap_or_else(|| {
        let printed = String::from_utf8_lossy(output);
        let last: Vec<&str> = printed.trim().lines().rev().take(3).collect();
        Err(format!(
            "the load printed no {what} in a form that is known: --metric says how to find the \
             number; its last lines: {}",
            last.into_iter().rev().collect::<Vec<_>>().join(" / ")
        ))
    });
    found.map_err(Failure::Answer)
}

fn params(plan: &Plan) -> Params {
    let words: Vec<String> =
        plan.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let metric = match &plan.metric {
        Metric::Time => "time",
        Metric::Printed { expression, .. } => expression.as_str(),
        Metric::Requests => "requests per second",
        Metric::Latency => "latency, ms",
    };
    let is_less = plan.metric.is_less_better();
    let mut params = Params::from([
        (PROGRAM.to_owned(), json!(words)),
        (METRIC.to_owned(), json!(metric)),
        (BETTER.to_owned(), json!(if is_less { "less" } else { "more" })),
    ]);
    if let Some(load) = &plan.load {
        params.insert(LOAD.to_owned(), json!(load));
    }
    params
}
