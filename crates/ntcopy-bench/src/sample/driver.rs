//! What all measurements have in common: a record that is written as it is measured, cells one
//! after the other, and interleaved groups of samples.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use ntcopy_judge::stats::looks::LastLook;
use ntcopy_record::{
    Cell, End, ExperimentKind, FORMAT, Header, Line, Look, Machine, Mode, Params, RunError, Sample,
    Unavailable,
};

use super::resolved::Pairs;
use super::{MeasureError, Outcome, Progress, WriteError, Writer, default_place, id};
use crate::plan::group_order;
use crate::run::{Failure, Patience, Stop, unix_now_ns};

#[derive(Debug, Clone)]
pub struct Options {
    /// The record's directory; none: [`default_place`].
    pub out: Option<PathBuf>,
    pub command: Vec<String>,
    /// Why the results will not be timings, if so.
    pub not_a_timing: Option<String>,
    /// The arguments of this program that lead to the other process, if that is this program.
    pub worker_args: Vec<String>,
    /// How long a process may make no progress, or take for an answer.
    pub patience: Duration,
    /// How long to sample at most, all cells together, until every cell is resolved; none: the
    /// plan's pairs and no more. A cell has the plan's pairs in any case.
    pub budget: Option<Duration>,
    /// Make a byte wrong, to see that it is noticed: for tests.
    pub spoil: bool,
}

pub trait Experiment {
    /// The experiment, and what its modes are: the one that the others are compared with first.
    fn identity(&self) -> (ExperimentKind, Vec<Mode>);

    /// What a user has to know before it is measured.
    fn caveats(&self) -> Vec<String> {
        Vec::new()
    }

    /// Measures the plan and writes the record.
    ///
    /// What goes wrong in a cell becomes an error row and the rest is measured. A signal ends the
    /// measurement early; what was measured stays. Processes that were started end in either case.
    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError>;
}

pub struct Context<'a> {
    pub machine: Machine,
    pub options: &'a Options,
    pub stop: &'a Stop,
    pub progress: &'a mut Progress,
}

/// Why a measurement cannot go on at all.
#[derive(Debug)]
pub enum Halt {
    /// A signal came; it is in [`Stop`].
    Stopped,
    Write(WriteError),
    /// Something that all cells need is not to be had.
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
            Failure::Stopped(_) => Halt::Stopped,
            failure => Halt::Start(failure),
        }
    }
}

/// The modes that this machine has, and those that it lacks, each with the reason.
pub type Available<M> = (Vec<M>, Vec<(M, String)>);

/// Asks of each mode why it is not to be had here, if so.
pub fn available<M: Copy>(
    modes: &[M],
    why: impl Fn(M) -> Result<Option<String>, Failure>,
) -> Result<Available<M>, Failure> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for mode in modes {
        match why(*mode)? {
            None => here.push(*mode),
            Some(why) => missing.push((*mode, why)),
        }
    }
    Ok((here, missing))
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct At {
    pub cell: u32,
    pub pair: u32,
    pub position: u32,
}

impl At {
    /// What a schedule is drawn from: another one in each group, the same in all of its modes.
    pub fn seed(self) -> u64 {
        (u64::from(self.cell) << 32) | u64::from(self.pair)
    }

    /// A sample here, with nothing beside its bytes and its time.
    pub fn sample(self, mode: impl Display, bytes: u64, elapsed_ns: u64) -> Sample {
        let At { cell, pair, position } = self;
        let (mode, phases_ns) = (mode.to_string(), [].into());
        let (counters, series) = ([].into(), [].into());
        Sample { cell, pair, position, mode, bytes, elapsed_ns, phases_ns, counters, series }
    }
}

/// The modes of one cell while it is measured: a lane each.
pub trait Lanes {
    type Mode: Copy + PartialEq + Display;

    /// Before a group of a cell, of the modes that have not failed in it, in this order. One that
    /// fails now is taken out.
    fn begin_group(
        &mut self,
        _at: At,
        _order: &mut Vec<Self::Mode>,
        _recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        Ok(())
    }

    /// The figure by which a cell is resolved, more being better; none of a sample without one.
    fn figure(&self, sample: &Sample) -> Option<f64>;

    fn sample(&mut self, mode: Self::Mode, at: At) -> Result<Sample, Failure>;

    /// What becomes of the mode, and of the measurement, after a failure; whether the mode is tried
    /// again in this cell. By default it has an error row, and is not; where something fails by
    /// chance, or in every mode alike, the experiment has a policy of its own.
    fn failed(
        &mut self,
        mode: Self::Mode,
        at: At,
        failure: Failure,
        recording: &mut Recording<'_>,
    ) -> Result<bool, Halt> {
        if matches!(failure, Failure::Stopped(_)) {
            return Err(Halt::Stopped);
        }
        recording.error(at.cell, mode, &failure)?;
        Ok(false)
    }
}

pub struct Recording<'a> {
    place: PathBuf,
    writer: Writer,
    baseline: String,
    budget: Option<Budget>,
    cells: u32,
    /// Rows about a cell whose own line is not written yet.
    held: Vec<Line>,
    is_halted: bool,
    pub options: &'a Options,
    pub stop: &'a Stop,
    progress: &'a mut Progress,
}

/// Samples to take in interleaved groups.
pub struct Groups<'a, M> {
    /// The modes, in the order of the first group.
    pub modes: &'a [M],
    /// Those of them that have not failed.
    pub alive: Vec<M>,
    /// Cells by number, and what the user is told of each: a group has samples of all of them.
    pub cells: &'a [(u32, &'a str)],
    /// How many groups there are; with a budget the fewest.
    pub pairs: u32,
}

/// A cell whose samples are taken.
struct Sampled<'a> {
    cell: u32,
    /// What the user is told of it.
    what: String,
    pairs: Pairs<'a>,
}

/// The time there is, and the cells that share what is left of it.
struct Budget {
    until: Instant,
    cells: u32,
}

impl Budget {
    /// Until when the next cell may be sampled.
    fn share(&self) -> Instant {
        let now = Instant::now();
        now + self.until.saturating_duration_since(now) / self.cells.max(1)
    }
}

impl<'a> Recording<'a> {
    /// Makes the record, with its first two lines.
    pub fn begin(
        plan: &impl Experiment,
        context: Context<'a>,
    ) -> Result<Recording<'a>, MeasureError> {
        let (experiment, modes) = plan.identity();
        Recording::open(experiment, modes, context)
    }

    /// The same of an experiment whose samples others take, with its modes, the one that the others
    /// are compared with first.
    pub fn open(
        experiment: ExperimentKind,
        modes: Vec<Mode>,
        context: Context<'a>,
    ) -> Result<Recording<'a>, MeasureError> {
        let Context { machine, options, stop, progress } = context;
        let started_unix_ns = unix_now_ns();
        let here = |mode: Mode| mode.measured_in(&machine.kernel_kind);
        let modes: Vec<Mode> = modes.into_iter().map(here).collect();
        let baseline = modes.first().map_or_else(String::new, |mode| mode.mode.clone());
        let header = Header {
            format: FORMAT,
            id: id(&experiment, started_unix_ns, &options.command),
            experiment,
            command: options.command.clone(),
            ntcopy: env!("CARGO_PKG_VERSION").to_owned(),
            started_unix_ns,
            baseline: baseline.clone(),
            modes,
            not_a_timing: options.not_a_timing.clone(),
        };
        let place = match &options.out {
            Some(out) => out.clone(),
            None => default_place(&header.id).ok_or(WriteError::NoHome)?,
        };
        let mut writer = Writer::create(&place)?;
        writer.line(&Line::Header(header))?;
        writer.line(&Line::Machine(Box::new(machine)))?;
        let until = |budget| Budget { until: Instant::now() + budget, cells: 1 };
        let budget = options.budget.map(until);
        let (cells, held, is_halted) = (0, Vec::new(), false);
        Ok(Recording {
            place,
            writer,
            baseline,
            budget,
            cells,
            held,
            is_halted,
            options,
            stop,
            progress,
        })
    }

    pub fn patience(&self) -> Patience<'a> {
        Patience { limit: self.options.patience, stop: self.stop }
    }

    pub fn expect(&mut self, samples: u64) {
        self.progress.begin(samples);
    }

    pub fn at(&mut self, what: &str) {
        self.progress.at(what);
    }

    /// One more of the samples that were expected is done with: where they are not taken in groups.
    pub fn step(&mut self) {
        self.progress.step();
    }

    pub fn cell(&mut self, cell: u32, params: Params) -> Result<(), WriteError> {
        self.writer.line(&Line::Cell(Cell { cell, params }))?;
        self.cells = cell + 1;
        self.held.drain(..).try_for_each(|line| self.writer.line(&line))
    }

    /// Writes a row, or holds it until the line of the cell that it is about is written.
    fn row(&mut self, cell: Option<u32>, line: Line) -> Result<(), WriteError> {
        if cell.is_some_and(|cell| cell >= self.cells) {
            self.held.push(line);
            return Ok(());
        }
        self.writer.line(&line)
    }

    /// Writes that a mode is not to be had, in one cell or anywhere.
    pub fn unavailable(
        &mut self,
        mode: impl Display,
        why: impl Into<String>,
        cell: Option<u32>,
    ) -> Result<(), WriteError> {
        let (mode, why) = (mode.to_string(), why.into());
        self.row(cell, Line::Unavailable(Unavailable { mode, why, cell }))
    }

    /// The same of several modes, in no cell.
    pub fn missing<M: Display>(
        &mut self,
        missing: impl IntoIterator<Item = (M, String)>,
    ) -> Result<(), WriteError> {
        missing.into_iter().try_for_each(|(mode, why)| self.unavailable(mode, why, None))
    }

    /// The same of all modes, in a cell that is not measured.
    pub fn leave_out<M: Display>(
        &mut self,
        cell: u32,
        params: Params,
        modes: impl IntoIterator<Item = M>,
        why: &str,
    ) -> Result<(), WriteError> {
        self.cell(cell, params)?;
        modes.into_iter().try_for_each(|mode| self.unavailable(mode, why, Some(cell)))
    }

    pub fn error(
        &mut self,
        cell: u32,
        mode: impl Display,
        failure: &Failure,
    ) -> Result<(), WriteError> {
        let (what, wrong_byte) = (failure.to_string(), failure.is_wrong_byte());
        let error = RunError { cell, mode: mode.to_string(), what, wrong_byte };
        self.row(Some(cell), Line::Error(error))
    }

    pub fn sample(&mut self, sample: Sample) -> Result<(), WriteError> {
        self.writer.line(&Line::Sample(sample))
    }

    /// Takes samples in interleaved groups. With a budget there are more groups than were asked for,
    /// until the cells are resolved or their share of the time is up; the record has with what it
    /// ended.
    pub fn groups<L: Lanes>(
        &mut self,
        lanes: &mut L,
        mut groups: Groups<'_, L::Mode>,
    ) -> Result<(), Halt> {
        let until = self.budget.as_ref().map(Budget::share);
        let baseline = self.baseline.clone();
        let sampled = |(cell, what): &(u32, &'_ str)| Sampled {
            cell: *cell,
            what: (*what).to_owned(),
            pairs: Pairs::new(groups.pairs, &baseline),
        };
        let mut cells: Vec<Sampled<'_>> = groups.cells.iter().map(sampled).collect();
        for pair in 0.. {
            let is_over = match until {
                None => pair >= groups.pairs,
                Some(until) => self.is_last_look(&mut cells, pair, Instant::now() >= until)?,
            };
            if is_over {
                break;
            }
            for cell in &mut cells {
                self.group(lanes, &mut groups, pair, cell)?;
            }
        }
        Ok(())
    }

    /// Whether the look after so many pairs is the last one, at every cell; then it is in the record.
    fn is_last_look(
        &mut self,
        cells: &mut [Sampled<'_>],
        pairs: u32,
        is_time_up: bool,
    ) -> Result<bool, WriteError> {
        let looks: Vec<LastLook> =
            cells.iter_mut().filter_map(|cell| cell.pairs.last(pairs, is_time_up)).collect();
        if looks.len() < cells.len() {
            return Ok(false);
        }
        for (Sampled { cell, .. }, LastLook { misses_permille, end }) in cells.iter().zip(looks) {
            self.writer.line(&Line::Look(Look { cell: *cell, pairs, misses_permille, end }))?;
        }
        Ok(true)
    }

    /// One group of a cell: a sample of each mode that has not failed.
    fn group<L: Lanes>(
        &mut self,
        lanes: &mut L,
        groups: &mut Groups<'_, L::Mode>,
        pair: u32,
        sampled: &mut Sampled<'_>,
    ) -> Result<(), Halt> {
        let at = At { cell: sampled.cell, pair, position: 0 };
        let order = group_order(groups.modes, at.pair);
        let is_alive = |mode: &L::Mode| groups.alive.contains(mode);
        let mut alive = order.iter().copied().filter(is_alive).collect();
        lanes.begin_group(at, &mut alive, self)?;
        groups.alive = alive;
        for (position, mode) in (0..).zip(order) {
            self.at(&sampled.what);
            // The time of a budget has more samples than were expected.
            if at.pair < groups.pairs {
                self.step();
            }
            if !groups.alive.contains(&mode) {
                continue;
            }
            let at = At { position, ..at };
            match lanes.sample(mode, at) {
                Ok(sample) => {
                    if let Some(figure) = lanes.figure(&sample) {
                        sampled.pairs.add(&sample.mode, at.pair, figure);
                    }
                    self.sample(sample)?;
                }
                Err(failure) => {
                    let stays = lanes.failed(mode, at, failure, self)?;
                    groups.alive.retain(|other| *other != mode || stays);
                }
            }
        }
        Ok(())
    }

    /// Measures cells, by number, until one says that nothing more can be.
    pub fn cells(
        &mut self,
        cells: impl ExactSizeIterator<Item = usize>,
        mut measure: impl FnMut(&mut Recording<'a>, usize) -> Result<(), Halt>,
    ) -> Result<(), MeasureError> {
        let count = cells.len();
        for (done, number) in cells.enumerate() {
            self.share_among(count - done);
            match measure(self, number) {
                Ok(()) => {}
                Err(Halt::Write(error)) => return Err(error.into()),
                Err(Halt::Start(failure)) if self.stop.signal().is_none() => {
                    return Err(MeasureError::Start(failure));
                }
                // After a signal whatever failed did so because of it: calls that wait are
                // interrupted.
                Err(Halt::Stopped | Halt::Start(_)) => {
                    self.is_halted = true;
                    break;
                }
            }
        }
        Ok(())
    }

    /// Says how many cells, the next one among them, share what is left of the budget; where a
    /// turn of [`Recording::cells`] measures several.
    pub fn share_among(&mut self, cells: usize) {
        if let Some(budget) = &mut self.budget {
            budget.cells = index(cells);
        }
    }

    /// Writes the last line, unless a signal cut the measurement short.
    pub fn end(mut self) -> Result<Outcome, MeasureError> {
        self.progress.end();
        let stopped = self.stop.signal().filter(|_| self.is_halted);
        if stopped.is_none() {
            let (samples, ended_unix_ns) = (self.writer.samples(), unix_now_ns());
            let end = End { samples, ended_unix_ns, beside: [].into() };
            self.writer.line(&Line::End(end))?;
        }
        Ok(Outcome { place: self.place, stopped })
    }
}

/// A cell's number, as the record has it.
pub fn index(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "driver_tests.rs"]
mod tests;
