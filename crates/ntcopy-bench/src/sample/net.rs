//! Measuring a plan of requests and responses.

mod cell;
mod servers;

use ntcopy_record::Machine;

pub(super) use self::servers::{Connected, Exchange, Servers, Taken, available};

use super::driver::{Experiment, Halt, Options, Recording, index};
use super::{MeasureError, Outcome, Progress, in_this_namespace};
use crate::experiment::net::NetMode;
use crate::plan::net::{LoadForm, NetPlan};
use crate::run::net::{self, Events, Lane, NetClient, Network, Setup};
use crate::run::{Failure, Stop, place};

/// Why TCP's own way says nothing of datagrams.
const ONLY_TCP: &str = "tx-nocache-copy is for TCP alone";

impl Experiment for NetPlan {
    fn name(&self) -> &'static str {
        self.experiment()
    }

    fn baseline(&self) -> String {
        NetPlan::baseline(self).to_string()
    }

    /// With devices, this thread is in another network namespace afterwards.
    fn measure(
        &self,
        machine: Machine,
        options: &Options,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Outcome, MeasureError> {
        let start = MeasureError::Start;
        net::allow_files(self.most_connections(), self.modes.len()).map_err(start)?;
        place(self.places.map(|places| places.client)).map_err(start)?;
        let network = Network::make(self).map_err(start)?;
        let (modes, missing) = available(&self.modes).map_err(start)?;
        let machine = in_this_namespace(machine);
        let mut recording = Recording::begin(self, machine, options, stop, progress)?;
        for (mode, why) in missing {
            recording.unavailable(mode, why, None)?;
        }
        recording.expect(self.cells.len() as u64 * u64::from(self.pairs) * modes.len() as u64);
        let setup = Setup {
            server_args: &options.worker_args,
            network: &network,
            server_cpu: self.places.map(|places| places.server),
            events: &Events::open(),
            patience: options.patience,
            stop,
        };
        let mut servers = servers(&setup, &self.modes, &modes).map_err(start)?;
        // Requests per 1000 s that the baseline was answered in the last closed cell.
        let mut baseline_rate = None;
        recording.cells(0..self.cells.len(), |recording, number| {
            let spoil = options.spoil;
            let rate = measure_cell(self, number, (baseline_rate, spoil), &mut servers, recording)?;
            if let Some(rate) = rate {
                baseline_rate = rate;
            }
            Ok(())
        })?;
        recording.end(stop.signal())
    }
}

/// A server for each mode that is here, with the devices that were made for it.
fn servers<'a>(
    setup: &'a Setup<'a>,
    planned: &[NetMode],
    here: &[NetMode],
) -> Result<Vec<Connected<'a, NetClient>>, Failure> {
    let numbered = (0..).zip(planned).filter(|(_, mode)| here.contains(mode));
    numbered.map(|(number, mode)| Ok(Connected::new(Lane::new(setup, *mode, number)?))).collect()
}

/// Measures one cell; of a closed one, gives what the baseline was answered.
fn measure_cell(
    plan: &NetPlan,
    number: usize,
    (baseline_rate, spoil): (Option<u64>, bool),
    servers: &mut [Connected<'_, NetClient>],
    recording: &mut Recording<'_>,
) -> Result<Option<Option<u64>>, Halt> {
    let cell = &plan.cells[number];
    let index = index(number);
    let offered = cell.form.offered(plan.rate, baseline_rate);
    recording.cell(index, plan.params(cell, offered.clone().unwrap_or(None)))?;
    let mut measured = Vec::new();
    for (position, connected) in servers.iter().enumerate() {
        let mode = connected.lane.mode();
        let says_nothing = mode == NetMode::Nocache && cell.family.is_datagram();
        match (&offered, says_nothing) {
            (Ok(_), false) => measured.push(position),
            (Ok(_), true) => recording.unavailable(mode, ONLY_TCP, Some(index))?,
            (Err(why), _) => recording.unavailable(mode, why.as_str(), Some(index))?,
        }
    }
    let Ok(offered) = offered else { return Ok(None) };
    let exchange = cell::Requests::new(plan, cell, offered, spoil);
    let rate = cell::measure(exchange, index, (servers, &measured), recording)?;
    Ok((cell.form == LoadForm::Closed).then_some(rate))
}
