//! Measuring a plan of messages there and back.

use std::collections::BTreeMap;

use ntcopy_record::units::Bytes;
use ntcopy_record::{Cell, Line, Machine, Sample};

use super::bulk::Options;
use super::net::{Halt, Lined, available, begin, end, end_all};
use super::{MeasureError, Outcome, Progress, Writer};
use crate::experiment::net::NetMode;
use crate::plan::group_order;
use crate::plan::pingpong::{PingPongCell, PingPongPlan};
use crate::run::net::{self, Events, Lane, Network, PingPong, Pings, Setup, Traffic};
use crate::run::{Failure, Stop, place};

/// Before anything is timed, so many messages are compared.
const CHECKED_MESSAGES: u32 = 20;

struct Bench<'a> {
    plan: &'a PingPongPlan,
    options: &'a Options,
    stop: &'a Stop,
}

/// Measures the plan and writes the record.
///
/// What goes wrong in a cell becomes an error row and the rest is measured. A signal ends the
/// measurement early; what was measured stays. The servers end in either case.
///
/// # Errors
///
/// When nothing could be begun, or the record could not be written.
pub fn measure(
    plan: &PingPongPlan,
    machine: Machine,
    options: &Options,
    stop: &Stop,
    progress: &mut Progress,
) -> Result<Outcome, MeasureError> {
    let start = MeasureError::Start;
    net::allow_files(1, plan.modes.len()).map_err(start)?;
    place(plan.places.map(|places| places.client)).map_err(start)?;
    let (modes, missing) = available(&plan.modes).map_err(start)?;
    let names = (plan.experiment(), plan.baseline().to_string());
    let (place, mut writer) = begin(names, machine, missing, options)?;
    progress.begin(plan.cells.len() as u64 * u64::from(plan.pairs) * modes.len() as u64);
    let setup = Setup {
        server_args: &options.worker_args,
        network: &Network::Loopback,
        server_cpu: plan.places.map(|places| places.server),
        events: &Events::open(),
        patience: options.patience,
        stop,
    };
    let lanes =
        (0..).zip(&modes).map(|(number, mode)| Ok(Lined::new(Lane::new(&setup, *mode, number)?)));
    let mut lanes: Vec<Lined<'_, PingPong>> =
        lanes.collect::<Result<_, Failure>>().map_err(start)?;
    let bench = Bench { plan, options, stop };
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

impl Bench<'_> {
    fn cell(
        &self,
        number: usize,
        lanes: &mut [Lined<'_, PingPong>],
        writer: &mut Writer,
        progress: &mut Progress,
    ) -> Result<(), Halt> {
        let plan = self.plan;
        let cell = &plan.cells[number];
        let index = u32::try_from(number).unwrap_or(u32::MAX);
        writer.line(&Line::Cell(Cell { cell: index, params: plan.params(cell) }))?;
        let width = lanes.len() as u64;
        let before = number as u64 * u64::from(plan.pairs) * width;
        let what = format!("{}, messages of {}", cell.family, Bytes(cell.message_bytes));
        progress.at(&format!("{what}: checking every byte"), before);
        let all: Vec<usize> = (0..lanes.len()).collect();
        self.connect(index, lanes, &all, writer)?;
        for pair in 0..plan.pairs {
            let order = group_order(&all, pair);
            if pair > 0 {
                let alive = end_all(lanes, order.clone());
                self.connect(index, lanes, &alive, writer)?;
            }
            for (position, lane) in (0..).zip(order) {
                let lined = &mut lanes[lane];
                progress.at(&what, before + u64::from(pair) * width + u64::from(position));
                if lined.client.is_none() {
                    continue;
                }
                let pings = self.sample(lined);
                let kept = lined.keep(index, pings, self.stop, writer)?;
                if let Some((pings, counters)) = kept {
                    let mode = lined.lane.mode();
                    let place = (index, pair, position);
                    writer.line(&Line::Sample(line(place, mode, cell, &pings, counters)))?;
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
        number: u32,
        lanes: &mut [Lined<'_, PingPong>],
        which: &[usize],
        writer: &mut Writer,
    ) -> Result<(), Halt> {
        for index in which {
            let lined = &mut lanes[*index];
            let ready = self.prepare(&self.plan.cells[number as usize], lined);
            lined.keep(number, ready, self.stop, writer)?;
        }
        Ok(())
    }

    /// Connects, and compares bytes.
    fn prepare(&self, cell: &PingPongCell, lined: &mut Lined<'_, PingPong>) -> Result<(), Failure> {
        let PingPongCell { family, message_bytes } = *cell;
        let traffic = Traffic {
            family,
            connections: 1,
            request_bytes: message_bytes,
            response_bytes: message_bytes,
        };
        let mut client = lined.lane.connect_pingpong(&traffic)?;
        lined.lane.check_pingpong(&mut client, CHECKED_MESSAGES, self.options.spoil)?;
        lined.client = Some(client);
        Ok(())
    }

    /// One sample, the kernel's counters held against the mode, one message compared.
    fn sample(
        &self,
        lined: &mut Lined<'_, PingPong>,
    ) -> Result<(Pings, BTreeMap<String, u64>), Failure> {
        let Lined { lane, client } = lined;
        let gone = || Failure::Answer("the client is gone".to_owned());
        let client = client.as_mut().ok_or_else(gone)?;
        let proof = lane.begin_proof()?;
        let pings = lane.pingpong(client, self.plan.warm_up, self.plan.sample)?;
        let counters = lane.check_proof(&proof, pings.all_messages)?;
        lane.check_pingpong(client, 1, false)?;
        Ok((pings, counters))
    }
}

fn line(
    (cell, pair, position): (u32, u32, u32),
    mode: NetMode,
    PingPongCell { message_bytes, .. }: &PingPongCell,
    pings: &Pings,
    mut counters: BTreeMap<String, u64>,
) -> Sample {
    let (ns, counts) = pings.latencies.latencies.iter().copied().unzip();
    let mut series = BTreeMap::from([
        ("answered".to_owned(), vec![pings.messages]),
        ("latency_ns".to_owned(), ns),
        ("answers".to_owned(), counts),
    ]);
    // The kernel's are of the whole run, the hardware's of `bytes`.
    if !counters.is_empty() {
        let bytes = 2 * pings.all_messages * message_bytes;
        series.insert("counted_bytes".to_owned(), vec![bytes]);
    }
    counters.extend(pings.events.clone());
    let phases = [("client_cpu", pings.cpu.client), ("server_cpu", pings.cpu.server)];
    Sample {
        cell,
        pair,
        position,
        mode: mode.to_string(),
        bytes: 2 * pings.messages * message_bytes,
        elapsed_ns: pings.elapsed_ns,
        phases_ns: phases.map(|(name, ns)| (name.to_owned(), ns)).into(),
        counters,
        series,
    }
}
