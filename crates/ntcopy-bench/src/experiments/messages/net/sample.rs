//! Measuring a plan of requests and responses.

use std::collections::BTreeMap;

use ntcopy_judge::stats::{P99, THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Mode, Sample};

use super::{NetCell, NetPlan};
use crate::experiment::LoadForm;
use crate::experiments::messages::NetMode;
use crate::experiments::messages::run::{Lane, NetClient, Traffic};
use crate::experiments::messages::sample::{NetServer, measure};
use crate::run::Failure;
use crate::run::schedule::Schedule;
use crate::sample::driver::{At, Context, Experiment, Halt, Recording, index};
use crate::sample::servers::{self, Exchange, Taken};
use crate::sample::{
    Bootable, CLIENT_AND_SERVER, MeasureError, Needs, Outcome, named, window_sample,
};

/// Why TCP's own way says nothing of datagrams.
const ONLY_TCP: &str = "tx-nocache-copy is for TCP alone";

impl Experiment for NetPlan {
    fn identity(&self) -> (ExperimentKind, Vec<Mode>) {
        (ExperimentKind::Net, named(&self.sides.modes))
    }

    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        // Requests per 1000 s that the baseline was answered in the last closed cell.
        let mut rate = None;
        let (sides, cells) = (&self.sides, self.cells.len());
        measure(self, sides, cells, context, |number, servers, recording| {
            measure_cell(self, number, &mut rate, servers, recording)
        })
    }
}

impl Bootable for NetPlan {
    fn needs(&self) -> Needs {
        let lengths = self.cells.iter().map(|cell| self.lengths.of(cell.form).whole());
        let needs = Needs::new(self.samples(), self.memory_bytes(), lengths);
        Needs { sysctls: self.sysctls(), ..needs }
    }
}

/// Measures one cell; of a closed one, notes what the baseline was answered.
fn measure_cell(
    plan: &NetPlan,
    number: usize,
    baseline_rate: &mut Option<u64>,
    servers: &mut [NetServer<'_, NetClient>],
    recording: &mut Recording<'_>,
) -> Result<(), Halt> {
    let cell = &plan.cells[number];
    let index = index(number);
    let offered = cell.form.offered(plan.rate, *baseline_rate);
    let offered = match offered {
        Ok(offered) => offered,
        Err(why) => {
            let modes = servers.iter().map(|connected| connected.lane.mode());
            return Ok(recording.leave_out(index, plan.params(cell, None), modes, &why)?);
        }
    };
    recording.cell(index, plan.params(cell, offered))?;
    let (spoil, rates) = (recording.options.spoil, Vec::new());
    let exchange = Requests { plan, cell, offered, spoil, rates };
    let pairs = plan.sides.pairs;
    let Requests { mut rates, .. } =
        servers::measure_cell(exchange, index, pairs, servers, recording)?;
    if cell.form == LoadForm::Closed {
        rates.sort_unstable();
        *baseline_rate = rates.get(rates.len() / 2).copied();
    }
    Ok(())
}

/// Messages of each connection that are compared before anything is timed.
const CHECKED_ROUNDS: u32 = 3;

struct Requests<'a> {
    plan: &'a NetPlan,
    cell: &'a NetCell,
    /// Requests per 1000 s, of an open cell.
    offered: Option<u64>,
    spoil: bool,
    /// Requests per 1000 s in each of the baseline's samples.
    rates: Vec<u64>,
}

impl<'l> Exchange<Lane<'l>> for Requests<'_> {
    type Client = NetClient;

    fn name(&self, lane: &Lane<'l>) -> String {
        lane.mode().to_string()
    }

    fn what(&self) -> String {
        let NetCell { family, request_bytes, response_bytes, connections, form } = self.cell;
        let asks = match form {
            LoadForm::Closed => "without a pause",
            LoadForm::Open => "on a schedule",
        };
        let (request, response) = (Bytes(*request_bytes), Bytes(*response_bytes));
        format!("{family}, {request} for {response}, {connections} connections {asks}")
    }

    fn unavailable(&self, lane: &Lane<'l>) -> Option<&'static str> {
        (lane.mode() == NetMode::Nocache && self.cell.family.is_datagram()).then_some(ONLY_TCP)
    }

    fn end(&self, lane: &mut Lane<'l>) {
        lane.reset();
    }

    fn figure(&self, sample: &Sample) -> Option<f64> {
        let metric = if self.cell.form == LoadForm::Closed { THROUGHPUT } else { P99 };
        rate(&ExperimentKind::Net, sample, metric)
    }

    fn connect(&self, lane: &mut Lane<'l>) -> Result<NetClient, Failure> {
        let traffic = Traffic {
            family: self.cell.family,
            connections: self.cell.connections,
            request_bytes: self.cell.request_bytes,
            response_bytes: self.cell.response_bytes,
        };
        let mut client = lane.connect_client(&traffic)?;
        lane.check(&mut client, CHECKED_ROUNDS, self.spoil)?;
        Ok(client)
    }

    /// The load, the kernel's counters held against the mode, one message of each connection
    /// compared.
    fn sample(
        &mut self,
        lane: &mut Lane<'l>,
        client: &mut NetClient,
        at: At,
    ) -> Result<Taken, Failure> {
        let times = self.plan.lengths.of(self.cell.form);
        let proof = lane.begin_proof()?;
        let window = match self.offered {
            None => lane.closed(client, times.warm_up, times.sample)?,
            Some(offered) => {
                let schedule = Schedule::new(at.seed(), offered, times.warm_up, times.sample);
                lane.open(client, &schedule)?
            }
        };
        let (is_whole, mut counters) = (window.is_whole(), BTreeMap::new());
        // What was given up cannot be held against the counters.
        if is_whole {
            counters = lane.check_proof(&proof, lane.messages(&window))?;
            lane.check(client, 1, false)?;
        }
        if lane.mode() == self.plan.sides.modes[0] {
            let per_1000_s = window.answered as f64 * 1e12 / window.elapsed_ns as f64;
            self.rates.push(per_1000_s as u64);
        }
        let latencies = match self.cell.form {
            LoadForm::Closed => "round_trip_ns",
            LoadForm::Open => "latency_ns",
        };
        let (mode, processes) = (lane.mode(), CLIENT_AND_SERVER);
        let sample = window_sample(at, mode, processes, window, latencies, counters);
        Ok(Taken { sample, wants_new_connections: !is_whole })
    }
}
