//! One cell of requests and responses: check, interleave.

use std::collections::BTreeMap;

use ntcopy_record::Sample;
use ntcopy_record::units::Bytes;

use super::{Connected, Exchange, Servers, Taken};
use crate::plan::net::{LoadForm, NetCell, NetPlan};
use crate::run::Failure;
use crate::run::net::{Lane, NetClient, Schedule, Traffic, Window};
use crate::sample::driver::{At, Halt, Recording};

/// Messages of each connection that are compared before anything is timed.
const CHECKED_ROUNDS: u32 = 3;

/// Requests and responses in one cell.
pub struct Requests<'a> {
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
pub fn measure(
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

    fn series(&self, window: &Window, is_counted: bool) -> BTreeMap<String, Vec<u64>> {
        let mut series = BTreeMap::from([("answered".to_owned(), vec![window.answered])]);
        if is_counted {
            series.insert("counted_bytes".to_owned(), vec![window.all_bytes]);
        }
        if let Some(answers) = &window.answers {
            let (ns, counts) = answers.latencies.iter().copied().unzip();
            let name = match self.cell.form {
                LoadForm::Closed => "round_trip_ns",
                LoadForm::Open => "latency_ns",
            };
            series.insert(name.to_owned(), ns);
            series.insert("answers".to_owned(), counts);
            if answers.unanswered > 0 {
                series.insert("unanswered".to_owned(), vec![answers.unanswered]);
            }
        }
        series
    }
}

impl Exchange for Requests<'_> {
    type Client = NetClient;

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
        At { cell, pair, position }: At,
    ) -> Result<Taken, Failure> {
        let times = self.plan.times(self.cell.form);
        let proof = lane.begin_proof()?;
        let window = match self.offered {
            None => lane.closed(client, times.warm_up, times.sample)?,
            Some(offered) => {
                // Another one in each group, and the same in all of its modes.
                let seed = (u64::from(cell) << 32) | u64::from(pair);
                let schedule = Schedule::new(seed, offered, times.warm_up, times.sample);
                lane.open(client, &schedule)?
            }
        };
        let whole = lane.whole(&window);
        let mut counters = match whole {
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
        let series = self.series(&window, !counters.is_empty());
        // Those of what was clocked, given up or not.
        counters.extend(window.events.clone());
        let sample = Sample {
            cell,
            pair,
            position,
            mode: lane.mode().to_string(),
            bytes: window.bytes,
            elapsed_ns: window.elapsed_ns,
            phases_ns: phases(&window),
            series,
            counters,
        };
        Ok(Taken { sample, wants_new_connections: whole.is_none() })
    }
}

/// CPU time of each process while the clock ran.
fn phases(window: &Window) -> BTreeMap<String, u64> {
    [("client_cpu", window.cpu.client), ("server_cpu", window.cpu.server)]
        .map(|(name, ns)| (name.to_owned(), ns))
        .into()
}
