//! Measuring a plan of clients, proxies and backends.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use ntcopy_judge::stats::{P99, THROUGHPUT, rate};
use ntcopy_record::units::Bytes;
use ntcopy_record::{ExperimentKind, Mode, Sample};

use super::run::{self, BodyReader, Client, Data, Meter, Running, Scratch, Setup, Window};
use super::{HttpCell, HttpForm, HttpPlan, Stack, Way};
use crate::run::meter::{Events, open_events};
use crate::run::proof::Proof;
use crate::run::schedule::Schedule;
use crate::run::{Failure, Patience, stay_on};
use crate::sample::driver::{At, Context, Experiment, Halt, Recording, available, index};
use crate::sample::servers::{Connected, Exchange, Taken, measure_cell};
use crate::sample::{Bootable, MeasureError, Needs, Outcome, window_sample};

const PROCESSES: [&str; 3] = ["client_cpu", "proxy_cpu", "backend_cpu"];

/// What daemons are started with, for as long as cells ask for the same data.
struct Served<'a> {
    ways: &'a [Way],
    scratch: &'a Scratch,
    data: &'a Data,
}

struct Bench<'a> {
    plan: &'a HttpPlan,
    spoil: bool,
    patience: Patience<'a>,
    open_files: u64,
    /// Hardware counters: opened before any daemon, they are of all of them.
    events: Events,
    /// Requests per 1000 s that the baseline was answered in the last closed cell.
    baseline_rate: Option<u64>,
}

impl Experiment for HttpPlan {
    fn identity(&self) -> (ExperimentKind, Vec<Mode>) {
        (ExperimentKind::Http, self.ways.iter().map(|way| self.mode(*way)).collect())
    }

    fn caveats(&self) -> Vec<String> {
        run::exceeds(self.settings.sndbuf_bytes).into_iter().collect()
    }

    /// The daemons end in any case, and their folder goes.
    fn measure(&self, context: Context<'_>) -> Result<Outcome, MeasureError> {
        let open_files = run::allow_files(self)?;
        run::have_buffers(self)?;
        let (ways, missing) = available(&self.ways, run::unavailable)?;
        // Without what all are compared with there is nothing to measure.
        let is_baseline = |(way, _): &&(Way, String)| self.ways.first() == Some(way);
        if let Some((_, why)) = missing.iter().find(is_baseline) {
            return Err(Failure::Limit(why.clone()).into());
        }
        stay_on(self.places.map(|[client, ..]| client))?;
        let mut recording = Recording::begin(self, context)?;
        recording.missing(missing.into_iter().map(|(way, why)| (self.name(way), why)))?;
        recording.expect(self.samples() / self.ways.len() as u64 * ways.len() as u64);
        let mut bench = Bench {
            plan: self,
            spoil: recording.options.spoil,
            patience: recording.patience(),
            open_files,
            events: open_events(),
            baseline_rate: None,
        };
        // Cells that follow each other and have the same data share it.
        let is_first = |number: &usize| {
            *number == 0 || !self.cells[*number].has_data_of(&self.cells[*number - 1])
        };
        let firsts: Vec<usize> = (0..self.cells.len()).filter(is_first).collect();
        recording.cells(firsts.iter().copied(), |recording, first| {
            let next = firsts.iter().copied().find(|other| *other > first);
            bench.group(first..next.unwrap_or(self.cells.len()), &ways, recording)
        })?;
        recording.end()
    }
}

impl Bootable for HttpPlan {
    fn needs(&self) -> Needs {
        let lengths = self.cells.iter().map(|cell| self.lengths.of(cell.form).whole());
        let needs = Needs::new(self.samples(), self.memory_bytes(), lengths);
        Needs { sysctls: self.sysctls(), ..needs }
    }
}

impl Bench<'_> {
    fn group(
        &mut self,
        cells: Range<usize>,
        ways: &[Way],
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        let first = &self.plan.cells[cells.start];
        recording.at("making the data set");
        let scratch = Scratch::new(self.plan.data_bytes(first))?;
        let stacks: Vec<Stack> = ways.iter().map(|way| way.stack).collect();
        let data = Data::make(first, &scratch, &stacks, self.patience)?;
        let served = Served { ways, scratch: &scratch, data: &data };
        for number in cells.clone() {
            self.cell(number, number == cells.start, &served, recording)?;
        }
        Ok(())
    }

    fn cell(
        &mut self,
        number: usize,
        is_first: bool,
        served: &Served<'_>,
        recording: &mut Recording<'_>,
    ) -> Result<(), Halt> {
        let plan = self.plan;
        let cell = &plan.cells[number];
        let index = index(number);
        let offered = cell.form.offered(plan.rate, self.baseline_rate);
        let offered = match offered {
            Ok(offered) => offered,
            Err(why) => {
                let names = served.ways.iter().map(|way| plan.name(*way));
                return Ok(recording.leave_out(index, plan.params(cell, None), names, &why)?);
            }
        };
        recording.cell(index, plan.params(cell, offered))?;
        let rate = measure(self, served, number, offered, is_first, recording)?;
        if cell.form == HttpForm::Closed {
            self.baseline_rate = rate;
        }
        Ok(())
    }
}

/// One way while it is measured: its daemons, and the folder that is made for them.
struct Lane {
    way: Way,
    folder: PathBuf,
    running: Option<Running>,
}

/// What is asked of the ways of one cell.
struct Requests<'a> {
    bench: &'a Bench<'a>,
    served: &'a Served<'a>,
    cell: &'a HttpCell,
    /// Requests per 1000 s, of an open cell.
    offered: Option<u64>,
    /// Whether its data set is new: then nothing was started yet.
    is_first: bool,
    /// Requests per 1000 s in each of the baseline's samples.
    rates: Vec<u64>,
}

/// Starts the daemons, and takes the samples, as often as the plan says, of a cell whose line is in
/// the record; gives the median of what the baseline was answered, requests per 1000 s.
fn measure(
    bench: &Bench<'_>,
    served: &Served<'_>,
    number: usize,
    offered: Option<u64>,
    is_first: bool,
    recording: &mut Recording<'_>,
) -> Result<Option<u64>, Halt> {
    let (plan, cell) = (bench.plan, &bench.plan.cells[number]);
    let lane = |(number, way): (usize, &Way)| {
        let folder = served.scratch.path().join(format!("way{number}"));
        Connected::new(Lane { way: *way, folder, running: None })
    };
    let mut servers: Vec<_> = served.ways.iter().enumerate().map(lane).collect();
    recording.share_among(plan.cells.len().saturating_sub(number));
    let requests = Requests { bench, served, cell, offered, is_first, rates: Vec::new() };
    let Requests { mut rates, .. } =
        measure_cell(requests, index(number), plan.pairs, &mut servers, recording)?;
    rates.sort_unstable();
    Ok(rates.get(rates.len() / 2).copied())
}

impl Requests<'_> {
    /// What the clients ask in one sample, and what comes of it.
    fn load(&self, client: &mut Client, running: &Running, at: At) -> Result<Window, Failure> {
        let times = self.bench.plan.lengths.of(self.cell.form);
        let cpu = || running.cpu();
        let meter = Meter::new(&cpu).counting(&self.bench.events);
        let Some(offered) = self.offered else {
            return client.closed(times.warm_up, times.sample, meter);
        };
        let schedule = Schedule::new(at.seed(), offered, times.warm_up, times.sample);
        client.open(&schedule, meter)
    }
}

impl Exchange<Lane> for Requests<'_> {
    type Client = Client;

    fn name(&self, lane: &Lane) -> String {
        self.bench.plan.name(lane.way)
    }

    fn what(&self) -> String {
        let HttpCell { object_bytes, connections, form, .. } = self.cell;
        let asks = match form {
            HttpForm::Closed => "without a pause",
            HttpForm::Open => "on a schedule",
        };
        format!("{}, {connections} connections {asks}", Bytes(*object_bytes))
    }

    fn figure(&self, sample: &Sample) -> Option<f64> {
        let metric = if matches!(self.cell.form, HttpForm::Closed) { THROUGHPUT } else { P99 };
        rate(&ExperimentKind::Http, sample, metric)
    }

    /// Which pages and addresses a process got makes it some hundredths faster or slower for as
    /// long as it lives.
    fn starts_at(&self, pair: u32) -> bool {
        self.bench.plan.starts_at(pair)
    }

    fn start(&self, lane: &mut Lane) -> Result<(), Failure> {
        let Lane { way, folder, .. } = lane;
        // What is not there need not go.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder)
            .map_err(Failure::io(format!("cannot make {}", folder.display())))?;
        let setup = Setup {
            plan: self.bench.plan,
            cell: self.cell,
            way: *way,
            folder,
            open_files: self.bench.open_files,
            patience: self.bench.patience,
        };
        lane.running = Some(Running::start(&setup, self.served.data)?);
        Ok(())
    }

    /// Nothing was measured yet, and nothing is going to be.
    fn needs_every_server(&self) -> bool {
        self.is_first
    }

    /// Connects, compares bytes, warms what a new cell has to find warm.
    fn connect(&self, lane: &mut Lane) -> Result<Client, Failure> {
        let running = lane.running.as_mut().ok_or_else(gone)?;
        running.find_clocks()?;
        let mut client = Client::connect(running, self.cell, self.bench.patience.stop)?;
        // storaged verifies an object when it reads it first: no sample is to hold that.
        let objects = self.cell.objects().max(u64::from(self.cell.connections));
        client.check(objects, BodyReader::comparing(self.bench.spoil))?;
        Ok(client)
    }

    fn blame(&self, lane: &mut Lane, failure: Failure) -> Failure {
        match &mut lane.running {
            Some(running) => running.blame(failure),
            None => failure,
        }
    }

    fn end(&self, lane: &mut Lane) {
        lane.running = None;
    }

    /// The load, the kernel's counters held against the mode, one object compared.
    fn sample(&mut self, lane: &mut Lane, client: &mut Client, at: At) -> Result<Taken, Failure> {
        let plan = self.bench.plan;
        let running = lane.running.as_ref().ok_or_else(gone)?;
        let proof = Proof::begin(None)?;
        let window = self.load(client, running, at)?;
        // What was given up cannot be held against the counters.
        let counters = match window.is_whole() {
            true => running.check_proof(&proof, window.all_bytes)?,
            false => BTreeMap::new(),
        };
        client.check(1, BodyReader::comparing(false))?;
        if plan.ways.first() == Some(&lane.way) {
            let bodies = window.bytes as f64 / self.cell.object_bytes as f64;
            self.rates.push((bodies * 1e12 / window.elapsed_ns as f64) as u64);
        }
        let name = plan.name(lane.way);
        let sample = window_sample(at, name, PROCESSES, window, "latency_ns", counters);
        Ok(Taken { sample, wants_new_connections: false })
    }
}

fn gone() -> Failure {
    Failure::Answer("its daemons are gone".to_owned())
}
