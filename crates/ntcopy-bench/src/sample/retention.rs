//! Measuring the form with copies of experiment `retention`.

use std::collections::BTreeMap;
use std::time::Duration;

use ntcopy_record::units::Bytes;
use ntcopy_record::{Cell, End, FORMAT, Header, Line, Machine, RunError, Sample, Unavailable};

use super::{MeasureError, Options, Outcome, Progress, WriteError, Writer, default_place, id};
use crate::experiment::retention::NAME;
use crate::experiment::retention::copies::{CopyMode, Victim};
use crate::plan::group_order;
use crate::plan::retention_copies::{CopiesCell, CopiesPlan};
use crate::run::retention::{Bench, Felt, Length, Wrong, path, room};
use crate::run::{Failure, Fault, Stop, unix_now_ns};

/// Runs of a mode that look how fast it can copy; the best counts, since a disturbance only ever
/// makes a run slower.
const TRIES: u32 = 3;
/// How long each of them lasts.
const TRY: Duration = Duration::from_millis(50);
/// Of what the slowest mode can copy, so much is offered when that is less than was asked for:
/// a schedule with no slack would be missed all the time.
const SLACK_PERCENT: u64 = 90;
/// A lowered rate is a round number.
const RATE_STEP_BYTES_PER_S: u64 = 100_000_000;
/// A sample holds at least so many passes.
const LEAST_PASSES: u64 = 20;
/// And the whole hot set at least once, with a quarter to spare.
const WALKS_PERCENT: u64 = 125;

/// Measures the plan and writes the record.
///
/// A wrong byte becomes an error row and the mode is not measured again in that cell. A signal
/// ends the measurement early; what was measured stays.
///
/// # Errors
///
/// When nothing could be begun, or the record could not be written.
pub fn measure(
    plan: &CopiesPlan,
    machine: Machine,
    options: &Options,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Outcome, MeasureError> {
    enough_memory(plan).map_err(MeasureError::Start)?;
    let header = header(options);
    let place = match &options.out {
        Some(out) => out.clone(),
        None => default_place(&header.id).ok_or(WriteError::NoHome)?,
    };
    let mut writer = Writer::create(&place)?;
    writer.line(&Line::Header(header))?;
    writer.line(&Line::Machine(machine))?;
    progress.begin(plan.samples());
    let (mut bench, mut stopped, mut done) = (None, None, 0);
    for (number, cell) in (0..).zip(&plan.cells) {
        let mut run = CellRun { plan, cell, number, options, stop, alive: plan.modes.clone() };
        match run.all(&mut bench, &mut writer, progress, done) {
            Ok(()) => {}
            Err(Halt::Stopped(signal)) => {
                stopped = Some(signal);
                break;
            }
            Err(Halt::Write(error)) => return Err(error.into()),
            Err(Halt::Start(failure)) => return Err(MeasureError::Start(failure)),
        }
        done += if cell.streamer.is_ok() { run.samples() } else { 0 };
    }
    progress.end();
    if stopped.is_none() {
        let end = End { samples: writer.samples(), ended_unix_ns: unix_now_ns() };
        writer.line(&Line::End(end))?;
    }
    Ok(Outcome { place, stopped })
}

fn enough_memory(plan: &CopiesPlan) -> Result<(), Failure> {
    let needed = plan.memory_bytes();
    match room() {
        Some(room) if room < needed => Err(Failure::Limit(format!(
            "source, destination and hot set take {}, and {} of memory are free: use a smaller \
             --dataset or --hot-set",
            Bytes(needed),
            Bytes(room)
        ))),
        _ => Ok(()),
    }
}

fn header(options: &Options) -> Header {
    let started_unix_ns = unix_now_ns();
    Header {
        format: FORMAT,
        id: id(NAME, started_unix_ns, &options.command),
        experiment: NAME.to_owned(),
        command: options.command.clone(),
        ntcopy: env!("CARGO_PKG_VERSION").to_owned(),
        started_unix_ns,
        baseline: CopyMode::Idle.to_string(),
        not_a_timing: options.not_a_timing.clone(),
    }
}

/// Why a cell ends early.
enum Halt {
    Stopped(i32),
    Write(WriteError),
    Start(Failure),
}

impl From<WriteError> for Halt {
    fn from(error: WriteError) -> Self {
        Halt::Write(error)
    }
}

impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Stopped(signal) => Halt::Stopped(signal),
            failure => Halt::Start(failure),
        }
    }
}

/// One cell.
struct CellRun<'a> {
    plan: &'a CopiesPlan,
    cell: &'a CopiesCell,
    number: u32,
    options: &'a Options,
    stop: &'a Stop,
    /// Modes that are to be had and had no wrong byte.
    alive: Vec<CopyMode>,
}

/// What is written before a cell's samples.
#[derive(Default)]
struct Preamble {
    missing: Vec<Unavailable>,
    errors: Vec<RunError>,
    paths: BTreeMap<&'static str, String>,
}

impl CellRun<'_> {
    fn all(
        &mut self,
        kept: &mut Option<Bench>,
        writer: &mut Writer,
        progress: &mut Progress,
        done: u64,
    ) -> Result<(), Halt> {
        let what = self.what();
        progress.at(&format!("{what}: checking and calibrating"), done);
        let mut preamble = self.preamble();
        let streamer_cpu = match &self.cell.streamer {
            Ok(streamer) => streamer.cpu,
            Err(why) => {
                let why = why.clone();
                preamble.missing.extend(self.plan.modes.iter().map(|mode| self.no(*mode, &why)));
                return Ok(self.write(preamble, None, writer)?);
            }
        };
        let mut bench = Bench::open(self.plan, self.cell, streamer_cpu, kept.take(), self.stop)?;
        let spoil = self.options.rig.fault == Some(Fault::WrongByte);
        for mode in self.alive.clone() {
            if let Err(wrong) = bench.verify(mode, spoil) {
                preamble.errors.push(self.wrong(mode, &wrong));
            }
        }
        let (length, rate) = self.calibrate(&mut bench)?;
        self.write(preamble, rate, writer)?;
        for pair in 0..self.plan.pairs {
            for (position, mode) in (0..).zip(group_order(&self.plan.modes, pair)) {
                let width = self.plan.modes.len() as u64;
                progress.at(&what, done + u64::from(pair) * width + u64::from(position));
                if self.alive.contains(&mode) {
                    self.sample(&mut bench, (pair, position), mode, length, writer)?;
                }
            }
        }
        *kept = Some(bench);
        Ok(())
    }

    /// The cell in a few words, for the bar.
    fn what(&self) -> String {
        format!("{}, hot set of {}", self.cell.victim, Bytes(self.cell.hot_set_bytes))
    }

    fn samples(&self) -> u64 {
        u64::from(self.plan.pairs) * self.plan.modes.len() as u64
    }

    /// Which way each mode's bytes go, and which modes are not to be had.
    fn preamble(&mut self) -> Preamble {
        let mut preamble = Preamble::default();
        for mode in self.plan.modes.iter().copied().filter(|mode| *mode != CopyMode::Idle) {
            match path(mode, self.cell.object_bytes) {
                Ok(path) => {
                    preamble.paths.insert(mode.as_str(), path.to_string());
                }
                Err(why) => {
                    self.alive.retain(|alive| *alive != mode);
                    preamble.missing.push(self.no(mode, &why));
                }
            }
        }
        preamble
    }

    fn no(&self, mode: CopyMode, why: &str) -> Unavailable {
        Unavailable { mode: mode.to_string(), why: why.to_owned(), cell: Some(self.number) }
    }

    fn write(
        &self,
        preamble: Preamble,
        rate: Option<u64>,
        writer: &mut Writer,
    ) -> Result<(), WriteError> {
        let params = self.cell.params(self.plan.dataset_bytes, rate, &preamble.paths);
        writer.line(&Line::Cell(Cell { cell: self.number, params }))?;
        preamble.missing.into_iter().try_for_each(|line| writer.line(&Line::Unavailable(line)))?;
        preamble.errors.into_iter().try_for_each(|line| writer.line(&Line::Error(line)))
    }

    /// How long a sample lasts, the same in every mode, and the rate that all can keep up with.
    fn calibrate(&self, bench: &mut Bench) -> Result<(Length, Option<u64>), Failure> {
        match self.cell.victim {
            Victim::SameCore => Ok((self.calibrate_turns(bench)?, None)),
            Victim::Neighbour => self.calibrate_rate(bench),
        }
    }

    /// Passes that fill a sample where each is the slowest mode's, and the whole hot set.
    fn calibrate_turns(&self, bench: &mut Bench) -> Result<Length, Failure> {
        let whole = bench.passes_in_hot_set();
        let count = whole.clamp(LEAST_PASSES, 10 * LEAST_PASSES);
        let mut slowest_ns = 1;
        for &mode in &self.alive {
            let felt = bench.run(mode, Length::Passes { warm_up: whole, clocked: count })?;
            slowest_ns = slowest_ns.max(felt.elapsed_ns / count);
        }
        let fill = |time: Duration| nanos(time) / slowest_ns;
        let clocked = fill(self.plan.sample).max(LEAST_PASSES).max(whole * WALKS_PERCENT / 100);
        Ok(Length::Passes { warm_up: fill(self.plan.warm_up).max(whole), clocked })
    }

    fn calibrate_rate(&self, bench: &mut Bench) -> Result<(Length, Option<u64>), Failure> {
        let (mut slowest, mut longest_pass_ns) = (u64::MAX, 1);
        for &mode in &self.alive {
            let mut fastest = 0;
            for _ in 0..TRIES {
                let felt = bench.run(
                    mode,
                    Length::Time {
                        warm_up: Duration::from_millis(1),
                        clocked: TRY,
                        rate_bytes_per_s: None,
                    },
                )?;
                fastest = fastest.max(rate(&felt));
                longest_pass_ns = longest_pass_ns.max(felt.median_pass_ns());
            }
            if mode != CopyMode::Idle {
                slowest = slowest.min(fastest);
            }
        }
        let walk = Duration::from_nanos(longest_pass_ns.saturating_mul(bench.passes_in_hot_set()));
        let least = Duration::from_nanos(longest_pass_ns.saturating_mul(LEAST_PASSES));
        let whole = walk * u32::try_from(WALKS_PERCENT).unwrap_or(100) / 100;
        let rate = self.cell.rate_bytes_per_s.map(|asked| sustainable(asked, slowest));
        let length = Length::Time {
            warm_up: self.plan.warm_up.max(walk),
            clocked: self.plan.sample.max(whole).max(least),
            rate_bytes_per_s: rate,
        };
        Ok((length, rate))
    }

    /// Takes one sample, its warm-up before and its check after it.
    fn sample(
        &mut self,
        bench: &mut Bench,
        (pair, position): (u32, u32),
        mode: CopyMode,
        length: Length,
        writer: &mut Writer,
    ) -> Result<(), Halt> {
        self.stop.check()?;
        let felt = bench.run(mode, length)?;
        if let Err(wrong) = bench.check() {
            let error = self.wrong(mode, &wrong);
            return Ok(writer.line(&Line::Error(error))?);
        }
        if felt.passes.is_empty() {
            let what = "no pass of the victim fitted into the sample: the machine was too busy";
            let (cell, mode) = (self.number, mode.to_string());
            let error = RunError { cell, mode, what: what.to_owned(), wrong_byte: false };
            return Ok(writer.line(&Line::Error(error))?);
        }
        let (pass_ns, passes) = felt.passes.into_iter().unzip();
        let mut series =
            BTreeMap::from([("pass_ns".to_owned(), pass_ns), ("passes".to_owned(), passes)]);
        if mode != CopyMode::Idle {
            series.insert("offered_bytes".to_owned(), vec![felt.offered_bytes]);
        }
        Ok(writer.line(&Line::Sample(Sample {
            cell: self.number,
            pair,
            position,
            mode: mode.to_string(),
            bytes: felt.bytes,
            elapsed_ns: felt.elapsed_ns,
            phases_ns: felt.phases_ns,
            counters: felt.counters,
            series,
        }))?)
    }

    /// The error row of a wrong byte; the mode is done with in this cell.
    fn wrong(&mut self, mode: CopyMode, wrong: &Wrong) -> RunError {
        self.alive.retain(|alive| *alive != mode);
        let (cell, mode) = (self.number, mode.to_string());
        RunError { cell, mode, what: wrong.to_string(), wrong_byte: true }
    }
}

/// Bytes per second that the run copied.
fn rate(felt: &Felt) -> u64 {
    let rate = u128::from(felt.bytes) * 1_000_000_000 / u128::from(felt.elapsed_ns.max(1));
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// The rate that was asked for, or a round one that a streamer of this speed keeps up with.
fn sustainable(asked: u64, slowest: u64) -> u64 {
    let most = slowest / 100 * SLACK_PERCENT;
    if asked <= most {
        return asked;
    }
    let round = most / RATE_STEP_BYTES_PER_S * RATE_STEP_BYTES_PER_S;
    if round > 0 { round } else { most.max(1_000_000) }.min(asked)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_cannot_be_reached_is_lowered_to_a_round_one() {
        assert_eq!(sustainable(10_000_000_000, 13_000_000_000), 10_000_000_000);
        assert_eq!(sustainable(10_000_000_000, 8_060_000_000), 7_200_000_000);
        assert_eq!(sustainable(10_000_000_000, 50_000_000), 45_000_000);
        assert_eq!(sustainable(2_000_000, 0), 1_000_000);
    }
}
