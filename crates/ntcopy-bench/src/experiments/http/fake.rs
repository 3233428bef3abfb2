//! Daemons that are no processes.
#![allow(dead_code, clippy::missing_errors_doc, clippy::must_use_candidate)]

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::plan::{HotSetPlan, HttpCell, HttpPlan};
use super::{HttpMode, Scheme, Stack, Way};
pub use crate::run::meter::Events;
use crate::run::schedule::Answers;
pub use crate::run::schedule::Schedule;
use crate::run::script::{call, note};
use crate::run::{Failure, Stop, load, meter};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuNs {
    pub client: u64,
    pub proxy: u64,
    pub backend: u64,
}

pub type Meter<'a> = meter::Meter<'a, CpuNs>;
pub type Window = load::Window<CpuNs>;

pub struct Certificate;

impl Certificate {
    pub fn make(_folder: &Path) -> Result<Certificate, Failure> {
        call(format_args!("certificate"))?;
        Ok(Certificate)
    }
}

pub struct BodyReader(bool);

impl BodyReader {
    pub fn comparing(spoil: bool) -> BodyReader {
        BodyReader(spoil)
    }
}

pub struct Scratch(tempfile::TempDir);

impl Scratch {
    pub fn new(data_bytes: u64) -> Result<Scratch, Failure> {
        call(format_args!("scratch of {data_bytes}"))?;
        tempfile::tempdir().map(Scratch).map_err(Failure::io("no folder"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

pub struct Data;

impl Data {
    pub fn make(
        cell: &HttpCell,
        _scratch: &Scratch,
        stacks: &[Stack],
        _: (Duration, &Stop),
    ) -> Result<Data, Failure> {
        call(format_args!("data of {} for {stacks:?}", cell.object_bytes))?;
        Ok(Data)
    }
}

pub struct Links;

impl Links {
    pub fn make(_plan: &HttpPlan, ways: &[Way]) -> Result<Option<Links>, Failure> {
        call(format_args!("links for {}", ways.len()))?;
        Ok(Some(Links))
    }

    pub fn of(&self, number: u8) -> Link<'_> {
        Link { _links: self, number }
    }
}

#[derive(Clone, Copy)]
pub struct Link<'a> {
    _links: &'a Links,
    number: u8,
}

impl Link<'_> {
    pub fn is_as(self, mode: HttpMode) -> Result<(), Failure> {
        call(format_args!("link {} is as {mode}", self.number)).map(drop)
    }
}

pub struct Victim;
pub struct Walking<'a>(&'a Victim);

impl Walking<'_> {
    pub fn read(&self, cpu: CpuNs) -> CpuNs {
        cpu
    }
}

impl Victim {
    pub fn new(plan: &HotSetPlan) -> Result<Victim, Failure> {
        call(format_args!("victim of {}", plan.bytes))?;
        Ok(Victim)
    }

    pub fn beside<T>(
        &self,
        what: impl FnOnce(&Walking<'_>) -> Result<T, Failure>,
    ) -> Result<(T, Vec<u64>), Failure> {
        call(format_args!("walk beside"))?;
        Ok((what(&Walking(self))?, vec![9, 8]))
    }

    pub fn alone(&self, w: Duration, c: Duration, _: &Stop) -> Result<(u64, Vec<u64>), Failure> {
        call(format_args!("walk alone {w:?} {c:?}"))?;
        Ok((1_000_000, vec![7, 6]))
    }
}

pub struct Setup<'a> {
    pub plan: &'a HttpPlan,
    pub cell: &'a HttpCell,
    pub way: Way,
    pub folder: &'a Path,
    pub certificate: Option<&'a Certificate>,
    pub open_files: u64,
    pub patience: Duration,
    pub link: Option<Link<'a>>,
}

pub struct Running {
    name: String,
}

impl Running {
    pub fn start(setup: &Setup<'_>, _data: &Data, _stop: &Stop) -> Result<Running, Failure> {
        let name = setup.plan.name(setup.way);
        let (tls, link) = (setup.certificate.is_some(), setup.link.map(|link| link.number));
        call(format_args!("start {name}, files {}, TLS {tls}, {link:?}", setup.open_files))?;
        Ok(Running { name })
    }

    pub fn find_clocks(&mut self) -> Result<(), Failure> {
        call(format_args!("{}: clocks", self.name)).map(drop)
    }

    pub fn cpu(&self) -> Result<CpuNs, Failure> {
        Ok(CpuNs::default())
    }

    pub fn blame(&mut self, failure: Failure) -> Failure {
        note(format_args!("{}: blame", self.name));
        failure
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        note(format_args!("{}: ended", self.name));
    }
}

pub struct Client {
    name: String,
}

impl Client {
    pub fn connect(running: &Running, cell: &HttpCell, _stop: &Stop) -> Result<Client, Failure> {
        call(format_args!("{}: connect x {}", running.name, cell.connections))?;
        Ok(Client { name: running.name.clone() })
    }

    pub fn check(&mut self, objects: u64, look: BodyReader) -> Result<u64, Failure> {
        call(format_args!("{}: check {objects}, spoil {}", self.name, look.0))?;
        Ok(objects)
    }

    pub fn closed(&mut self, w: Duration, c: Duration, _: Meter<'_>) -> Result<Window, Failure> {
        let late = call(format_args!("{}: closed {w:?} {c:?}", self.name))?;
        Ok(window(late, &self.name, 50, false))
    }

    pub fn open(&mut self, schedule: &Schedule, _: Meter<'_>) -> Result<Window, Failure> {
        let schedule = crate::run::script::due(schedule);
        let late = call(format_args!("{}: open {schedule}", self.name))?;
        Ok(window(late, &self.name, 60, true))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        note(format_args!("{}: disconnected", self.name));
    }
}

fn window(late: bool, name: &str, answered: u64, is_open: bool) -> Window {
    let latencies = vec![(5, 6), (7, 8)];
    let answers = Answers { latencies, unanswered: u64::from(late) };
    Window {
        bytes: answered << 20,
        elapsed_ns: 1_000_000_000 + name.len() as u64,
        cpu: CpuNs { client: 3, proxy: 4, backend: 5 },
        events: [("cycles".to_owned(), 7)].into(),
        answered,
        all_bytes: answered << 21,
        answers: (is_open || late).then_some(answers),
    }
}

pub struct Proof;

impl Proof {
    pub fn begin(running: &Running, scheme: Scheme) -> Result<Proof, Failure> {
        call(format_args!("{}: begin proof, {scheme}", running.name))?;
        Ok(Proof)
    }

    pub fn check(&self, running: &Running, bytes: u64) -> Result<BTreeMap<String, u64>, Failure> {
        call(format_args!("{}: proof of {bytes}", running.name))?;
        let is_counted = running.name.contains("nt");
        Ok(if is_counted { [("nontemporal".to_owned(), bytes)].into() } else { [].into() })
    }
}

pub fn allow_files(plan: &HttpPlan) -> Result<u64, Failure> {
    call(format_args!("files for {}", plan.ways.len()))?;
    Ok(1024)
}

pub fn place_client(_plan: &HttpPlan) -> Result<(), Failure> {
    call(format_args!("place the client")).map(drop)
}

pub fn unavailable(way: Way, scheme: Scheme) -> Result<Option<String>, Failure> {
    call(format_args!("is {} through {scheme} here", way.mode))?;
    Ok((way.mode == HttpMode::Sendfile).then(|| "not on this fake".to_owned()))
}
