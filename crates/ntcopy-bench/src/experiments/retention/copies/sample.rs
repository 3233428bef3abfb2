//! Measuring the form with copies of experiment `retention`.

use std::collections::BTreeMap;
use std::time::Duration;

use ntcopy_record::stats::{self, THROUGHPUT, WALKS};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Sample};

use super::plan::{CopiesCell, CopiesPlan};
use super::run::{Bench, Felt, Length, path};
use super::{CopyMode, Victim};
use crate::run::{Failure, Stop, available_bytes, ns};
use crate::sample::driver::{At, Context, Experiment, Halt, Lanes, Recording, index};
use crate::sample::{MeasureError, Outcome};

/// Runs of a mode that look how fast it can copy; the best counts, since a disturbance only ever
/// makes a run slower.
const TRIES: u32 = 3;
const TRY: Duration = Duration::from_millis(50);
/// The part of the slowest mode's rate that is offered when that is less than was asked for:
/// a schedule with no slack would be missed all the time.
const SLACK_PERCENT: u64 = 90;
/// A lowered rate is a round number.
const RATE_STEP_BYTES_PER_S: u64 = 100_000_000;
const LEAST_PASSES: u64 = 20;
const NO_PASS: &str = "no pass of the victim fitted into the sample: the machine was too busy";
/// A sample walks the whole hot set once, with a quarter to spare.
const WALKS_PERCENT: u64 = 125;

impl Experiment for CopiesPlan {
    fn identity(&self) -> (ExperimentKind, String) {
        (ExperimentKind::Retention, CopyMode::Idle.to_string())
    }

    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        enough_memory(self)?;
        let mut recording = Recording::begin(self, context)?;
        recording.expect(self.samples());
        let mut bench = None;
        recording.cells(0..self.cells.len(), |recording, number| {
            let cell = &self.cells[number];
            let (number, alive) = (index(number), self.modes.clone());
            let cell_run = CellRun { plan: self, cell, number, stop: recording.stop, alive };
            cell_run.measure(&mut bench, recording)
        })?;
        recording.end()
    }
}

fn enough_memory(plan: &CopiesPlan) -> Result<(), Failure> {
    let needed = plan.memory_bytes();
    match available_bytes() {
        // The kernel does not tell.
        0 => Ok(()),
        available if available < needed => Err(Failure::Limit(format!(
            "source, destination and hot set take {}, and {} of memory are free: use a smaller \
             --dataset or --hot-set",
            Bytes(needed),
            Bytes(available)
        ))),
        _ => Ok(()),
    }
}

/// One cell before its samples.
struct CellRun<'a> {
    plan: &'a CopiesPlan,
    cell: &'a CopiesCell,
    number: u32,
    stop: &'a Stop,
    /// Modes that are to be had and had no wrong byte.
    alive: Vec<CopyMode>,
}

type Paths = BTreeMap<&'static str, String>;

/// The modes of one cell, which share their memory and the victim.
struct CopyLanes<'a> {
    bench: Bench,
    length: Length,
    victim: Victim,
    stop: &'a Stop,
}

impl CellRun<'_> {
    fn measure(
        mut self,
        kept: &mut Option<Bench>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        let what = self.what();
        recording.at(&format!("{what}: checking and calibrating"));
        let paths = self.paths(recording)?;
        let streamer_cpu = match &self.cell.streamer {
            Ok(streamer) => streamer.cpu,
            Err(why) => {
                for mode in &self.plan.modes {
                    recording.unavailable(mode, why.as_str(), Some(self.number))?;
                }
                return self.write(&paths, None, recording);
            }
        };
        let mut bench = Bench::open(self.plan, self.cell, streamer_cpu, kept.take(), self.stop)?;
        for mode in self.alive.clone() {
            if let Err(wrong) = bench.verify(mode, recording.options.spoil) {
                self.alive.retain(|alive| *alive != mode);
                recording.error(self.number, mode, &wrong)?;
            }
        }
        let (length, rate) = self.calibrate(&mut bench)?;
        self.write(&paths, rate, recording)?;
        let (plan, stop, victim) = (self.plan, self.stop, self.cell.victim);
        let mut lanes = CopyLanes { bench, length, victim, stop };
        recording.groups(
            &mut lanes,
            (&plan.modes, self.alive),
            (self.number, plan.pairs),
            &what,
        )?;
        *kept = Some(lanes.bench);
        Ok(())
    }

    fn what(&self) -> String {
        format!("{}, hot set of {}", self.cell.victim, Bytes(self.cell.hot_set_bytes))
    }

    /// Which way each mode's bytes go; says which modes are not to be had.
    fn paths(&mut self, recording: &mut Recording<'_>) -> Result<Paths, Halt> {
        let mut paths = Paths::new();
        for mode in self.plan.modes.iter().copied().filter(|mode| *mode != CopyMode::Idle) {
            match path(mode, self.cell.object_bytes) {
                Ok(path) => {
                    paths.insert(mode.as_str(), path.to_string());
                }
                Err(why) => {
                    self.alive.retain(|alive| *alive != mode);
                    recording.unavailable(mode, why, Some(self.number))?;
                }
            }
        }
        Ok(paths)
    }

    fn write(
        &self,
        paths: &Paths,
        rate: Option<u64>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        let params = self.cell.params(self.plan.dataset_bytes, rate, paths);
        Ok(recording.cell(self.number, params)?)
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
        let fill = |time: Duration| ns(time) / slowest_ns;
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
}

impl Lanes for CopyLanes<'_> {
    type Mode = CopyMode;

    /// On the same core the victim and the copies take turns, and what counts is all of it.
    fn figure(&self, sample: &Sample) -> Option<f64> {
        let metric = if self.victim == Victim::SameCore { THROUGHPUT } else { WALKS };
        stats::rate(&ExperimentKind::Retention, sample, metric)
    }

    fn sample(&mut self, mode: CopyMode, at: At) -> Result<Sample, Failure> {
        self.stop.check()?;
        let felt = self.bench.run(mode, self.length)?;
        self.bench.check()?;
        if felt.passes.is_empty() {
            return Err(Failure::Answer(NO_PASS.to_owned()));
        }
        let (pass_ns, passes) = felt.passes.into_iter().unzip();
        let mut series =
            BTreeMap::from([("pass_ns".to_owned(), pass_ns), ("passes".to_owned(), passes)]);
        if mode != CopyMode::Idle {
            series.insert("offered_bytes".to_owned(), vec![felt.offered_bytes]);
        }
        let sample = at.sample(mode, felt.bytes, felt.elapsed_ns);
        Ok(Sample { phases_ns: felt.phases_ns, counters: felt.counters, series, ..sample })
    }

    /// A wrong byte ends the mode in this cell; a machine that was too busy for a pass may be
    /// idle in the next sample. All else would fail in every mode.
    fn failed(
        &mut self,
        mode: CopyMode,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<bool, Halt> {
        let is_busy = matches!(failure, Failure::Answer(_));
        if !is_busy && !failure.is_wrong_byte() {
            return Err(failure.into());
        }
        recording.error(at.cell, mode, &failure)?;
        Ok(is_busy)
    }
}

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
