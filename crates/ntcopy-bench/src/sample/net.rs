//! Measuring a plan of requests and responses.

mod cell;
mod lined;

pub(super) use self::lined::{Lined, end_all};

use ntcopy_record::{Cell, End, Line, Machine, RunError, Unavailable};

use super::bulk::{Options, header};
use super::{MeasureError, Outcome, Progress, WriteError, Writer, default_place};
use crate::experiment::net::NetMode;
use crate::plan::net::{LoadForm, NetPlan};
use crate::run::net::{self, Events, Lane, NetClient, Network, Setup};
use crate::run::{Failure, Stop, place, unix_now_ns};
use crate::tcp;

/// Why TCP's own way says nothing of datagrams.
const ONLY_TCP: &str = "tx-nocache-copy is for TCP alone";

struct Bench<'a> {
    plan: &'a NetPlan,
    options: &'a Options,
    stop: &'a Stop,
    /// Requests per 1000 s that the baseline was answered in the last closed cell.
    baseline_rate: Option<u64>,
}

/// Measures the plan and writes the record.
///
/// What goes wrong in a cell becomes an error row and the rest is measured. A signal ends the
/// measurement early; what was measured stays. The servers end in either case. With devices, this
/// thread is in another network namespace afterwards.
///
/// # Errors
///
/// When nothing could be begun, or the record could not be written.
pub fn measure(
    plan: &NetPlan,
    machine: Machine,
    options: &Options,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Outcome, MeasureError> {
    let start = MeasureError::Start;
    net::allow_files(plan.most_connections(), plan.modes.len()).map_err(start)?;
    place(plan.places.map(|places| places.client)).map_err(start)?;
    let network = Network::make(plan).map_err(start)?;
    let (modes, missing) = available(&plan.modes).map_err(start)?;
    let names = (plan.experiment(), plan.baseline().to_string());
    let (place, mut writer) = begin(names, machine, missing, options)?;
    progress.begin(plan.cells.len() as u64 * u64::from(plan.pairs) * modes.len() as u64);
    let setup = Setup {
        server_args: &options.worker_args,
        network: &network,
        server_cpu: plan.places.map(|places| places.server),
        events: &Events::open(),
        patience: options.patience,
        stop,
    };
    let mut lanes = lanes(&setup, &plan.modes, &modes).map_err(start)?;
    let mut bench = Bench { plan, options, stop, baseline_rate: None };
    for number in 0..plan.cells.len() {
        match bench.cell(number, &mut lanes, &mut writer, progress) {
            Ok(()) => {}
            Err(Halt::Stopped) => break,
            Err(Halt::Write(error)) => return Err(error.into()),
        }
    }
    progress.end();
    end(place, writer, stop)
}

/// The first lines of a record, and where it is.
pub(super) fn begin(
    (experiment, baseline): (&str, String),
    machine: Machine,
    missing: Vec<Unavailable>,
    options: &Options,
) -> Result<(std::path::PathBuf, Writer), MeasureError> {
    let header = header(experiment, baseline, options);
    let place = match &options.out {
        Some(out) => out.clone(),
        None => default_place(&header.id).ok_or(WriteError::NoHome)?,
    };
    let mut writer = Writer::create(&place)?;
    writer.line(&Line::Header(header))?;
    // A network namespace of the measurement's own may have another one than its maker's.
    let tcp_congestion_control = tcp::congestion_control();
    writer.line(&Line::Machine(Machine { tcp_congestion_control, ..machine }))?;
    for line in missing {
        writer.line(&Line::Unavailable(line))?;
    }
    Ok((place, writer))
}

/// The last line, unless a signal came.
pub(super) fn end(
    place: std::path::PathBuf,
    mut writer: Writer,
    stop: &Stop,
) -> Result<Outcome, MeasureError> {
    let stopped = stop.signal();
    if stopped.is_none() {
        let end = End { samples: writer.samples(), ended_unix_ns: unix_now_ns() };
        writer.line(&Line::End(end))?;
    }
    Ok(Outcome { place, stopped })
}

/// The modes that can be had here, and lines for those that can't.
pub(super) fn available(modes: &[NetMode]) -> Result<(Vec<NetMode>, Vec<Unavailable>), Failure> {
    let (mut here, mut missing) = (Vec::new(), Vec::new());
    for mode in modes {
        match net::unavailable(*mode)? {
            None => here.push(*mode),
            Some(why) => missing.push(Unavailable { mode: mode.to_string(), why, cell: None }),
        }
    }
    Ok((here, missing))
}

/// A lane for each mode that is here, with the devices that were made for it.
fn lanes<'a>(
    setup: &'a Setup<'a>,
    planned: &[NetMode],
    here: &[NetMode],
) -> Result<Vec<Lined<'a, NetClient>>, Failure> {
    let numbered = (0..).zip(planned).filter(|(_, mode)| here.contains(mode));
    numbered.map(|(number, mode)| Ok(Lined::new(Lane::new(setup, *mode, number)?))).collect()
}

/// Why a cell cannot go on at all.
pub(super) enum Halt {
    /// A signal came; it is in [`Stop`].
    Stopped,
    Write(WriteError),
}

impl From<WriteError> for Halt {
    fn from(error: WriteError) -> Self {
        Halt::Write(error)
    }
}

/// One error row.
pub(super) fn failed(cell: u32, mode: NetMode, failure: &Failure) -> Line {
    Line::Error(RunError {
        cell,
        mode: mode.to_string(),
        what: failure.to_string(),
        wrong_byte: matches!(failure, Failure::WrongByte { .. }),
    })
}

impl Bench<'_> {
    fn cell(
        &mut self,
        number: usize,
        lanes: &mut [Lined<'_, NetClient>],
        writer: &mut Writer,
        progress: &mut Progress,
    ) -> Result<(), Halt> {
        let plan = self.plan;
        let cell = &plan.cells[number];
        let index = u32::try_from(number).unwrap_or(u32::MAX);
        let offered = cell.form.offered(self.plan.rate, self.baseline_rate);
        let params = plan.params(cell, offered.clone().unwrap_or(None));
        writer.line(&Line::Cell(Cell { cell: index, params }))?;
        let mut measured = Vec::new();
        for (position, lined) in lanes.iter().enumerate() {
            let mode = lined.lane.mode();
            let says_nothing = mode == NetMode::Nocache && cell.family.is_datagram();
            match (&offered, says_nothing) {
                (Ok(_), false) => measured.push(position),
                (Ok(_), true) => missing(index, mode, ONLY_TCP, writer)?,
                (Err(why), _) => missing(index, mode, why, writer)?,
            }
        }
        let Ok(offered) = offered else { return Ok(()) };
        let mut run = cell::CellRun::new(self, index, cell, offered);
        run.all(lanes, &measured, writer, progress)?;
        let rate = run.baseline_rate();
        if cell.form == LoadForm::Closed {
            self.baseline_rate = rate;
        }
        Ok(())
    }
}

fn missing(cell: u32, mode: NetMode, why: &str, writer: &mut Writer) -> Result<(), WriteError> {
    let line = Unavailable { mode: mode.to_string(), why: why.to_owned(), cell: Some(cell) };
    writer.line(&Line::Unavailable(line))
}
