//! `ntcopy advise --pid`: how much a running program has in flight, and what a hint would do for it.

mod found;
mod json;
mod sends;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy::socket::{Support, kernel_support};
use ntcopy_bench::run::Stop;
use ntcopy_inflight::follow::{Beyond, Buffers, Family, Sum};
use ntcopy_inflight::share::{Sampling, Share};
use ntcopy_inflight::watch::Seen;
use ntcopy_inflight::{Percentiles, Pid, Program, Series, Watch};
use ntcopy_judge::Judged;
use ntcopy_judge::advice::{self, Advice, InFlight, Taker};
use ntcopy_record::foreign;
use serde::Serialize;

use super::ceiling::{self, Chain};
use super::here;
use crate::cmd::{not_available, sources};
use crate::say;
use found::Found;
use sends::{Evidence, Looking, Sends};

/// A reader of less than this part of what is in flight is nobody to speak of.
const MUCH: u64 = 10;

/// What can be asked for with `--pid`, `--service` or `--all`.
#[derive(clap::Args)]
pub struct Options {
    /// How much this running process and its children have in flight, and what hints would do;
    /// several --pid are one program
    #[arg(long, value_name = "PID", group = "running", value_parser = pid)]
    pid: Vec<Pid>,
    /// The same for the processes of a systemd service
    #[arg(long, value_name = "NAME", group = "running")]
    service: Option<String>,
    /// The same for every process that may be looked at
    #[arg(long, group = "running")]
    all: bool,
    /// How long to look
    #[arg(long, value_name = "N", default_value = "10", requires = "running",
          value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,
    /// Look again and again, a line each time, until Ctrl-C
    #[arg(long, requires = "running")]
    watch: bool,
    /// Measure, on this kernel, what a chain gains at most if copies cost nothing
    #[arg(long, conflicts_with_all = ["watch", "other"])]
    pub ceiling: bool,
}

fn pid(text: &str) -> Result<Pid, String> {
    text.parse().map_err(|_| {
        "a PID is a process's number, as `pidof PROGRAM` prints it: ntcopy advise --pid 4711"
            .to_owned()
    })
}

impl Options {
    pub fn is_wanted(&self) -> bool {
        !self.pid.is_empty() || self.service.is_some() || self.all
    }
}

/// Looks, and says what the records of this machine say of that.
pub fn run(options: &Options, places: &[PathBuf], is_json: bool) -> anyhow::Result<ExitCode> {
    let found = found::find(options).map_err(not_available)?;
    let target = here::this();
    let (records, _) = sources::counted(sources::read(places)?, &target.machine);
    let stop = Stop::on_signals().context("cannot take over Ctrl-C")?;
    let Found { diagnostics, programs, notes } = found;
    let mut watch = Watch::new(diagnostics, programs).context("the kernel's socket diagnostics")?;
    let lasting = Duration::from_secs(options.seconds.into());
    let is_over = || stop.signal().is_some();
    let mut is_anything_said = false;
    loop {
        // Nobody asks how long the sends of all processes together are.
        let pids = if options.all { Vec::new() } else { pids(&watch.programs) };
        let looking = (!pids.is_empty()).then(|| (Looking::start(&pids), Sampling::start(&pids)));
        let seen = watch.look(lasting, &is_over).context("the kernel's socket diagnostics")?;
        let heard =
            looking.map(|(looking, sampling)| (looking.finish(), sampling.map(Sampling::finish)));
        let mut all = findings(&watch.programs, &seen, &records);
        if let (Some(finding), Some((evidence, share))) = (all.first_mut(), heard) {
            finding.hear(evidence);
            finding.share = Some(share);
        }
        if all.is_empty() {
            return if is_anything_said {
                Ok(ExitCode::SUCCESS)
            } else {
                Err(not_available("it ended before anything was seen"))
            };
        }
        if options.ceiling {
            return with_ceiling(&all, &seen, &notes, is_json, &stop);
        }
        match (is_json, options.watch) {
            (true, false) => say::object(&json::object(&all, &seen, &notes))?,
            (true, true) => {
                println!("{}", serde_json::to_string(&json::object(&all, &seen, &notes))?);
            }
            (false, true) => all.iter().for_each(|finding| print!("{}", text::line(finding))),
            (false, false) => print!("{}", text::report(&all, &seen, &notes)),
        }
        is_anything_said = true;
        if !options.watch || is_over() || seen.series.iter().all(|one| one.ended_after.is_some()) {
            return Ok(ExitCode::SUCCESS);
        }
    }
}

fn pids(programs: &[Program]) -> Vec<Pid> {
    let processes = programs.iter().flat_map(|program| &program.processes);
    processes.map(|process| process.pid).collect()
}

/// What was seen, and what a chain with as much in flight gains at most.
fn with_ceiling(
    all: &[Finding<'_>],
    seen: &Seen,
    notes: &[String],
    is_json: bool,
    stop: &Stop,
) -> anyhow::Result<ExitCode> {
    if !is_json {
        print!("{}", text::report(all, seen, notes));
    }
    let most = all.first().map(|finding| most(finding.series));
    let chain = most.and_then(|most| Chain::like(most.family.as_str(), most.bytes, most.sockets));
    let Some(chain) = chain else {
        return Err(not_available(
            "there is no ceiling to measure: nothing is in flight on unix or TCP sockets",
        ));
    };
    let found = ceiling::measure(&chain, stop)?;
    if is_json {
        let mut object = json::object(all, seen, notes);
        object.ceiling = Some(found);
        say::object(&object)?;
    } else {
        print!("\n{}", ceiling::sentences(&found));
    }
    Ok(ExitCode::SUCCESS)
}

/// A program, what was seen of it, and what the records say of as much.
struct Finding<'s> {
    program: &'s Program,
    series: &'s Series,
    in_flight: Percentiles,
    /// Whether it sent nothing while it was looked at.
    is_idle: bool,
    /// What the records say; nothing of an idle program, or where its sends have the answer.
    advice: Option<Advice>,
    /// What part of its CPU time is their copy, or why that is not seen; where it was looked at.
    share: Option<Result<Share, String>>,
    /// How long its sends are, where that was looked at and it sent any.
    sends: Option<Sends>,
}

impl Finding<'_> {
    /// Whether bytes may be in flight that nobody can see.
    fn is_at_least(&self) -> bool {
        let samples = &self.series.samples;
        samples.iter().any(|sum| !sum.beyond.is_empty() || sum.unseen_readers > 0)
    }

    /// The length of its sends has the answer, and what is in flight says how much there is to be
    /// had: it contradicts nothing.
    fn hear(&mut self, evidence: Evidence) {
        if self.is_idle {
            return;
        }
        let advised_bytes = self.advice.as_ref().and_then(|advice| advice.from_bytes);
        let sends = Sends::new(evidence, advised_bytes);
        if sends.is_large() == Some(false) || self.in_flight.p50 == 0 {
            self.advice = None;
        }
        self.sends = Some(sends);
    }

    /// Why there is no advice: what is measured without load says nothing of the load.
    fn idle(&self) -> Option<&'static str> {
        let is_connected = self.series.samples.iter().any(|sum| sum.sockets > 0);
        match (self.is_idle, is_connected) {
            (false, _) => None,
            (true, true) => Some(
                "Nothing of it was in flight: it is idle, or what it sends is read at once. Ask \
                 again under load.",
            ),
            (true, false) => Some("Nothing is connected to it: ask again under load."),
        }
    }

    /// The send buffers of the sockets by which most is in flight.
    fn buffers(&self) -> Option<Full> {
        let family = most(self.series).family;
        let of = |sum: &Sum| sum.buffers[family as usize];
        let samples = &self.series.samples;
        let largest = samples.iter().map(of).max_by_key(|buffers| buffers.bytes)?;
        let full = Percentiles::of(samples.iter().map(|sum| of(sum).full as u64))?;
        (largest.sockets > 0).then_some(Full { family, largest, full })
    }
}

/// Send buffers, and how many of them are full.
struct Full {
    family: Family,
    /// When they were most.
    largest: Buffers,
    full: Percentiles,
}

impl Full {
    /// Whether most of them are full, most of the time.
    fn is_usual(&self) -> bool {
        self.full.p50 * 2 > self.largest.sockets as u64
    }
}

/// Those of which anything was seen, what has most in flight first.
fn findings<'s>(programs: &'s [Program], seen: &'s Seen, records: &[Judged]) -> Vec<Finding<'s>> {
    let records: Vec<&Judged> = records.iter().collect();
    let one = |(program, series): (&'s Program, &'s Series)| {
        let in_flight = Percentiles::of(series.samples.iter().map(|sum| sum.bytes()))?;
        let is_idle = in_flight.max == 0 && series.tcp_sent_bytes == 0;
        let advice = (!is_idle).then(|| advice::for_program(&records, most(series).seen()));
        Some(Finding { program, series, in_flight, advice, sends: None, share: None, is_idle })
    };
    let mut all: Vec<Finding<'_>> = programs.iter().zip(&seen.series).filter_map(one).collect();
    all.sort_by_key(|finding| std::cmp::Reverse(finding.in_flight.p50));
    all
}

/// The family by which most is in flight, with medians.
struct Most {
    family: Family,
    bytes: u64,
    sockets: u64,
}

impl Most {
    fn seen(&self) -> InFlight<'static> {
        let taker = match kernel_support() {
            Support::Module => Taker::Module,
            Support::Kernel | Support::None => Taker::Kernel,
        };
        InFlight { family: self.family.as_str(), bytes: self.bytes, sockets: self.sockets, taker }
    }
}

/// A median of each family: they need not add up to that of all.
fn most(series: &Series) -> Most {
    let of = |family: Family| {
        let bytes = Percentiles::of(series.samples.iter().map(|sum| sum.of(family)));
        let with_bytes = series.samples.iter().map(|sum| sum.parts[family as usize].sockets);
        let sockets = Percentiles::of(with_bytes.map(|count| count as u64));
        let [bytes, sockets] = [bytes, sockets].map(|found| found.map_or(0, |found| found.p50));
        Most { family, bytes, sockets }
    };
    // The first of those that are equal: unix.
    Family::ALL
        .into_iter()
        .rev()
        .map(of)
        .max_by_key(|one| one.bytes)
        .unwrap_or_else(|| of(Family::Unix))
}

/// A process that reads from the program, and what of the program's is with it.
#[derive(Serialize)]
struct Reader {
    pid: Pid,
    name: String,
    /// Those of which it has both ends.
    pipes: usize,
    bytes: Percentiles,
}

/// Those that may splice on what they read.
fn readers(finding: &Finding<'_>) -> Vec<Reader> {
    of_samples(finding, |sum| {
        let one = |one: &Beyond| (one.pid, one.name.clone(), one.pipes, one.bytes);
        sum.beyond.iter().map(one).collect()
    })
}

/// Those that cannot, and so touch the bytes; whoever has next to nothing of them is left out.
fn touchers(finding: &Finding<'_>) -> Vec<Reader> {
    let all = of_samples(finding, |sum| {
        sum.touchers.iter().map(|one| (one.pid, one.name.clone(), 0, one.bytes)).collect()
    });
    let is_much = |reader: &Reader| reader.bytes.p50 * MUCH > finding.in_flight.p50;
    all.into_iter().filter(is_much).collect()
}

/// A process, its name, its pipes, and the bytes that are with it.
type Sampled = (Pid, String, usize, u64);

/// Readers of any sample; where one was not there yet, it had nothing.
fn of_samples(finding: &Finding<'_>, of: impl Fn(&Sum) -> Vec<Sampled>) -> Vec<Reader> {
    let samples: Vec<Vec<Sampled>> = finding.series.samples.iter().map(of).collect();
    let mut readers: Vec<Reader> = Vec::new();
    for (pid, name, pipes, _) in samples.iter().rev().flatten() {
        if readers.iter().any(|reader| reader.pid == *pid) {
            continue;
        }
        let its = |sample: &Vec<Sampled>| {
            sample.iter().filter(|one| one.0 == *pid).map(|one| one.3).sum()
        };
        if let Some(bytes) = Percentiles::of(samples.iter().map(its)) {
            let name = foreign::visible(name).into_owned();
            readers.push(Reader { pid: *pid, name, pipes: *pipes, bytes });
        }
    }
    readers.sort_by_key(|reader| std::cmp::Reverse(reader.bytes.p50));
    readers
}
