//! Measuring a plan of messages there and back.

use ntcopy_judge::stats::{P50, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Mode, Sample};

use super::{PingPongCell, PingPongPlan};
use crate::experiments::messages::run::{Lane, PingPong, Traffic};
use crate::experiments::messages::sample::measure;
use crate::run::Failure;
use crate::sample::driver::{At, Context, Experiment, index};
use crate::sample::servers::{Exchange, Taken, measure_cell};
use crate::sample::{
    Bootable, CLIENT_AND_SERVER, MeasureError, Needs, Outcome, named, window_sample,
};

/// Messages that are compared before anything is timed.
const CHECKED_MESSAGES: u32 = 20;

impl Experiment for PingPongPlan {
    fn identity(&self) -> (ExperimentKind, Vec<Mode>) {
        (ExperimentKind::Pingpong, named(&self.sides.modes))
    }

    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        let (sides, cells) = (&self.sides, self.cells.len());
        measure(self, sides, cells, context, |number, servers, recording| {
            let (cell, number) = (&self.cells[number], index(number));
            recording.cell(number, self.params(cell))?;
            let exchange = Messages { plan: self, cell, spoil: recording.options.spoil };
            measure_cell(exchange, number, sides.pairs, servers, recording).map(drop)
        })
    }
}

impl Bootable for PingPongPlan {
    fn needs(&self) -> Needs {
        Needs::new(self.samples(), self.memory_bytes(), [self.sample + self.warm_up].into_iter())
    }
}

/// One message at a time, there and back.
struct Messages<'a> {
    plan: &'a PingPongPlan,
    cell: &'a PingPongCell,
    spoil: bool,
}

impl<'l> Exchange<Lane<'l>> for Messages<'_> {
    type Client = PingPong;

    fn name(&self, lane: &Lane<'l>) -> String {
        lane.mode().to_string()
    }

    fn what(&self) -> String {
        let PingPongCell { family, message_bytes } = *self.cell;
        format!("{family}, messages of {}", Bytes(message_bytes))
    }

    fn end(&self, lane: &mut Lane<'l>) {
        lane.reset();
    }

    fn figure(&self, sample: &Sample) -> Option<f64> {
        rate(&ExperimentKind::Pingpong, sample, P50)
    }

    fn connect(&self, lane: &mut Lane<'l>) -> Result<PingPong, Failure> {
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

    fn sample(
        &mut self,
        lane: &mut Lane<'l>,
        client: &mut PingPong,
        at: At,
    ) -> Result<Taken, Failure> {
        let proof = lane.begin_proof()?;
        let window = lane.pingpong(client, self.plan.warm_up, self.plan.sample)?;
        let counters = lane.check_proof(&proof, lane.messages(&window))?;
        lane.check_pingpong(client, 1, false)?;
        let (mode, processes) = (lane.mode(), CLIENT_AND_SERVER);
        let sample = window_sample(at, mode, processes, window, "latency_ns", counters);
        Ok(Taken { sample, wants_new_connections: false })
    }
}
