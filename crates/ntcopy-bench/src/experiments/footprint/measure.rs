//! Measures a plan, and writes a record.

use std::time::Instant;

use serde_json::json;

use super::lines::{Cycle, Memory, has_clflushopt, read};
use super::trigger::{self, Trigger, Triggers};
use super::{Call, FootprintPlan, LINE_BYTES, Level, NOTHING};
use crate::run::{Failure, ns, stay_on};
use crate::sample::driver::{At, Context, Experiment, Halt, Recording, available};
use crate::sample::{MeasureError, Outcome, named};
use ntcopy_judge::stats::footprint::{DISPLACED, param};
use ntcopy_judge::stats::median;
use ntcopy_record::{ExperimentKind, Mode, Params, Sample};

/// Parts of a cache that may be primed, the largest that fits. The lines lie in twice as much
/// memory, so that half of a cache is spread over all of it.
const PRIMED_PARTS: [f64; 4] = [0.5, 0.375, 0.25, 0.125];
/// A primed set fits where at most this part of it is missing when nothing happened.
const MISSING_PART: f64 = 0.03;
/// The largest set of lines that is primed at the last level: a larger one takes seconds a round.
const MOST_PRIMED_BYTES: f64 = 48e6;
/// At the last level, where one takes as long as dozens at the L2, there are this many times fewer
/// repetitions, but five.
const FEWER: u32 = 9;
const WALKS: u32 = 4;
const CLOCKED: u32 = 5;
/// A load from beyond a level takes this many times as long as a hit, or the clock does not tell
/// them apart.
const APART: f64 = 1.25;
/// Lines that known displacers read, as parts of the primed lines: the curve.
const CURVE: [f64; 11] = [0.0625, 0.125, 0.25, 0.375, 0.5, 0.75, 1.0, 1.125, 1.5, 2.0, 3.0];
const READ_CHECKS: [f64; 2] = [0.6, 1.25];
/// Lines that are flushed, and that are written past the caches, as parts of the primed ones.
const OTHER_CHECK: f64 = 0.25;

struct Here {
    level: Level,
    cycle: Cycle,
    threshold: u64,
}

struct Row {
    cell: u32,
    mode: String,
    bytes: u64,
    trigger: Trigger,
    displaced: Vec<u64>,
    took_ns: Vec<u64>,
}

impl Experiment for FootprintPlan {
    fn identity(&self) -> (ExperimentKind, Vec<Mode>) {
        (ExperimentKind::Footprint, [named(&[NOTHING]), named(&self.calls)].concat())
    }

    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        if !has_clflushopt() {
            let why = "this CPU has no CLFLUSHOPT, by which known displacers are made".to_owned();
            return Err(Failure::Limit(why).into());
        }
        stay_on(Some(self.cpu))?;
        let mut recording = Recording::begin(self, context)?;
        let (calls, missing) = available(&self.calls, trigger::unavailable)?;
        recording.missing(missing)?;
        let mut triggers = Triggers::new(&calls)?;
        let mut first_cell = 0;
        recording.cells(0..self.levels.len(), |recording, level| {
            let level = self.levels[level];
            recording.at("looking for a set of lines that fits");
            match here(level, self.cache_bytes)? {
                Ok(here) => {
                    let rows = rows(&here, &calls, first_cell);
                    first_cell += rows.len() as u32;
                    level_rows(self, &here, rows, &mut triggers, recording)?;
                }
                Err(why) => recording.unavailable(level, why, None)?,
            }
            Ok(recording.stop.check()?)
        })?;
        recording.end()
    }
}

/// The set of lines and the clock's threshold for a level, or why there is none.
fn here(level: Level, [l2, llc]: [u64; 2]) -> Result<Result<Here, String>, Failure> {
    let lines = |bytes: f64| (bytes as usize / LINE_BYTES).max(64);
    let cycle = Cycle::new(lines(l2 as f64 / 4.0), 1)?;
    // What others do meanwhile only makes a load longer.
    let fastest = |between: &dyn Fn()| {
        let tries = (0..CLOCKED).map(|_| {
            cycle.prime(WALKS);
            between();
            cycle.quantile(0.5)
        });
        tries.min().unwrap_or_default()
    };
    let hit = fastest(&|| ());
    // A line that was in use goes to the level beyond when it leaves. One that was read once may be
    // dropped, so that a walk through more than the L2 finds memory instead.
    let other = Memory::new((l2 as f64 * 4.0).min(llc as f64 / 2.0) as usize)?;
    let beyond_l2 = fastest(&|| read(other.bytes()));
    let memory = fastest(&|| cycle.flush(cycle.len()));
    let (near, far, bytes) = match level {
        Level::L2 => (hit, beyond_l2, l2 as f64),
        Level::Llc => (beyond_l2, memory, llc as f64),
    };
    if (far as f64) < near as f64 * APART {
        return Ok(Err(format!(
            "a load from beyond the {} takes {far} cycles here and one from within {near}: the \
             clock does not tell them apart",
            level.as_str()
        )));
    }
    let threshold = near.midpoint(far);
    for part in PRIMED_PARTS {
        if bytes * part > MOST_PRIMED_BYTES {
            continue;
        }
        let cycle = Cycle::new(lines(bytes * part), 3)?;
        let missing: Vec<f64> = (0..5)
            .map(|_| {
                cycle.prime(WALKS);
                cycle.probe(threshold) as f64
            })
            .collect();
        if median(&missing) <= cycle.len() as f64 * MISSING_PART {
            return Ok(Ok(Here { level, cycle, threshold }));
        }
    }
    Ok(Err(format!(
        "no set of lines stays in the {} here, not even an eighth of it while nothing happens: \
         others use it, or less of it is this guest's than CPUID says",
        level.as_str()
    )))
}

/// All triggers of a level: nothing, known displacers, calls.
fn rows(here: &Here, calls: &[Call], first_cell: u32) -> Vec<Row> {
    let primed = here.cycle.len() as f64;
    let lines = |part: &f64| (primed * part) as usize;
    let mut rows = vec![(NOTHING.to_owned(), 0, Trigger::Nothing)];
    let curve = CURVE.iter().map(lines).map(|count| ("known-read", Trigger::Read(count), count));
    let checks =
        READ_CHECKS.iter().map(lines).map(|count| ("check-read", Trigger::Read(count), count));
    let count = lines(&OTHER_CHECK);
    let others = [
        ("check-flushed", Trigger::Flushed(count), count),
        ("check-written-nt", Trigger::Written(count), count),
    ];
    for (mode, trigger, count) in curve.chain(checks).chain(others) {
        rows.push((mode.to_owned(), (count * LINE_BYTES) as u64, trigger));
    }
    for call in calls {
        rows.push((call.to_string(), call.bytes, Trigger::Call(*call)));
    }
    let numbered = (first_cell..).zip(rows);
    numbered
        .map(|(cell, (mode, bytes, trigger))| Row {
            cell,
            mode,
            bytes,
            trigger,
            displaced: Vec::new(),
            took_ns: Vec::new(),
        })
        .collect()
}

/// Primes, triggers and probes, in rounds, and writes what was found.
fn level_rows(
    plan: &FootprintPlan,
    here: &Here,
    mut rows: Vec<Row>,
    triggers: &mut Triggers,
    recording: &mut Recording<'_>,
) -> Result<(), Halt> {
    let rounds = match here.level {
        Level::L2 => plan.rounds,
        Level::Llc => (plan.rounds / FEWER).max(5),
    };
    recording.expect(u64::from(rounds) * rows.len() as u64);
    // The first round warms up.
    for round in 0..=rounds {
        for row in &mut rows {
            recording.stop.check()?;
            let at = triggers.aim(row.trigger);
            here.cycle.prime(WALKS);
            let began = Instant::now();
            triggers.pull(row.trigger, at, &here.cycle)?;
            let took = began.elapsed();
            let displaced = here.cycle.probe(here.threshold);
            if round > 0 {
                row.displaced.push(displaced);
                row.took_ns.push(ns(took));
                recording.at(here.level.as_str());
                recording.step();
            }
        }
    }
    for row in rows {
        recording.cell(row.cell, params(here, &row))?;
        recording.sample(sample(row))?;
    }
    Ok(())
}

fn params(here: &Here, row: &Row) -> Params {
    let mut params = Params::from([
        (param::LEVEL.to_owned(), json!(here.level.as_str())),
        (param::CALL.to_owned(), json!(row.mode)),
        (param::BYTES.to_owned(), json!(row.bytes)),
        (param::PRIMED.to_owned(), json!(here.cycle.len())),
        (param::THRESHOLD.to_owned(), json!(here.threshold)),
    ]);
    if let Trigger::Read(count) | Trigger::Flushed(count) | Trigger::Written(count) = row.trigger {
        params.insert(param::KNOWN.to_owned(), json!(count));
    }
    params
}

fn sample(row: Row) -> Sample {
    let (bytes, elapsed_ns) = (row.bytes * row.displaced.len() as u64, row.took_ns.iter().sum());
    let series = [(DISPLACED.to_owned(), row.displaced), ("call_ns".to_owned(), row.took_ns)];
    let at = At { cell: row.cell, ..At::default() };
    Sample { series: series.into(), ..at.sample(row.mode, bytes, elapsed_ns) }
}
