//! A program of the user's in turns, plain and hinted, until an interval can be given.
//!
//! A turn is one run of the program by itself; or, with a load, the program as a server, and one
//! run of the load against it. Its figure is the time that the program took, a number that it (or
//! the load) printed, or the requests per second or the latency that the load printed. A load that
//! says that answers failed gives none. The CPU time of both, and the latencies that the load
//! printed, are noted beside it.

mod cpu;
mod listening;
mod load;
mod outside;
mod printed;
pub(super) mod program;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

use ntcopy_judge::stats::turns::{
    self, ANSWERS, BETTER, LOAD, LOAD_CPU, METRIC, P50, P99, PREPARE, PRINTED, PROGRAM, PROGRAM_CPU,
};
use ntcopy_record::{ExperimentKind, Mode, Params, Sample};
use serde_json::json;

use self::cpu::CpuOfChildren;
use self::listening::Name;
pub use self::outside::Outside;
pub use self::printed::Expression;
use self::program::{Ended, Output, RunningProgram, adopt_orphans};
use crate::plan::group_order;
use crate::run::proof::Proof;
use crate::run::{Failure, Patience, ns};
use crate::sample::driver::{At, Context, Experiment, Groups, Halt, Lanes, Recording};
use crate::sample::{MeasureError, Outcome, named};
pub use ntcopy_judge::stats::turns::{HINTED, PLAIN};

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

/// How a program is hinted.
#[derive(Debug, Clone, Default)]
pub struct Hinting {
    /// What it has in its environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Who sets its sockets, where it loads no library.
    pub from_outside: Option<Outside>,
}

#[derive(Debug, Clone)]
pub struct TurnsPlan {
    pub program: Vec<OsString>,
    /// How it is hinted.
    pub hinting: Hinting,
    /// A command for the shell before each turn.
    pub prepare: Option<String>,
    /// A command for the shell that asks the program, which is a server then.
    pub load: Option<String>,
    /// A command for the shell that succeeds once the server can be asked; without one, a server
    /// is ready when a socket of its listens.
    pub ready: Option<String>,
    pub metric: Metric,
    pub pairs: u32,
    /// The number of the first pair among those of other boots: it says which way is first.
    pub first_pair: u32,
}

struct Turn {
    took: Duration,
    number: Option<f64>,
    counted: BTreeMap<String, u64>,
    /// What was noted beside the figure, by name.
    noted: BTreeMap<String, u64>,
    taken_bytes: u64,
}

impl Experiment for TurnsPlan {
    fn identity(&self) -> (ExperimentKind, Vec<Mode>) {
        (ExperimentKind::Try, named(&[PLAIN, HINTED]))
    }

    fn caveats(&self) -> Vec<String> {
        let caveat = "the load has a fixed rate, which it reaches whatever the server does: its \
                      latency counts, the median or else the average, and the CPU time";
        (self.metric == Metric::Latency).then(|| caveat.to_owned()).into_iter().collect()
    }

    /// Before the first pair each way has a turn that does not count. A turn that fails ends the
    /// measurement, with an error row: the next one would fail as well.
    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        adopt_orphans()?;
        let mut recording = Recording::begin(self, context)?;
        recording.expect(2 * u64::from(self.pairs));
        let mut turns = Turns { plan: self, patience: recording.patience(), is_warm: false };
        recording.cells(0..1, |recording, _| {
            recording.cell(0, params(self))?;
            recording.at("warming up");
            // Plain first: a program that fails as it is says nothing of hints.
            for mode in [PLAIN, HINTED] {
                if let Err(failure) = turns.turn(mode) {
                    return turns.failed(mode, At::default(), failure, recording).map(drop);
                }
            }
            turns.is_warm = true;
            let order = group_order(&[PLAIN, HINTED], self.first_pair);
            let (alive, cells) = (order.clone(), &[(0, "turns")]);
            recording.groups(&mut turns, Groups { modes: &order, alive, cells, pairs: self.pairs })
        })?;
        recording.end()
    }
}

struct Turns<'a> {
    plan: &'a TurnsPlan,
    patience: Patience<'a>,
    /// Whether there was a turn of each way.
    is_warm: bool,
}

impl Lanes for Turns<'_> {
    type Mode = &'static str;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        turns::rate(sample, self.plan.metric.is_less_better())
    }

    fn sample(&mut self, mode: &'static str, at: At) -> Result<Sample, Failure> {
        let turn = self.turn(mode)?;
        let printed = turn.number.map(|number| (number * MILLION).round() as u64);
        let printed = printed.map(|number| (PRINTED.to_owned(), number));
        let series = turn.noted.into_iter().chain(printed);
        let series = series.map(|(name, number)| (name, vec![number])).collect();
        let counters = turn.counted;
        Ok(Sample { counters, series, ..at.sample(mode, turn.taken_bytes, ns(turn.took)) })
    }

    fn failed(
        &mut self,
        mode: &'static str,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<bool, Halt> {
        self.patience.stop.check()?;
        let how = match (mode, self.is_warm) {
            (HINTED, _) => "hinted, it fails where it ran as it is",
            (_, true) => "as it is, it fails where it ran before",
            (_, false) => "it fails as it is, and nothing was hinted yet",
        };
        recording.error(at.cell, mode, &Failure::Answer(format!("{how}: {failure}")))?;
        Err(Halt::Stopped)
    }
}

impl Turns<'_> {
    fn turn(&self, mode: &str) -> Result<Turn, Failure> {
        let Turns { plan, patience, .. } = *self;
        if let Some(line) = &plan.prepare {
            RunningProgram::shell(line, Output::Dropped)?.finish(patience)?;
        }
        let proof = Proof::begin(None)?;
        let hinting = (mode == HINTED).then_some(&plan.hinting);
        let done = match &plan.load {
            None => self.alone(hinting)?,
            Some(load) => self.under_load(load, hinting)?,
        };
        let counted = proof.rose()?;
        let output = &done.ended.output;
        let number = match &plan.metric {
            Metric::Time => None,
            Metric::Printed { expression, .. } => {
                Some(expression.number(output).map_err(Failure::Answer)?)
            }
            Metric::Requests => {
                Some(figure(load::requests_a_second(output), "requests per second", output)?)
            }
            Metric::Latency => Some(figure(load::latency_ms(output), "latency", output)?),
        };
        let is_load = plan.load.is_some();
        let taken_bytes = load::taken_bytes(output).filter(|_| is_load).unwrap_or(0);
        let noted = done.noted(is_load);
        Ok(Turn { took: done.ended.took, number, counted, noted, taken_bytes })
    }

    fn alone(&self, hinting: Option<&Hinting>) -> Result<Done, Failure> {
        let Turns { plan, patience, .. } = *self;
        let keeps = if plan.metric == Metric::Time { Output::Dropped } else { Output::Kept };
        let cpu = CpuOfChildren::begin();
        let program = RunningProgram::start(&plan.program, environment(hinting), keeps)?;
        let follower = hinting.and_then(|how| how.from_outside.as_ref());
        let follower = follower.map(|outside| outside.follow(program.pid())).transpose()?;
        let ended = program.finish_unasked(patience)?;
        drop(follower);
        Ok(Done { ended, program_ns: cpu.used_ns(), load_ns: 0 })
    }

    fn under_load(&self, load: &str, hinting: Option<&Hinting>) -> Result<Done, Failure> {
        let Turns { plan, patience, .. } = *self;
        let mut server =
            RunningProgram::start(&plan.program, environment(hinting), Output::Dropped)?;
        let ready = server.is_ready(plan.ready.as_deref(), patience);
        ready.map_err(|failure| with_old_socket(failure, &plan.program))?;
        if let Some(outside) = hinting.and_then(|how| how.from_outside.as_ref()) {
            outside.once(server.pid(), patience)?;
        }
        let left = server.sockets()?;
        let before = server.cpu_ns()?;
        let cpu = CpuOfChildren::begin();
        let ended = RunningProgram::shell(load, Output::Kept)?.finish(patience)?;
        let load_ns = cpu.used_ns();
        let program_ns = server.cpu_ns()?.saturating_sub(before);
        server.still_runs()?;
        server.goodbye()?;
        left.iter().for_each(Name::clear);
        match load::failed_answers(&ended.output) {
            Some(why) => Err(Failure::Answer(why)),
            None => Ok(Done { ended, program_ns, load_ns }),
        }
    }
}

/// A server that does not come up may have found the socket of an earlier one.
fn with_old_socket(failure: Failure, program: &[OsString]) -> Failure {
    match (failure, listening::abandoned(program)) {
        (Failure::Program { name, what }, Some(path)) => {
            let path = path.display();
            let what = format!("{what}; {path} is of an earlier server: remove it");
            Failure::Program { name, what }
        }
        (failure, _) => failure,
    }
}

fn environment(hinting: Option<&Hinting>) -> &[(OsString, OsString)] {
    hinting.map_or(&[], |how| &how.environment)
}

/// What ended with a turn, and the CPU time of it.
struct Done {
    ended: Ended,
    program_ns: u64,
    load_ns: u64,
}

impl Done {
    fn noted(&self, is_load: bool) -> BTreeMap<String, u64> {
        let mut noted = BTreeMap::from([(PROGRAM_CPU.to_owned(), self.program_ns)]);
        if !is_load {
            return noted;
        }
        noted.insert(LOAD_CPU.to_owned(), self.load_ns);
        let output = &self.ended.output;
        for (name, percent) in [(P50, 50), (P99, 99)] {
            let found = load::quantile_ms(output, percent);
            noted.extend(found.map(|ms| (name.to_owned(), (ms * MILLION).round() as u64)));
        }
        if let Some(Ok(rate)) = load::requests_a_second(output) {
            let answers = rate * self.ended.took.as_secs_f64();
            noted.insert(ANSWERS.to_owned(), answers.round() as u64);
        }
        noted
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

fn params(plan: &TurnsPlan) -> Params {
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
    for (name, line) in [(LOAD, &plan.load), (PREPARE, &plan.prepare)] {
        params.extend(line.as_ref().map(|line| (name.to_owned(), json!(line))));
    }
    params
}
