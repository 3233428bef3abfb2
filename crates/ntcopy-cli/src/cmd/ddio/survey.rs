//! What there is on this machine, before anything is changed.

use super::Refusal;
use super::cpu::{Cpu, Layout};
use super::msr::{self, Package};
use super::ports::{self, Port, Switch};
use super::root::Root;

/// The findings.
pub struct Survey {
    pub cpu: Cpu,
    /// What each package's register holds, or why it could not be read.
    pub packages: Vec<(Package, Result<u64, String>)>,
    /// Ways of the last-level cache.
    pub llc_ways: Option<u32>,
    /// Its size.
    pub llc_bytes: Option<u64>,
    pub ports: Vec<Port>,
}

impl Survey {
    /// Looks. Registers whose meaning is not known, and those of a guest, are not even read.
    pub fn take(root: &Root) -> Result<Survey, Refusal> {
        let Some(cpu) = Cpu::read(root) else {
            let path = root.at("/proc/cpuinfo");
            let why = format!("cannot read {}: which CPU is it?", path.display());
            return Err(Refusal::Failed(why));
        };
        let (mut packages, mut ports) = (Vec::new(), Vec::new());
        if let Some(layout) = cpu.layout().filter(|_| !cpu.guest) {
            let all = msr::packages(root).into_iter();
            packages = all.map(|package| (package, msr::read(root, package.cpu))).collect();
            ports = ports::find(root, layout);
        }
        let llc =
            |name: &str| root.text(&format!("/sys/devices/system/cpu/cpu0/cache/index3/{name}"));
        Ok(Survey {
            cpu,
            packages,
            llc_ways: llc("ways_of_associativity")
                .and_then(|text| text.parse().ok())
                .filter(|ways| (1..=32).contains(ways)),
            llc_bytes: llc("size")
                .and_then(|text| text.strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024)),
            ports,
        })
    }

    /// Whether any register could be read.
    pub fn tells_something(&self) -> bool {
        let told = |port: &Port| !matches!(port.switch, Switch::Unreadable(_));
        self.packages.iter().any(|(_, value)| value.is_ok()) || self.ports.iter().any(told)
    }

    /// What is known of the registers, if they may be written.
    pub fn writable(&self) -> Result<&'static Layout, Refusal> {
        match self.refusal() {
            Some(why) => Err(Refusal::Unavailable(why)),
            None => self.cpu.layout().ok_or_else(|| Refusal::Unavailable(self.unknown())),
        }
    }

    /// Why nothing may be written here, if so.
    pub fn refusal(&self) -> Option<String> {
        let cpu = &self.cpu;
        if let Some(instead) = cpu.instead() {
            return Some(instead.to_owned());
        }
        if cpu.guest {
            return Some(
                "this is a guest of a hypervisor: these registers are the host's, and only there \
                 can they be read and set"
                    .to_owned(),
            );
        }
        cpu.layout().is_none().then(|| self.unknown())
    }

    fn unknown(&self) -> String {
        let Cpu { vendor, family, model, stepping, .. } = &self.cpu;
        format!(
            "{} ({vendor} family {family} model {model} stepping {stepping}) is not among the \
             CPUs whose DDIO registers are known here (Skylake-SP, Cascade Lake-SP and Ice \
             Lake-SP): nothing is read or written. The firmware's setup may have a switch",
            self.cpu.name
        )
    }
}
