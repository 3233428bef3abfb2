//! Measures a plan in turns, in pairs, and writes a record.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::{Duration, Instant};

use ntcopy::socket::{self, Counters};
use serde_json::json;

use super::printed::requests_a_second;
use super::program::{Ended, Output, Program, adopt_orphans};
use super::{Extent, HINTED, Metric, PLAIN, Plan};
use crate::experiments::header;
use crate::plan::group_order;
use crate::run::{Failure, Stop, unix_now_ns};
use crate::sample::resolved::Pairs;
use crate::sample::{MeasureError, Outcome, Progress, Writer};
use ntcopy_record::stats::looks::LastLook;
use ntcopy_record::stats::turns::{BETTER, LOAD, METRIC, PRINTED, PROGRAM};
use ntcopy_record::stats::{MIN_PAIRS, THROUGHPUT};
use ntcopy_record::{Cell, End, ExperimentKind, Line, Look, Machine, Params, RunError, Sample};

/// With a budget there are at most so many pairs.
const MOST_PAIRS: u32 = 128;
const LEAST_PAIRS: u32 = MIN_PAIRS as u32;
const MILLION: f64 = 1e6;

/// The time and number of one turn, and what the kernel counted.
struct Turn {
    took: Duration,
    number: Option<f64>,
    counted: BTreeMap<String, u64>,
}

/// Takes turns and writes the record.
///
/// Before the first pair each way has a turn that does not count. A turn that fails ends the
/// measurement, with an error row: the next one would fail as well.
pub fn measure(
    plan: &Plan,
    machine: Machine,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Outcome, MeasureError> {
    adopt_orphans().map_err(MeasureError::Start)?;
    let mut writer = Writer::create(&plan.out)?;
    let header = header(ExperimentKind::Try, PLAIN, &plan.command, plan.not_a_timing.as_ref());
    writer.line(&Line::Header(header))?;
    writer.line(&Line::Machine(Box::new(machine)))?;
    writer.line(&Line::Cell(Cell { cell: 0, params: params(plan) }))?;
    if let Err((mode, failure)) = pairs(plan, stop, progress, &mut writer)?
        && stop.signal().is_none()
    {
        let error = RunError {
            cell: 0,
            mode: mode.to_owned(),
            what: failure.to_string(),
            wrong_byte: false,
        };
        writer.line(&Line::Error(error))?;
    }
    progress.end();
    let stopped = stop.signal();
    if stopped.is_none() {
        let end = End { samples: writer.samples(), ended_unix_ns: unix_now_ns() };
        writer.line(&Line::End(end))?;
    }
    Ok(Outcome { place: plan.out.clone(), stopped })
}

/// All pairs, until enough is known; the way and the failure that ended them early, if one did.
fn pairs(
    plan: &Plan,
    stop: &Stop,
    progress: &mut Progress,
    writer: &mut Writer,
) -> Result<Result<(), (&'static str, Failure)>, MeasureError> {
    let began = Instant::now();
    for mode in [HINTED, PLAIN] {
        progress.at("warming up", 0);
        if let Err(failure) = turn(plan, mode, stop) {
            return Ok(Err((mode, failure)));
        }
    }
    let mut pair_took = began.elapsed();
    let likely = likely_pairs(plan.extent, pair_took);
    progress.begin(2 * u64::from(likely));
    let mut sampled = Pairs::new(LEAST_PAIRS, (&ExperimentKind::Try, PLAIN), THROUGHPUT);
    for pairs in 0.. {
        match plan.extent {
            Extent::Pairs(wanted) if pairs >= wanted => break,
            Extent::Pairs(_) => {}
            Extent::Budget(budget) => {
                let is_time_up = began.elapsed() + pair_took > budget;
                if let Some(LastLook { misses_permille, end }) = sampled.last(pairs, is_time_up) {
                    writer.line(&Line::Look(Look { cell: 0, pairs, misses_permille, end }))?;
                    break;
                }
            }
        }
        let pair = pairs;
        let pair_began = Instant::now();
        for (position, mode) in (0..).zip(group_order(&[PLAIN, HINTED], pair)) {
            progress.at(mode, writer.samples());
            match turn(plan, mode, stop) {
                Ok(turn) => {
                    sampled.add_figure(mode, pair, figure(plan, &turn));
                    writer.line(&Line::Sample(sample(&turn, mode, (pair, position))))?;
                }
                Err(failure) => return Ok(Err((mode, failure))),
            }
        }
        pair_took = pair_began.elapsed();
    }
    Ok(Ok(()))
}

/// How many pairs there will be, for the bar.
fn likely_pairs(extent: Extent, pair: Duration) -> u32 {
    match extent {
        Extent::Pairs(pairs) => pairs,
        Extent::Budget(budget) => {
            let fitting = budget.as_secs_f64() / pair.as_secs_f64().max(1e-3);
            (fitting as u32).clamp(LEAST_PAIRS, MOST_PAIRS)
        }
    }
}

fn turn(plan: &Plan, mode: &str, stop: &Stop) -> Result<Turn, Failure> {
    let before = counters()?;
    let environment = if mode == HINTED { &plan.hinting[..] } else { &[] };
    let keeps = if plan.metric == Metric::Time { Output::Dropped } else { Output::Kept };
    let ended = match &plan.load {
        None => Program::start(&plan.program, environment, keeps)?.finish(plan.patience, stop)?,
        Some(load) => under_load(plan, load, environment, keeps, stop)?,
    };
    let counted = match (before, counters()?) {
        (Some(before), Some(after)) => risen(&before, &after)?,
        _ => BTreeMap::new(),
    };
    let number = match &plan.metric {
        Metric::Time => None,
        Metric::Printed { expression, .. } => {
            Some(expression.number(&ended.output).map_err(Failure::Answer)?)
        }
        Metric::Requests => Some(requests(&ended.output).map_err(Failure::Answer)?),
    };
    Ok(Turn { took: ended.took, number, counted })
}

fn requests(output: &[u8]) -> Result<f64, String> {
    requests_a_second(output).unwrap_or_else(|| {
        let printed = String::from_utf8_lossy(output);
        let last: Vec<&str> = printed.trim().lines().rev().take(3).collect();
        Err(format!(
            "the load printed no requests a second in a form that is known: --metric says how to \
             find the number; its last lines: {}",
            last.into_iter().rev().collect::<Vec<_>>().join(" / ")
        ))
    })
}

/// The program as a server, and one run of the load.
fn under_load(
    plan: &Plan,
    load: &str,
    environment: &[(OsString, OsString)],
    keeps: Output,
    stop: &Stop,
) -> Result<Ended, Failure> {
    let mut server = Program::start(&plan.program, environment, Output::Dropped)?;
    server.is_ready(plan.ready.as_deref(), plan.patience, stop)?;
    let ended = Program::shell(load, keeps)?.finish(plan.patience, stop)?;
    server.still_runs()?;
    server.goodbye()?;
    Ok(ended)
}

/// None where the kernel counts nothing.
fn counters() -> Result<Option<Counters>, Failure> {
    socket::counters().map_err(|error| Failure::Counters(error.to_string()))
}

/// The counters that rose, and by how much.
fn risen(before: &Counters, after: &Counters) -> Result<BTreeMap<String, u64>, Failure> {
    let added = after.since(before).map_err(|error| Failure::Counters(error.to_string()))?;
    let all = added.as_map().iter().map(|(name, bytes)| (name.clone(), *bytes));
    Ok(all.filter(|(_, bytes)| *bytes > 0).collect())
}

/// A turn's figure, turned so that more is better.
fn figure(plan: &Plan, turn: &Turn) -> f64 {
    match (&plan.metric, turn.number) {
        (Metric::Printed { less_is_better: true, .. }, Some(number)) => 1.0 / number,
        (_, Some(number)) => number,
        (_, None) => 1.0 / turn.took.as_secs_f64().max(1e-9),
    }
}

fn sample(turn: &Turn, mode: &str, (pair, position): (u32, u32)) -> Sample {
    let printed = turn.number.map(|number| (number * MILLION).round() as u64);
    Sample {
        cell: 0,
        pair,
        position,
        mode: mode.to_owned(),
        bytes: 0,
        elapsed_ns: u64::try_from(turn.took.as_nanos()).unwrap_or(u64::MAX),
        phases_ns: BTreeMap::new(),
        counters: turn.counted.clone(),
        series: printed.into_iter().map(|number| (PRINTED.to_owned(), vec![number])).collect(),
    }
}

fn params(plan: &Plan) -> Params {
    let words: Vec<String> =
        plan.program.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (metric, is_less) = match &plan.metric {
        Metric::Time => ("time".to_owned(), true),
        Metric::Printed { expression, less_is_better } => {
            (expression.as_str().to_owned(), *less_is_better)
        }
        Metric::Requests => ("requests a second".to_owned(), false),
    };
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
