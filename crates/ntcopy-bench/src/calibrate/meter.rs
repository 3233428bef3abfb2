//! Taking the figures.

use std::collections::BTreeMap;
use std::time::Duration;

use ntcopy_judge::stats::{MIN_PAIRS, median};
use ntcopy_record::units::Bytes;

use crate::experiment::LINE_BYTES;
use crate::experiments::bulk::plan::{BulkCell, BulkPlan, Resources};
use crate::experiments::bulk::run::{Setup, Worker};
use crate::experiments::bulk::task::{Heat, Pages, ReadBack, Task, Way};
use crate::plan::group_order;
use crate::run::Failure;
use crate::sample::Progress;

const ROUNDS: u32 = MIN_PAIRS as u32;
/// What goes before a sample of a cold cell: more than any level 2, so that what the way before
/// left there is gone.
const COLD_WARM_UP_BYTES: u64 = 64 << 20;

pub struct Meter<'a> {
    worker: Worker,
    plan: BulkPlan,
    progress: &'a mut Progress,
    measured: BTreeMap<String, u64>,
}

impl<'a> Meter<'a> {
    pub fn start(
        resources: &Resources,
        region_bytes: u64,
        setup: &Setup<'_>,
        progress: &'a mut Progress,
    ) -> Result<Meter<'a>, Failure> {
        let name = "calibrate".into();
        let mut plan = BulkPlan::new(name, vec![Way::Libc], Pages::Huge, resources);
        (plan.pairs, plan.sample) = (ROUNDS, Duration::from_millis(8));
        plan.warm_up = Duration::from_millis(3);
        plan.cold_warm_up_bytes = COLD_WARM_UP_BYTES.min(region_bytes);
        // Sources may begin within a line.
        (plan.source_bytes, plan.destination_bytes) = (region_bytes + LINE_BYTES, region_bytes);
        plan.cpus.truncate(1);
        progress.at("filling the memory");
        let worker = Worker::start(setup, &plan)?;
        Ok(Meter { worker, plan, progress, measured: BTreeMap::new() })
    }

    /// Says how many comparisons are to come.
    pub fn expect(&mut self, comparisons: u64) {
        self.progress.begin(comparisons);
    }

    pub fn region_bytes(&self) -> u64 {
        self.plan.destination_bytes
    }

    /// The rates of each way, bytes per second, round by round. Every way's bytes are compared
    /// before.
    pub fn compare(
        &mut self,
        task: Task,
        size_bytes: u64,
        ways: &[Way],
    ) -> Result<Vec<Vec<f64>>, Failure> {
        let name = name(task);
        self.progress.at(&format!("{name}, {}", Bytes(size_bytes)));
        let cell = BulkCell::new(task, size_bytes, 1);
        self.worker.cell(&cell)?;
        ways.iter().try_for_each(|way| self.worker.verify(*way, false).map(drop))?;
        let mut rates = vec![Vec::new(); ways.len()];
        let order: Vec<usize> = (0..ways.len()).collect();
        for round in 0..ROUNDS {
            for at in group_order(&order, round) {
                let traffic = self.worker.sample(ways[at], &self.plan, &cell)?;
                rates[at].push(traffic.bytes as f64 * 1e9 / traffic.elapsed_ns as f64);
            }
        }
        for (way, rates) in ways.iter().zip(&rates) {
            let way = way.to_string().replace(['-', '+'], "_");
            let megabytes = (median(rates) / 1e6).round() as u64;
            self.measured
                .insert(format!("{name}_{:07}_kib_{way}_mb_per_s", size_bytes >> 10), megabytes);
        }
        self.progress.step();
        Ok(rates)
    }

    /// Every figure, megabytes (10^6) per second, by name. Sizes have leading zeros, so that they
    /// are in order.
    pub fn measured(self) -> BTreeMap<String, u64> {
        self.measured
    }
}

fn name(task: Task) -> &'static str {
    match task {
        Task::Copy { source: Heat::Cold, read_back: ReadBack::All, .. } => "copy_cold_hot_read",
        Task::Copy { read_back: ReadBack::All, .. } => "copy_hot_read",
        Task::Copy { source: Heat::Cold, destination: Heat::Hot, .. } => "copy_cold_hot",
        Task::Copy { destination: Heat::Hot, .. } => "copy_hot",
        Task::Copy { destination: Heat::Cold, .. } => "copy_cold",
        Task::Fill { value: 0, destination: Heat::Hot } => "zero_hot",
        Task::Fill { value: 0, destination: Heat::Cold } => "zero_cold",
        Task::Fill { destination: Heat::Hot, .. } => "fill_hot",
        Task::Fill { destination: Heat::Cold, .. } => "fill_cold",
        Task::Matrix(_) => "matrix",
        Task::Pages { .. } => "pages",
    }
}
