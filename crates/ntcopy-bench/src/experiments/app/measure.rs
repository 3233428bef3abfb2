//! Measures a plan, and writes the record.

use std::collections::BTreeMap;

use super::client::Client;
use super::server::{Server, version};
use super::traffic::{self, Asked, Pace, Window};
use super::{AppCell, AppMode, AppPlan, LargeRate, Offered};
use crate::experiment::{self, Rate};
use crate::experiments::http::run::Scratch;
use crate::run::meter::Meter;
use crate::run::proof::{Due, OF_A_PROGRAM_PERCENT, Proof};
use crate::run::schedule::Schedule;
use crate::run::{self, CpuClock, Failure, Patience, ns, stay_on};
use crate::sample::driver::{Groups, Lanes, available};
use crate::sample::{
    At, Bootable, CLIENT_AND_SERVER, Context, Experiment, Halt, MeasureError, Needs, Outcome,
    Recording, cpu_phases, named,
};
use ntcopy_judge::stats::{P99, rate};
use ntcopy_record::{ExperimentKind, Mode, Sample};

/// Sets schedules of large values apart from those of multigets.
const LARGE_SEED: u64 = 1 << 63;

/// The servers of all modes that have not failed, one a mode.
struct Servers<'a> {
    plan: &'a AppPlan,
    spoil: bool,
    patience: Patience<'a>,
    scratch: Scratch,
    own: CpuClock,
    running: Vec<(AppMode, Server)>,
    /// What each cell offers, once it is found out.
    offered: Vec<Offered>,
    checked: u64,
}

impl Experiment for AppPlan {
    fn identity(&self) -> (ExperimentKind, Vec<Mode>) {
        (ExperimentKind::App, named(&self.modes))
    }

    /// Servers are started anew for each group, which has samples of all cells.
    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        stay_on(Some(self.cpus[1]))?;
        let mut servers = Servers {
            plan: self,
            spoil: context.options.spoil,
            patience: Patience { limit: context.options.patience, stop: context.stop },
            scratch: Scratch::new(0)?,
            own: CpuClock::new(rustix::process::getpid())?,
            running: Vec::new(),
            offered: Vec::new(),
            checked: 0,
        };
        let why = |mode| {
            let Some(Err(why)) = self.hinting.get(&mode) else { return Ok(None) };
            // A kernel without the flag says so in words of its own.
            let no_flag = run::unavailable(experiment::Mode::Hinted)?;
            Ok(Some(no_flag.unwrap_or_else(|| why.clone())))
        };
        let (here, missing) = available(&self.modes, why)?;
        let mut recording = Recording::begin(self, context)?;
        recording.missing(missing)?;
        recording.expect(self.samples());
        let whats: Vec<String> = self.cells.iter().map(AppCell::what).collect();
        let cells: Vec<(u32, &str)> = (0..).zip(whats.iter().map(String::as_str)).collect();
        recording.cells(0..1, |recording, _| {
            let (modes, alive) = (&self.modes[..], here.clone());
            let groups = Groups { modes, alive, cells: &cells, pairs: self.pairs };
            recording.groups(&mut servers, groups)
        })?;
        recording.end()
    }
}

impl Bootable for AppPlan {
    fn needs(&self) -> Needs {
        Needs::new(self.samples(), self.memory_bytes(), [self.sample + self.warm_up].into_iter())
    }
}

impl Servers<'_> {
    /// Starts a server for each of these modes that has one of its own.
    fn start(
        &mut self,
        pair: u32,
        modes: &[AppMode],
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        recording.at("starting servers, comparing every value");
        self.running.clear();
        for mode in modes.iter().copied().filter(|mode| mode.server() == *mode) {
            match Server::start(self.plan, mode, self.scratch.path(), self.patience) {
                Ok(server) => self.running.push((mode, server)),
                // Nothing was measured yet, and nothing can be compared.
                Err(failure) if pair == 0 && !failure.is_wrong_byte() => {
                    return Err(failure.into());
                }
                Err(failure) => {
                    self.patience.stop.check()?;
                    recording.error(0, mode, &failure)?;
                }
            }
        }
        Ok(())
    }

    /// Finds out what the cells offer, by what the baseline does, and writes their lines.
    fn offer(&mut self, recording: &mut Recording<'_>) -> Result<(), Halt> {
        recording.at("finding out how much to offer");
        self.offered = self.offered()?;
        let version = version(self.plan);
        for (number, (cell, offered)) in (0..).zip(self.plan.cells.iter().zip(&self.offered)) {
            recording.cell(number, self.plan.params(cell, offered, &version))?;
        }
        Ok(())
    }

    fn offered(&self) -> Result<Vec<Offered>, Failure> {
        let Some(server) = self.server(AppMode::Plain) else {
            let nothing = Offered { small_per_1000_s: 1, large_per_1000_s: None };
            return Ok(vec![nothing; self.plan.cells.len()]);
        };
        let small_per_1000_s = match self.plan.small_rate {
            Rate::PerSecond(rate) => u64::from(rate) * 1000,
            Rate::OfBaseline(part) => {
                let window = self.most(server, 1, Pace::Max, Pace::Off)?;
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
                    let window = self.most(server, cell.connections, Pace::Off, Pace::Max)?;
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
        server: &Server,
        connections: u32,
        small: Pace<'_>,
        large: Pace<'_>,
    ) -> Result<Window, Failure> {
        let asked = Asked {
            small,
            large,
            from_ns: ns(self.plan.warm_up),
            to_ns: ns(self.plan.warm_up + self.plan.sample),
        };
        self.traffic(server, connections, &asked)
    }

    fn traffic(
        &self,
        server: &Server,
        connections: u32,
        asked: &Asked<'_>,
    ) -> Result<Window, Failure> {
        let data = self.plan.data;
        let connections = [self.plan.small_connections, connections];
        let mut client = Client::connect(data, &server.at, connections, self.patience)?;
        let cpu = || Ok([self.own.ns()?, server.cpu_ns()?]);
        traffic::run(&mut client, asked, Meter::new(&cpu))
    }

    /// The server that answers in a mode, if it runs.
    fn server(&self, mode: AppMode) -> Option<&Server> {
        self.running.iter().find(|(of, _)| *of == mode.server()).map(|(_, server)| server)
    }
}

impl Lanes for Servers<'_> {
    type Mode = AppMode;

    fn begin_group(
        &mut self,
        at: At,
        order: &mut Vec<AppMode>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        if at.cell == 0 {
            self.start(at.pair, order, recording)?;
        }
        if at == At::default() {
            self.offer(recording)?;
        }
        order.retain(|mode| self.server(*mode).is_some());
        Ok(())
    }

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&ExperimentKind::App, sample, P99)
    }

    /// Offers the cell's load for a sample's time, and holds the kernel's counters against the mode.
    fn sample(&mut self, mode: AppMode, at: At) -> Result<Sample, Failure> {
        let plan = self.plan;
        let (cell, offered) = (&plan.cells[at.cell as usize], self.offered[at.cell as usize]);
        let gone = || Failure::Answer(format!("the server of mode {} is gone", mode.server()));
        let server = self.server(mode).ok_or_else(gone)?;
        let seed = at.seed();
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
        let asked = Asked::of_both(&small, pace);
        let window = self.traffic(server, cell.connections, &asked)?;
        let bytes = window.all_bytes;
        let what = format!("mode {mode} sent {bytes} bytes of large values");
        let due = Due::AtLeast(bytes / 100 * OF_A_PROGRAM_PERCENT);
        // Bytes of an answer that was given up are not counted.
        let counters = match window.is_whole() {
            true => proof.check(&what, mode.sends(), due)?,
            false => BTreeMap::new(),
        };
        let due = large.filter(|_| mode != AppMode::Idle).map(|schedule| {
            let counted = schedule.due_ns.iter().filter(|due| **due >= schedule.counted_from_ns);
            counted.count() as u64 * plan.data.large_bytes
        });
        // All hot values are compared, and one large value, the next in turn.
        let value = self.checked % plan.data.large_values;
        let spoil = self.spoil && self.checked == 0;
        let compared = server.check(plan, value..value + 1, self.patience, spoil);
        self.checked += 1;
        compared?;
        Ok(Sample {
            phases_ns: cpu_phases(CLIENT_AND_SERVER, window.cpu),
            counters,
            series: series(&window, due),
            ..at.sample(mode, window.bytes, window.elapsed_ns)
        })
    }

    /// A mode that fails has an error row and is left out from there on, since the same would happen
    /// again.
    fn failed(
        &mut self,
        mode: AppMode,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<bool, Halt> {
        // Calls that wait are interrupted by a signal, and then fail.
        self.patience.stop.check()?;
        let of = mode.server();
        let server = self.running.iter_mut().find(|(running, _)| *running == of);
        // Its server went with the server's own mode, which has the row.
        let Some((_, server)) = server else { return Ok(false) };
        let failure = server.blame(failure);
        self.running.retain(|(running, _)| *running != mode);
        recording.error(at.cell, mode, &failure)?;
        Ok(false)
    }
}

/// Answers, and what was due of large values.
fn series(window: &Window, due: Option<u64>) -> BTreeMap<String, Vec<u64>> {
    let answers = window.answers.as_ref();
    let mut series = answers.map(|answers| answers.series("latency_ns")).unwrap_or_default();
    series.insert("multigets".to_owned(), vec![window.answered]);
    series.extend(due.map(|bytes| ("offered_bytes".to_owned(), vec![bytes])));
    series
}

/// The part, in 10,000, of what comes in a nanosecond, as a number in 1000 s.
fn per_1000_s(per_ns: f64, part: u32) -> u64 {
    ((per_ns * 1e12 * f64::from(part) / 1e4).round() as u64).max(1)
}
