//! Measuring a plan of messages there and back.

use ntcopy_record::stats::{P50, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Machine, Sample};

use super::{PingPongCell, PingPongPlan};
use crate::run::net::{self, Events, Lane, Network, PingPong, Setup, Traffic};
use crate::run::{Failure, Stop, stay_on};
use crate::sample::driver::{At, Experiment, Halt, Options, Recording, available, index};
use crate::sample::servers::{Connected, Exchange, Servers, Taken, servers};
use crate::sample::{
    CLIENT_AND_SERVER, MeasureError, Outcome, Progress, in_this_namespace, window_sample,
};

/// Messages that are compared before anything is timed.
const CHECKED_MESSAGES: u32 = 20;

impl Experiment for PingPongPlan {
    fn experiment(&self) -> ExperimentKind {
        ExperimentKind::Pingpong
    }

    fn baseline(&self) -> String {
        PingPongPlan::baseline(self).to_string()
    }

    fn measure(
        &self,
        machine: Machine,
        options: &Options,
        stop: &Stop,
        progress: &mut Progress,
    ) -> Result<Outcome, MeasureError> {
        let start = MeasureError::Start;
        net::allow_files(1, self.modes.len()).map_err(start)?;
        stay_on(self.places.map(|places| places.client)).map_err(start)?;
        let (modes, missing) = available(&self.modes, net::unavailable).map_err(start)?;
        let machine = in_this_namespace(machine);
        let mut recording = Recording::begin(self, machine, options, stop, progress)?;
        recording.missing(missing)?;
        recording.expect(self.cells.len() as u64 * u64::from(self.pairs) * modes.len() as u64);
        let setup = Setup {
            server_args: &options.worker_args,
            network: &Network::Loopback,
            server_cpu: self.places.map(|places| places.server),
            events: &Events::open(),
            patience: options.patience,
            stop,
        };
        let mut servers = servers(&setup, &self.modes, &modes).map_err(start)?;
        recording.cells(0..self.cells.len(), |recording, number| {
            measure_cell(self, number, options.spoil, &mut servers, recording)
        })?;
        recording.end(stop.signal())
    }
}

fn measure_cell(
    plan: &PingPongPlan,
    number: usize,
    spoil: bool,
    servers: &mut [Connected<'_, PingPong>],
    recording: &mut Recording<'_>,
) -> Result<(), Halt> {
    let cell = &plan.cells[number];
    let index = index(number);
    recording.cell(index, plan.params(cell))?;
    let before = number as u64 * u64::from(plan.pairs) * servers.len() as u64;
    let what = format!("{}, messages of {}", cell.family, Bytes(cell.message_bytes));
    recording.at(&format!("{what}: checking every byte"), before);
    let all: Vec<usize> = (0..servers.len()).collect();
    let stop = recording.stop();
    let mut lanes = Servers { exchange: Messages { plan, cell, spoil }, servers, stop };
    lanes.connect(index, &all, recording)?;
    recording.groups(&mut lanes, &all, (index, plan.pairs), (&what, before))?;
    // The next cell has other connections.
    lanes.servers.iter_mut().for_each(|connected| connected.client = None);
    Ok(())
}

/// One message at a time, there and back.
struct Messages<'a> {
    plan: &'a PingPongPlan,
    cell: &'a PingPongCell,
    spoil: bool,
}

impl Exchange for Messages<'_> {
    type Client = PingPong;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&ExperimentKind::Pingpong, sample, P50)
    }

    fn connect(&self, lane: &mut Lane<'_>) -> Result<PingPong, Failure> {
        let PingPongCell { family, message_bytes } = *self.cell;
        let traffic = Traffic {
            family,
            connections: 1,
            request_bytes: message_bytes,
            response_bytes: message_bytes,
        };
        let mut client = lane.connect_pingpong(&traffic)?;
        lane.check_pingpong(&mut client, CHECKED_MESSAGES, self.spoil)?;
        Ok(client)
    }

    /// The messages, the kernel's counters held against the mode, one message compared.
    fn sample(
        &mut self,
        lane: &mut Lane<'_>,
        client: &mut PingPong,
        at: At,
    ) -> Result<Taken, Failure> {
        let proof = lane.begin_proof()?;
        let window = lane.pingpong(client, self.plan.warm_up, self.plan.sample)?;
        let counters = lane.check_proof(&proof, lane.messages(&window))?;
        lane.check_pingpong(client, 1, false)?;
        let at = (at, lane.mode());
        let sample = window_sample(at, CLIENT_AND_SERVER, window, ("latency_ns", counters));
        Ok(Taken { sample, wants_new_connections: false })
    }
}
