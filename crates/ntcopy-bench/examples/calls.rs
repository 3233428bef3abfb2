//! What every driver asks of its lanes, and what it writes, while each call in turn goes wrong in
//! each way: a file for each experiment, for `make same` to compare.
//!
//! usage: calls FOLDER

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ntcopy_bench::experiment::bulk::Heat;
use ntcopy_bench::experiment::{Family, NetMode};
use ntcopy_bench::experiments::retention::copies;
use ntcopy_bench::experiments::{
    http, memcpy, memset, net, order, pages, pingpong, retention, unix,
};
use ntcopy_bench::plan::Cpus;
use ntcopy_bench::plan::bulk::Room;
use ntcopy_bench::run::Stop;
use ntcopy_bench::run::script::{self, Kind, Script};
use ntcopy_bench::sample::{Experiment as _, MeasureError, Options, Outcome, Progress};
use ntcopy_record::Machine;

const PAIRS: Option<u32> = Some(5);
/// Some calls go wrong of a driver with more calls than this.
const MOST_CALLS: u64 = 60;
const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Measures something, writing to a folder.
type Measure<'a> = &'a dyn Fn(PathBuf, &Stop, bool) -> Result<Outcome, MeasureError>;

fn main() {
    let folder = PathBuf::from(std::env::args_os().nth(1).expect("calls FOLDER"));
    fs::create_dir_all(&folder).expect("a folder");
    sends(&folder);
    copies_and_fills(&folder);
    retention_of_copies(&folder);
    forks(&folder);
    messages(&folder);
    requests(&folder);
}

fn machine(kernel_kind: &str) -> Machine {
    let machine = ntcopy_record::testing::record(&["copy"], &[]).machine;
    Machine { kernel_kind: kernel_kind.to_owned(), ..machine }
}

fn cpus() -> Cpus {
    Cpus { allowed: vec![0, 1, 2, 3], sharing_l2: None }
}

fn room() -> Room {
    Room { cpus: vec![0, 1, 2, 3], available_bytes: 64 << 30, llc_bytes: 32 << 20 }
}

/// Runs it as it should go, with a fault, and with each call going wrong.
fn every_way(folder: &Path, name: &str, measure: Measure<'_>) {
    let mut text = String::new();
    let calls = once(&mut text, None, false, measure);
    once(&mut text, None, true, measure);
    let step = calls.div_ceil(MOST_CALLS).max(1);
    for at in (1..=calls).step_by(step as usize) {
        for kind in Kind::ALL {
            once(&mut text, Some(Script { at, kind }), false, measure);
        }
    }
    fs::write(folder.join(name), text).expect("a file");
}

/// Runs it once; gives the number of its calls.
fn once(text: &mut String, script: Option<Script>, spoil: bool, measure: Measure<'_>) -> u64 {
    let place = tempfile::Builder::new().tempdir_in("/dev/shm").expect("a folder in memory");
    let stop = Stop::default();
    script::begin(script, &stop);
    let ended = match measure(place.path().join("record"), &stop, spoil) {
        Ok(outcome) => format!("done, stopped by {:?}", outcome.stopped),
        Err(error) => format!("not done: {error}"),
    };
    let (log, calls) = script::end();
    writeln!(text, "== {script:?}, spoil {spoil}\n{log}{ended}").expect("a string takes it all");
    calls
}

fn options(out: PathBuf, spoil: bool, not_a_timing: Option<&str>) -> Options {
    Options {
        out: Some(out),
        command: vec!["ntcopy".to_owned(), "bench".to_owned()],
        not_a_timing: not_a_timing.map(str::to_owned),
        worker_args: vec![],
        patience: Duration::from_secs(1),
        budget: None,
        spoil,
    }
}

fn bulk_options(out: PathBuf, spoil: bool) -> Options {
    options(out, spoil, Some("it is a fake"))
}

fn sends(folder: &Path) {
    let none = Progress::none;
    let settings = |families: &[Family]| unix::Settings {
        sockets: vec![1, 8],
        object_bytes: vec![MIB],
        dataset_bytes: vec![256 * MIB],
        families: families.to_vec(),
        pairs: PAIRS,
        ..unix::Settings::default()
    };
    let free = unix::Settings { published: true, pairs: PAIRS, ..unix::Settings::default() };
    let victim = retention::Settings { pairs: PAIRS, quick: true, ..Default::default() };
    for (name, plan) in [
        ("unix", unix::plan(&settings(&[Family::Unix]), &cpus())),
        ("unix-tcp6", unix::plan(&settings(&[Family::Tcp, Family::Tcp6]), &cpus())),
        ("unix-published", unix::plan(&free, &cpus())),
        ("retention", retention::plan_sends(&victim, &cpus())),
    ] {
        let plan = plan.expect("a plan");
        every_way(folder, name, &|out, stop, spoil| {
            plan.measure(machine("um"), &options(out, spoil, None), stop, &mut none())
        });
    }
}

fn copies_and_fills(folder: &Path) {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let copy = memcpy::Settings {
        peers: words(&["libc", "ours", "libc-tuned", "libpmem2", "avx2-nt"]),
        size_bytes: vec![4 * KIB],
        source: vec![Heat::Hot],
        destination: vec![Heat::Hot, Heat::Cold],
        threads: vec![1],
        pairs: PAIRS,
        quick: true,
        ..memcpy::Settings::default()
    };
    let fill = memset::Settings {
        peers: words(&["libc", "ours", "x86-64-stosb"]),
        size_bytes: vec![4 * KIB, MIB],
        pairs: PAIRS,
        quick: true,
        ..memset::Settings::default()
    };
    let matrix = order::Settings { pairs: PAIRS, quick: true, ..order::Settings::default() };
    let page = pages::Settings { pairs: PAIRS, quick: true, ..pages::Settings::default() };
    for (name, plan) in [
        ("memcpy", memcpy::plan(&copy, &room(), Some(8 * MIB))),
        ("memcpy-untuned", memcpy::plan(&copy, &room(), None)),
        ("memset", memset::plan(&fill, &room(), Some(8 * MIB))),
        ("order", order::plan(&matrix, &room())),
        ("pages", pages::plan(&page, &room())),
    ] {
        let plan = plan.unwrap_or_else(|error| panic!("{name}: {error}"));
        every_way(folder, name, &|out, stop, spoil| {
            let options = bulk_options(out, spoil);
            plan.measure(machine("host"), &options, stop, &mut Progress::none())
        });
    }
}

fn retention_of_copies(folder: &Path) {
    let settings = copies::Settings {
        hot_set_bytes: vec![512 * KIB, MIB],
        pairs: PAIRS,
        quick: true,
        ..copies::Settings::default()
    };
    let here = copies::plan::Here {
        allowed: vec![0, 1, 2, 3],
        victim_cpu: 0,
        sharing_llc: None,
        sharing_core: None,
        l2_bytes: MIB,
        llc_bytes: 32 * MIB,
    };
    let plan = copies::plan::plan(&settings, &here).expect("a plan");
    every_way(folder, "retention-copies", &|out, stop, spoil| {
        let options = options(out, spoil, None);
        let progress = &mut Progress::none();
        plan.measure(machine("host"), &options, stop, progress)
    });
}

fn forks(folder: &Path) {
    let settings = pages::fork::ForkSettings {
        buffer_bytes: vec![MIB],
        pairs: PAIRS,
        quick: true,
        ..pages::fork::ForkSettings::default()
    };
    let plan = pages::fork::plan(&settings, &room()).expect("a plan");
    for (name, kind) in [("fork", "um"), ("fork-host", "host")] {
        every_way(folder, name, &|out, stop, spoil| {
            let options = bulk_options(out, spoil);
            plan.measure(machine(kind), &options, stop, &mut Progress::none())
        });
    }
}

fn messages(folder: &Path) {
    let settings = net::Settings {
        families: vec![Family::Tcp, Family::Udp],
        connections: vec![4],
        request_bytes: vec![100],
        response_bytes: vec![KIB],
        modes: NetMode::ALL.to_vec(),
        veth: true,
        pairs: PAIRS,
        quick: true,
        ..net::Settings::default()
    };
    let plan = net::plan(&settings, &cpus()).expect("a plan");
    every_way(folder, "net", &|out, stop, spoil| {
        let options = bulk_options(out, spoil);
        plan.measure(machine("host"), &options, stop, &mut Progress::none())
    });
    let settings = pingpong::Settings {
        families: vec![Family::Tcp, Family::Udp],
        message_bytes: vec![100],
        pairs: PAIRS,
        quick: true,
        ..pingpong::Settings::default()
    };
    let plan = pingpong::plan(&settings, &cpus()).expect("a plan");
    every_way(folder, "pingpong", &|out, stop, spoil| {
        let options = bulk_options(out, spoil);
        plan.measure(machine("host"), &options, stop, &mut Progress::none())
    });
}

fn requests(folder: &Path) {
    let settings = http::Settings {
        object_bytes: vec![64 * KIB, MIB],
        connections: vec![4],
        dataset_bytes: vec![64 * MIB],
        modes: vec![http::HttpMode::Nt, http::HttpMode::Adaptive],
        pairs: PAIRS,
        quick: true,
        ..http::Settings::default()
    };
    let often = http::Settings {
        starts: Some(2),
        hot_set_bytes: Some(256 * KIB),
        scheme: Some(http::Scheme::Tls),
        stacks: vec![http::Stack::StoragedProxyd],
        modes: vec![http::HttpMode::Nt],
        ..settings.clone()
    };
    for (name, settings) in [("http", settings), ("http-hot-set", often)] {
        let plan = http::plan::plan(&settings, &cpus());
        let plan = plan.unwrap_or_else(|error| panic!("{name}: {error}"));
        every_way(folder, name, &|out, stop, spoil| {
            let options = bulk_options(out, spoil);
            plan.measure(machine("host"), &options, stop, &mut Progress::none())
        });
    }
}
