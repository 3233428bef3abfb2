//! `ntcopy advise --pid`: how much a running program has in flight, and what a hint would do for it.

mod found;
mod json;
mod text;

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use ntcopy_bench::run::Stop;
use ntcopy_inflight::follow::{Family, Sum};
use ntcopy_inflight::watch::Seen;
use ntcopy_inflight::{Percentiles, Pid, Program, Series, Watch};
use ntcopy_record::advice::{self, Advice, InFlight};
use ntcopy_record::{Record, foreign};

use super::here;
use crate::cmd::{not_available, sources};
use found::Found;

/// The number of a process, from the command line.
pub fn pid(text: &str) -> Result<Pid, String> {
    text.parse().map_err(|_| {
        "a PID is a process's number, as `pidof PROGRAM` prints it: ntcopy advise --pid 4711"
            .to_owned()
    })
}

/// Looks, and says what the records of this machine say of that.
pub fn run(args: &super::Args) -> anyhow::Result<ExitCode> {
    let Found { diagnostics, program, notes } = found::find(&args.pid).map_err(not_available)?;
    let target = here::this();
    let (records, _) = sources::counted(sources::read(&args.records)?, &target.machine);
    let stop = Stop::on_signals().context("cannot take over Ctrl-C")?;
    let mut watch = Watch::new(diagnostics, program).context("the kernel's socket diagnostics")?;
    let lasting = Duration::from_secs(args.seconds.into());
    let is_over = || stop.signal().is_some();
    let seen = watch.look(lasting, &is_over).context("the kernel's socket diagnostics")?;
    let Some(told) = told(&watch.program, &seen, &records) else {
        return Err(not_available("every process of it ended before anything was seen"));
    };
    match args.json {
        true => println!("{:#}", json::object(&told, &seen, &notes)),
        false => print!("{}", text::whole(&told, &seen, &notes)),
    }
    Ok(ExitCode::SUCCESS)
}

/// A program, what was seen of it, and what the records say of as much.
struct Told<'s> {
    program: &'s Program,
    series: &'s Series,
    in_flight: Percentiles,
    advice: Advice,
}

impl Told<'_> {
    /// Whether bytes may be in flight that nobody can see.
    fn is_at_least(&self) -> bool {
        let samples = &self.series.samples;
        samples.iter().any(|sum| !sum.beyond.is_empty() || sum.unseen_readers > 0)
    }
}

/// None where nothing was seen of it.
fn told<'s>(program: &'s Program, seen: &'s Seen, records: &[Record]) -> Option<Told<'s>> {
    let (records, series): (Vec<&Record>, _) = (records.iter().collect(), &seen.series);
    let in_flight = Percentiles::of(series.samples.iter().map(Sum::bytes))?;
    let advice = advice::for_program(&records, most(series));
    Some(Told { program, series, in_flight, advice })
}

/// The family by which most is in flight. A median of each: they need not add up to that of all.
fn most(series: &Series) -> InFlight<'static> {
    let of = |family: Family| {
        let bytes = Percentiles::of(series.samples.iter().map(|sum| sum.of(family)));
        let with_bytes = series.samples.iter().map(|sum| sum.parts[family as usize].sockets);
        let sockets = Percentiles::of(with_bytes.map(|count| count as u64));
        let [bytes, sockets] = [bytes, sockets].map(|found| found.map_or(0, |found| found.p50));
        InFlight { family: family.as_str(), bytes, sockets }
    };
    // The first of those that are equal: unix.
    Family::ALL
        .into_iter()
        .rev()
        .map(of)
        .max_by_key(|one| one.bytes)
        .unwrap_or_else(|| of(Family::Unix))
}

/// A process that reads from the program and may splice on what it reads.
struct Reader {
    pid: Pid,
    name: String,
    pipes: usize,
    bytes: Percentiles,
}

/// Those of any sample; where one was not there yet, it had nothing.
fn readers(told: &Told<'_>) -> Vec<Reader> {
    let samples = &told.series.samples;
    let mut readers: Vec<Reader> = Vec::new();
    for beyond in samples.iter().rev().flat_map(|sum| &sum.beyond) {
        if readers.iter().any(|reader| reader.pid == beyond.pid) {
            continue;
        }
        let of = |sum: &Sum| {
            let its = sum.beyond.iter().filter(|one| one.pid == beyond.pid);
            its.map(|one| one.bytes).sum()
        };
        if let Some(bytes) = Percentiles::of(samples.iter().map(of)) {
            let name = foreign::visible(&beyond.name).into_owned();
            readers.push(Reader { pid: beyond.pid, name, pipes: beyond.pipes, bytes });
        }
    }
    readers.sort_by_key(|reader| std::cmp::Reverse(reader.bytes.p50));
    readers
}
