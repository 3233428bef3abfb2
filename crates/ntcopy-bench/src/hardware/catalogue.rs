//! Which counters this machine has, found once a process.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use ntcopy::cpu::Cpu;
use ntcopy_record::HardwareCounter;
use rustix::io::Errno;

use super::events::{self, Event};
use super::open::{Absent, Opened, Request};
use super::resctrl::{self, Monitor};

pub struct Catalogue {
    /// Events that count, and whether those of the kernel do as well.
    core: Vec<(Event, bool)>,
    monitor: Option<Monitor>,
    offers: Vec<HardwareCounter>,
}

/// What finding it depends on, so that recorded machines can stand in for this one.
pub struct Surroundings<'a> {
    pub root: &'a Path,
    /// CPUID vendor, family, model and stepping.
    pub signature: &'a str,
    pub guest: bool,
    /// Tries a core event; whether it moves is asked of the cycles only.
    pub attempt: &'a dyn Fn(&Request, bool) -> Result<(), Absent>,
}

impl Catalogue {
    pub fn get() -> &'static Catalogue {
        static FOUND: OnceLock<Catalogue> = OnceLock::new();
        FOUND.get_or_init(|| {
            let cpu = Cpu::detect();
            Catalogue::find(&Surroundings {
                root: Path::new("/"),
                signature: &cpu.signature(),
                guest: cpu.hypervisor.is_some(),
                attempt: &|request, moves| {
                    if moves { request.attempt_to_count() } else { request.attempt() }
                },
            })
        })
    }

    pub fn find(machine: &Surroundings<'_>) -> Catalogue {
        let mut found = Catalogue { core: Vec::new(), monitor: None, offers: Vec::new() };
        found.add_core(machine);
        found.add_bandwidth(machine);
        found
    }

    pub fn offers(&self) -> &[HardwareCounter] {
        &self.offers
    }

    pub fn open_core(&self, with_started: bool) -> Vec<(&'static str, Opened)> {
        let open = |(event, kernel): &(Event, bool)| {
            Some((event.name, Opened::new(&request(event, with_started, *kernel))?))
        };
        self.core.iter().filter_map(open).collect()
    }

    pub fn monitor(&self) -> Option<Monitor> {
        self.monitor.clone()
    }

    fn offer(&mut self, name: &str, source: &str, missing: Option<String>) {
        let (name, source) = (name.to_owned(), source.to_owned());
        self.offers.push(HardwareCounter { name, source, missing });
    }

    fn add_core(&mut self, machine: &Surroundings<'_>) {
        let known = events::known(machine.signature);
        // What keeps the cycles from being counted keeps everything.
        let mut none: Option<String> = None;
        for name in events::NAMES {
            let event = known.iter().find(|event| event.name == name);
            if let Some(why) = &none {
                let source = event.map_or("", |event| event.source);
                self.offer(name, source, Some(why.clone()));
                continue;
            }
            let Some(event) = event else {
                let why = "no event of this CPU's cores is known for it";
                self.offer(name, "", Some(why.to_owned()));
                continue;
            };
            match attempt(machine, event) {
                Ok(kernel) => {
                    let where_ = if kernel { "" } else { ", in user space only" };
                    self.offer(name, &format!("{}{where_}", event.source), None);
                    self.core.push((*event, kernel));
                }
                Err(outcome) => {
                    let why = why_not(machine, &outcome);
                    if name == events::NAMES[0] {
                        none = Some(why.clone());
                    }
                    self.offer(name, event.source, Some(why));
                }
            }
        }
    }

    fn add_bandwidth(&mut self, machine: &Surroundings<'_>) {
        let found = resctrl::find(machine.root);
        for name in [resctrl::TOTAL, resctrl::LOCAL] {
            let missing = match &found {
                Ok(monitor) if monitor.has(name) => None,
                Ok(_) => Some("resctrl of this CPU does not monitor it".to_owned()),
                Err(why) => Some(why.clone()),
            };
            self.offer(name, "resctrl, the default group", missing);
        }
        self.monitor = found.ok();
    }
}

fn request(event: &Event, with_started: bool, kernel: bool) -> Request {
    Request { kind: event.kind, config: event.config, with_started, kernel }
}

/// With the kernel's part if that is allowed, without it otherwise; gives which of the two.
fn attempt(machine: &Surroundings<'_>, event: &Event) -> Result<bool, Absent> {
    let moves = event.name == events::NAMES[0];
    let attempt = |kernel| (machine.attempt)(&request(event, true, kernel), moves);
    match attempt(true) {
        Ok(()) => Ok(true),
        Err(Absent::Refused(Errno::ACCESS | Errno::PERM)) => attempt(false).map(|()| false),
        Err(other) => Err(other),
    }
}

fn why_not(machine: &Surroundings<'_>, outcome: &Absent) -> String {
    let absent = Absent::Refused(Errno::NOENT).meaning();
    if outcome.meaning() != absent {
        return outcome.meaning();
    }
    let pmus = fs::read_dir(machine.root.join("sys/bus/event_source/devices"));
    let mut pmus = pmus.into_iter().flatten().flatten();
    match (pmus.any(|pmu| pmu.file_name().to_string_lossy().starts_with("cpu")), machine.guest) {
        (true, _) => absent,
        (false, true) => "no PMU in this guest".to_owned(),
        (false, false) => "no PMU that this kernel drives".to_owned(),
    }
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;
