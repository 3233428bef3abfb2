//! Measures a plan, and writes the record.

use std::collections::BTreeMap;

use super::client::Client;
use super::command;
use super::plan::{AppCell, AppMode, Plan};
use super::rates::LargeRate;
use super::rows::{Offered, params, series, what};
use super::server::Server;
use super::traffic::{self, Asked, Pace, Window};
use crate::experiment::Rate;
use crate::experiments::http::run::Scratch;
use crate::plan::group_order;
use crate::run::meter::Meter;
use crate::run::proof::{Due, OF_A_PROGRAM_PERCENT, Proof};
use crate::run::schedule::Schedule;
use crate::run::{CpuClock, Failure, Stop, ns, stay_on};
use crate::sample::{
    At, CLIENT_AND_SERVER, Context, Experiment, Halt, MeasureError, Options, Outcome, Recording,
    cpu_phases,
};
use ntcopy_record::{ExperimentKind, Sample};

/// Sets schedules of large values apart from those of multigets.
const LARGE_SEED: u64 = 1 << 63;

/// The servers of a mode, started for a pair.
struct Lane {
    mode: AppMode,
    server: Server,
}

struct Bench<'a> {
    plan: &'a Plan,
    options: &'a Options,
    stop: &'a Stop,
    scratch: Scratch,
    own: CpuClock,
    alive: Vec<AppMode>,
    checked: u64,
}

impl Experiment for Plan {
    fn identity(&self) -> (ExperimentKind, String) {
        (ExperimentKind::App, AppMode::Copy.to_string())
    }

    /// Servers are started anew for each pair, and take samples of all its cells; so pairs are
    /// outside, and cells inside. A mode that fails gets an error row and is left out from there
    /// on, since the same would happen again.
    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        let (options, stop) = (context.options, context.stop);
        stay_on(Some(self.cpus[1]))?;
        let mut bench = Bench {
            plan: self,
            options,
            stop,
            scratch: Scratch::new(0)?,
            own: CpuClock::new(rustix::process::getpid())?,
            alive: Vec::new(),
            checked: 0,
        };
        let mut recording = Recording::begin(self, context)?;
        for mode in &self.modes {
            match self.hinting.get(mode) {
                Some(Err(why)) => recording.unavailable(mode, why.clone(), None)?,
                _ => bench.alive.push(*mode),
            }
        }
        recording.expect(self.samples());
        recording.cells([0].into_iter(), |recording, _| bench.pairs(recording))?;
        recording.end()
    }
}

impl Bench<'_> {
    fn pairs(&mut self, recording: &mut Recording<'_>) -> Result<(), Halt> {
        let mut offered = Vec::new();
        for pair in 0..self.plan.pairs {
            recording.at("starting servers, comparing every value");
            let mut lanes = self.start(pair, recording)?;
            if pair == 0 {
                recording.at("finding out how much to offer");
                offered = self.offered(&lanes)?;
                self.cells(&offered, recording)?;
            }
            for (number, (cell, offered)) in (0..).zip(self.plan.cells.iter().zip(&offered)) {
                recording.at(&what(cell));
                self.cell((number, pair), cell, *offered, &mut lanes, recording)?;
            }
        }
        Ok(())
    }

    fn start(&mut self, pair: u32, recording: &mut Recording<'_>) -> Result<Vec<Lane>, Halt> {
        let mut lanes = Vec::new();
        for mode in group_order(&self.plan.modes, pair) {
            if mode.server() != mode || !self.alive.contains(&mode) {
                continue;
            }
            let patience = (self.options.patience, self.stop);
            match Server::start(self.plan, mode, self.scratch.path(), patience) {
                Ok(server) => lanes.push(Lane { mode, server }),
                Err(_) if self.stop.signal().is_some() => return Err(Halt::Stopped),
                // Nothing was measured yet, and nothing can be compared.
                Err(failure) if pair == 0 && !failure.is_wrong_byte() => {
                    return Err(Halt::Start(failure));
                }
                Err(failure) => self.failed(0, mode, &failure, recording)?,
            }
        }
        Ok(lanes)
    }

    /// What the cells offer, by what the baseline does.
    fn offered(&self, lanes: &[Lane]) -> Result<Vec<Offered>, Failure> {
        let Some(lane) = lanes.iter().find(|lane| lane.mode == AppMode::Copy) else {
            let nothing = Offered { small_per_1000_s: 1, large_per_1000_s: None };
            return Ok(vec![nothing; self.plan.cells.len()]);
        };
        let small_per_1000_s = match self.plan.small_rate {
            Rate::PerSecond(rate) => u64::from(rate) * 1000,
            Rate::OfBaseline(part) => {
                let window = self.most(lane, 1, (Pace::Max, Pace::Off))?;
                per_1000_s(window.answered as f64 / window.elapsed_ns as f64, part)
            }
            Rate::Off => 0,
        };
        let cell = |cell: &AppCell| -> Result<Offered, Failure> {
            let large_bytes = self.plan.data.large_bytes as f64;
            let large_per_1000_s = match cell.rate {
                LargeRate::Max => None,
                LargeRate::BytesPerSecond(rate) => {
                    Some((rate as f64 * 1000.0 / large_bytes).round().max(1.0) as u64)
                }
                LargeRate::OfBaseline(part) => {
                    let window = self.most(lane, cell.connections, (Pace::Off, Pace::Max))?;
                    Some(per_1000_s(
                        window.bytes as f64 / large_bytes / window.elapsed_ns as f64,
                        part,
                    ))
                }
            };
            Ok(Offered { small_per_1000_s, large_per_1000_s })
        };
        self.plan.cells.iter().map(cell).collect()
    }

    /// What the baseline does of one thing when it has nothing else to do.
    fn most(
        &self,
        lane: &Lane,
        connections: u32,
        (small, large): (Pace<'_>, Pace<'_>),
    ) -> Result<Window, Failure> {
        let asked = Asked {
            small,
            large,
            from_ns: ns(self.plan.warm_up),
            to_ns: ns(self.plan.warm_up + self.plan.sample),
        };
        self.traffic(&lane.server, connections, &asked)
    }

    fn traffic(
        &self,
        server: &Server,
        connections: u32,
        asked: &Asked<'_>,
    ) -> Result<Window, Failure> {
        let data = self.plan.data;
        let connections = [self.plan.small_connections, connections];
        let mut client =
            Client::connect(data, &server.at, connections, (self.options.patience, self.stop))?;
        let cpu = || Ok([self.own.ns()?, server.cpu_ns()?]);
        traffic::run(&mut client, asked, Meter::new(&cpu))
    }

    fn cells(&self, offered: &[Offered], recording: &mut Recording<'_>) -> Result<(), Halt> {
        let version = command::version(self.plan);
        for (number, (cell, offered)) in (0..).zip(self.plan.cells.iter().zip(offered)) {
            let params = params(self.plan, cell, offered, &version);
            recording.cell(number, params)?;
        }
        Ok(())
    }

    fn cell(
        &mut self,
        (number, pair): (u32, u32),
        cell: &AppCell,
        offered: Offered,
        lanes: &mut [Lane],
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        for (position, mode) in (0..).zip(group_order(&self.plan.modes, pair)) {
            let lane = lanes.iter_mut().find(|lane| lane.mode == mode.server());
            let is_alive = self.alive.contains(&mode) && self.alive.contains(&mode.server());
            let Some(lane) = lane.filter(|_| is_alive) else { continue };
            let at = At { cell: number, pair, position };
            match self.sample(lane, mode, at, (cell, offered)) {
                Ok(sample) => {
                    recording.step();
                    recording.sample(sample)?;
                }
                Err(_) if self.stop.signal().is_some() => return Err(Halt::Stopped),
                Err(failure) => {
                    let failure = lane.server.blame(failure);
                    self.failed(number, mode, &failure, recording)?;
                }
            }
        }
        Ok(())
    }

    fn failed(
        &mut self,
        cell: u32,
        mode: AppMode,
        failure: &Failure,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        self.alive.retain(|alive| *alive != mode);
        Ok(recording.error(cell, mode, failure)?)
    }

    /// Offers the cell's load for a sample's time, and holds the kernel's counters against the mode.
    fn sample(
        &mut self,
        lane: &Lane,
        mode: AppMode,
        at: At,
        (cell, offered): (&AppCell, Offered),
    ) -> Result<Sample, Failure> {
        let plan = self.plan;
        // Another one in each group, and the same in all of its modes.
        let seed = (u64::from(at.cell) << 32) | u64::from(at.pair);
        let schedule =
            |seed, per_1000_s| Schedule::new(seed, per_1000_s, plan.warm_up, plan.sample);
        let small = schedule(seed, offered.small_per_1000_s);
        let large = offered.large_per_1000_s.map(|rate| schedule(seed | LARGE_SEED, rate));
        let pace = match (&large, mode) {
            (_, AppMode::Idle) => Pace::Off,
            (Some(schedule), _) => Pace::Due(&schedule.due_ns),
            (None, _) => Pace::Max,
        };
        let proof = Proof::begin(None)?;
        let asked = Asked::beside(&small, pace);
        let window = self.traffic(&lane.server, cell.connections, &asked)?;
        // Bytes of an answer that was given up are not counted.
        let is_whole = window.answers.as_ref().is_none_or(|answers| answers.unanswered == 0);
        let bytes = window.all_bytes;
        let what = format!("mode {mode} sent {bytes} bytes of large values");
        let due = Due::AtLeast(bytes / 100 * OF_A_PROGRAM_PERCENT);
        let counters =
            if is_whole { proof.check(&what, mode.sends(), due)? } else { BTreeMap::new() };
        let due = large.filter(|_| mode != AppMode::Idle).map(|schedule| {
            let counted = schedule.due_ns.iter().filter(|due| **due >= schedule.counted_from_ns);
            counted.count() as u64 * plan.data.large_bytes
        });
        let sample = Sample {
            phases_ns: cpu_phases(CLIENT_AND_SERVER, window.cpu),
            counters,
            series: series(&window, due),
            ..at.sample(mode, window.bytes, window.elapsed_ns)
        };
        self.check(lane)?;
        Ok(sample)
    }

    /// Compares all hot values and one large value, the next in turn.
    fn check(&mut self, lane: &Lane) -> Result<(), Failure> {
        let value = self.checked % self.plan.data.large_values;
        let spoil = self.options.spoil && self.checked == 0;
        self.checked += 1;
        let patience = (self.options.patience, self.stop);
        lane.server.check(self.plan, value..value + 1, patience, spoil)
    }
}

/// The part, in 10,000, of what comes in a nanosecond, as a number in 1000 s.
fn per_1000_s(per_ns: f64, part: u32) -> u64 {
    ((per_ns * 1e12 * f64::from(part) / 1e4).round() as u64).max(1)
}
