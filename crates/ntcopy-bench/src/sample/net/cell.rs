//! One cell: check, interleave.

use std::collections::BTreeMap;

use ntcopy_record::units::Bytes;
use ntcopy_record::{Line, Sample};

use super::{Bench, Halt, Lined, end_all};
use crate::plan::group_order;
use crate::plan::net::{LoadForm, NetCell};
use crate::run::Failure;
use crate::run::net::{NetClient, Schedule, Traffic, Window};
use crate::sample::{Progress, Writer};

/// Before anything is timed, so many messages of each connection are compared.
const CHECKED_ROUNDS: u32 = 3;

/// A cell being measured.
pub struct CellRun<'a> {
    bench: &'a Bench<'a>,
    number: u32,
    cell: &'a NetCell,
    /// Requests per 1000 s, of an open cell.
    offered: Option<u64>,
    /// Requests per 1000 s in each of the baseline's samples.
    rates: Vec<u64>,
}

impl<'a> CellRun<'a> {
    /// Of a cell whose line is in the record.
    pub fn new(
        bench: &'a Bench<'a>,
        number: u32,
        cell: &'a NetCell,
        offered: Option<u64>,
    ) -> CellRun<'a> {
        CellRun { bench, number, cell, offered, rates: Vec::new() }
    }

    /// The median of what the baseline was answered, requests per 1000 s.
    pub fn baseline_rate(&self) -> Option<u64> {
        let mut rates = self.rates.clone();
        rates.sort_unstable();
        rates.get(rates.len() / 2).copied()
    }

    /// Connects and checks every mode, and takes the samples.
    pub fn all(
        &mut self,
        lanes: &mut [Lined<'_, NetClient>],
        measured: &[usize],
        writer: &mut Writer,
        progress: &mut Progress,
    ) -> Result<(), Halt> {
        let plan = self.bench.plan;
        let width = lanes.len() as u64;
        let before = u64::from(self.number) * u64::from(plan.pairs) * width;
        let what = self.what();
        progress.at(&format!("{what}: checking every byte"), before);
        self.connect(lanes, measured, writer)?;
        for pair in 0..plan.pairs {
            let order = group_order(measured, pair);
            if pair > 0 {
                let alive = end_all(lanes, order.clone());
                self.connect(lanes, &alive, writer)?;
            }
            for (position, index) in (0..).zip(order) {
                let lined = &mut lanes[index];
                progress.at(&what, before + u64::from(pair) * width + u64::from(position));
                if lined.client.is_none() {
                    continue;
                }
                let sample = self.sample(lined, pair, position);
                let kept = lined.keep(self.number, sample, self.bench.stop, writer)?;
                if let Some(sample) = kept {
                    writer.line(&Line::Sample(sample))?;
                }
            }
        }
        // The next cell has other connections.
        lanes.iter_mut().for_each(|lined| lined.client = None);
        Ok(())
    }

    /// Each of these modes is connected and checked, or fails.
    fn connect(
        &self,
        lanes: &mut [Lined<'_, NetClient>],
        which: &[usize],
        writer: &mut Writer,
    ) -> Result<(), Halt> {
        for index in which {
            let lined = &mut lanes[*index];
            let ready = self.prepare(lined);
            lined.keep(self.number, ready, self.bench.stop, writer)?;
        }
        Ok(())
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

    /// Connects, and compares bytes.
    fn prepare(&self, lined: &mut Lined<'_, NetClient>) -> Result<(), Failure> {
        let Lined { lane, client } = lined;
        let traffic = Traffic {
            family: self.cell.family,
            connections: self.cell.connections,
            request_bytes: self.cell.request_bytes,
            response_bytes: self.cell.response_bytes,
        };
        let mut connected = lane.connect_client(&traffic)?;
        lane.check(&mut connected, CHECKED_ROUNDS, self.bench.options.spoil)?;
        *client = Some(connected);
        Ok(())
    }

    /// One sample: the load, the kernel's counters held against the mode, one message of each
    /// connection compared.
    fn sample(
        &mut self,
        lined: &mut Lined<'_, NetClient>,
        pair: u32,
        position: u32,
    ) -> Result<Sample, Failure> {
        let times = self.bench.plan.times(self.cell.form);
        let Lined { lane, client } = lined;
        let gone = || Failure::Answer("the client is gone".to_owned());
        let client = client.as_mut().ok_or_else(gone)?;
        let proof = lane.begin_proof()?;
        let window = match self.offered {
            None => lane.closed(client, times.warm_up, times.sample)?,
            Some(offered) => {
                // Another one in each group, and the same in all of its modes.
                let seed = (u64::from(self.number) << 32) | u64::from(pair);
                let schedule = Schedule::new(seed, offered, times.warm_up, times.sample);
                lane.open(client, &schedule)?
            }
        };
        let whole = lane.whole(&window);
        let mut counters = match whole {
            Some(messages) => lane.check_proof(&proof, messages)?,
            // What was given up is nobody's to count.
            None => BTreeMap::new(),
        };
        if whole.is_some() {
            lane.check(client, 1, false)?;
        }
        if lane.mode() == self.bench.plan.baseline() {
            let per_1000_s = window.answered as f64 * 1e12 / window.elapsed_ns as f64;
            self.rates.push(per_1000_s as u64);
        }
        let series = self.series(&window, !counters.is_empty());
        // Of what was clocked, given up or not.
        counters.extend(window.events.clone());
        let sample = Sample {
            cell: self.number,
            pair,
            position,
            mode: lane.mode().to_string(),
            bytes: window.bytes,
            elapsed_ns: window.elapsed_ns,
            phases_ns: phases(&window),
            series,
            counters,
        };
        if whole.is_none() {
            // Requests are under way that nobody waits for any more: new connections.
            self.prepare(lined)?;
        }
        Ok(sample)
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

/// CPU time of each process while the clock ran.
fn phases(window: &Window) -> BTreeMap<String, u64> {
    [("client_cpu", window.cpu.client), ("server_cpu", window.cpu.server)]
        .map(|(name, ns)| (name.to_owned(), ns))
        .into()
}
