//! Measuring a plan of requests and responses.

use std::collections::BTreeMap;

use ntcopy_record::stats::{P99, THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Machine, Sample};

use super::{NetCell, NetPlan};
use crate::experiment::{LoadForm, NetMode};
use crate::run::net::{self, Events, Lane, NetClient, Network, Schedule, Setup, Traffic};
use crate::run::{Failure, Stop, stay_on};
use crate::sample::driver::{At, Experiment, Halt, Options, Recording, available, index};
use crate::sample::servers::{Connected, Exchange, Servers, Taken, servers};
use crate::sample::{
    CLIENT_AND_SERVER, MeasureError, Outcome, Progress, in_this_namespace, window_sample,
};

/// Why TCP's own way says nothing of datagrams.
const ONLY_TCP: &str = "tx-nocache-copy is for TCP alone";

impl Experiment for NetPlan {
    fn experiment(&self) -> ExperimentKind {
        ExperimentKind::Net
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
        stay_on(self.places.map(|places| places.client)).map_err(start)?;
        // Before the namespaces: the first one alone shows the kernel's settings.
        let (modes, missing) = available(&self.modes, net::unavailable).map_err(start)?;
        let network = Network::make(self.between, &self.families(), &self.modes).map_err(start)?;
        let machine = in_this_namespace(machine);
        let mut recording = Recording::begin(self, machine, options, stop, progress)?;
        recording.missing(missing)?;
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
    let exchange = Requests::new(plan, cell, offered, spoil);
    let rate = measure(exchange, index, (servers, &measured), recording)?;
    Ok((cell.form == LoadForm::Closed).then_some(rate))
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

/// Connects and checks every mode, and takes the samples; gives the median of what the baseline
/// was answered, requests per 1000 s.
fn measure(
    exchange: Requests<'_>,
    number: u32,
    (servers, measured): (&mut [Connected<'_, NetClient>], &[usize]),
    recording: &mut Recording<'_>,
) -> Result<Option<u64>, Halt> {
    let plan = exchange.plan;
    let before = u64::from(number) * u64::from(plan.pairs) * servers.len() as u64;
    let what = exchange.what();
    recording.at(&format!("{what}: checking every byte"), before);
    let stop = recording.stop();
    let mut lanes = Servers { exchange, servers, stop };
    lanes.connect(number, measured, recording)?;
    recording.groups(&mut lanes, measured, (number, plan.pairs), (&what, before))?;
    let Servers { exchange: Requests { mut rates, .. }, servers, .. } = lanes;
    // The next cell has other connections.
    servers.iter_mut().for_each(|connected| connected.client = None);
    rates.sort_unstable();
    Ok(rates.get(rates.len() / 2).copied())
}

impl<'a> Requests<'a> {
    /// Those of a cell whose line is in the record.
    pub fn new(
        plan: &'a NetPlan,
        cell: &'a NetCell,
        offered: Option<u64>,
        spoil: bool,
    ) -> Requests<'a> {
        Requests { plan, cell, offered, spoil, rates: Vec::new() }
    }

    /// The cell in a few words, for the bar.
    fn what(&self) -> String {
        let NetCell { family, request_bytes, response_bytes, connections, form } = self.cell;
        let asks = match form {
            LoadForm::Closed => "without a pause",
            LoadForm::Open => "on a schedule",
        };
        let (request, response) = (Bytes(*request_bytes), Bytes(*response_bytes));
        format!("{family}, {request} for {response}, {connections} connections {asks}")
    }
}

impl Exchange for Requests<'_> {
    type Client = NetClient;

    fn figure(&self, sample: &Sample) -> Option<f64> {
        let metric = if self.cell.form == LoadForm::Closed { THROUGHPUT } else { P99 };
        rate(&ExperimentKind::Net, sample, metric)
    }

    fn connect(&self, lane: &mut Lane<'_>) -> Result<NetClient, Failure> {
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
        lane: &mut Lane<'_>,
        client: &mut NetClient,
        at: At,
    ) -> Result<Taken, Failure> {
        let times = self.plan.lengths.of(self.cell.form);
        let proof = lane.begin_proof()?;
        let window = match self.offered {
            None => lane.closed(client, times.warm_up, times.sample)?,
            Some(offered) => {
                // Another one in each group, and the same in all of its modes.
                let seed = (u64::from(at.cell) << 32) | u64::from(at.pair);
                let schedule = Schedule::new(seed, offered, times.warm_up, times.sample);
                lane.open(client, &schedule)?
            }
        };
        let whole = lane.whole(&window);
        let counters = match whole {
            Some(messages) => lane.check_proof(&proof, messages)?,
            // What was given up cannot be held against the counters.
            None => BTreeMap::new(),
        };
        if whole.is_some() {
            lane.check(client, 1, false)?;
        }
        if lane.mode() == self.plan.baseline() {
            let per_1000_s = window.answered as f64 * 1e12 / window.elapsed_ns as f64;
            self.rates.push(per_1000_s as u64);
        }
        let latencies = match self.cell.form {
            LoadForm::Closed => "round_trip_ns",
            LoadForm::Open => "latency_ns",
        };
        let at = (at, lane.mode());
        let sample = window_sample(at, CLIENT_AND_SERVER, window, (latencies, counters));
        Ok(Taken { sample, wants_new_connections: whole.is_none() })
    }
}
