//! `ntcopy probe`: looks, then prints. Nothing here needs root or changes anything.

mod text;

use std::fs;
use std::process::ExitCode;

use ntcopy::cpu::Cpu;
use ntcopy::socket::{self, Support};
use ntcopy_bench::c_library::Libc;
use ntcopy_bench::{cpu, machine};
use ntcopy_record::units::about_size;
use ntcopy_record::{HardwareCounter, Machine};
use serde::Serialize;

use crate::say;

#[derive(clap::Args)]
#[command(
    about = "Say what this machine, kernel and libc offer",
    long_about = "Say what this machine, kernel and libc offer: the CPU and its caches, its \
                  non-temporal instructions, when the C library uses them, whether the kernel \
                  knows MSG_NTCOPY, and which hardware counters exist. Needs no root and changes \
                  nothing.",
    after_help = "Examples:\n  ntcopy probe\n  ntcopy probe --json | jq .kernel.msg_ntcopy\n  \
                  ntcopy kernel boot -- ntcopy probe"
)]
pub struct Args {
    /// Print one JSON object instead: the machine as records have it, the kernel, warnings
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let findings = Findings::gather();
    match args.json {
        true => say::object(&findings.object())?,
        false => print!("{}", text::render(&findings)),
    }
    Ok(ExitCode::SUCCESS)
}

/// Everything that was found.
pub struct Findings {
    pub cpu: Cpu,
    pub cpus_usable: usize,
    pub libc: Libc,
    pub kernel: KernelFound,
    pub counters: Vec<HardwareCounter>,
    /// What the user should know before trusting a figure from here.
    pub warnings: Vec<Warning>,
}

#[derive(Serialize)]
pub struct KernelFound {
    pub release: String,
    pub version: String,
    pub machine: String,
    /// Whether this is itself a user-mode kernel.
    pub user_mode: bool,
    pub msg_ntcopy: bool,
    pub support: &'static str,
    /// Why the kernel could not be asked, if so.
    pub probe_error: Option<String>,
    pub sysctl_ntcopy: Option<u8>,
}

#[derive(Serialize)]
pub struct Warning {
    pub what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What `--json` prints: the machine as records have it, and what they have not.
#[derive(Serialize)]
struct Object<'a> {
    machine: Machine,
    kernel: &'a KernelFound,
    warnings: &'a [Warning],
}

impl Findings {
    fn gather() -> Findings {
        let (cpu, libc) = (cpu::detect(), Libc::detect());
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        Findings {
            warnings: warnings(&cpu, &libc, &cpuinfo),
            cpus_usable: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: kernel(&cpuinfo),
            counters: ntcopy_bench::hardware::offered(),
            cpu,
            libc,
        }
    }

    fn object(&self) -> Object<'_> {
        let Findings { kernel, warnings, .. } = self;
        Object { machine: machine::describe(), kernel, warnings }
    }
}

/// What an event counts, or why it does not.
pub fn meaning(counter: &HardwareCounter) -> String {
    match &counter.missing {
        None => format!("counts: {}", counter.source),
        Some(why) => format!("n/a ({why})"),
    }
}

fn kernel(cpuinfo: &str) -> KernelFound {
    let uname = rustix::system::uname();
    let mut probe_error = None;
    let support = socket::probe().unwrap_or_else(|errno| {
        probe_error = Some(match socket::other_series() {
            Some(other) => other.to_string(),
            None => format!("the kernel could not be asked: {errno}"),
        });
        Support::None
    });
    KernelFound {
        release: uname.release().to_string_lossy().into_owned(),
        version: uname.version().to_string_lossy().into_owned(),
        machine: uname.machine().to_string_lossy().into_owned(),
        user_mode: cpuinfo.contains("User Mode Linux"),
        msg_ntcopy: support != Support::None,
        support: support.name(),
        probe_error,
        sysctl_ntcopy: socket::sysctl(),
    }
}

/// Caches of which nothing tells, as where a hypervisor hides them, and who guesses then.
fn unknown_caches(cpu: &Cpu, libc: &Libc) -> Option<Warning> {
    let is_known =
        |level: &u8| cpu.caches.iter().chain(&cpu.sysfs_caches).any(|cache| cache.level == *level);
    let unknown: Vec<u8> = [1, 2, 3].into_iter().filter(|level| !is_known(level)).collect();
    let levels: Vec<String> = unknown.iter().map(|level| format!("level-{level}")).collect();
    let threshold = libc.memcpy_nt_threshold_bytes.filter(|_| !libc.memcpy_threshold_chosen);
    let guess = match threshold.filter(|_| unknown.contains(&3)) {
        Some(bytes) => format!(
            "{}'s memcpy goes non-temporal from {} on without knowing it, far too soon if there is \
             one; `ntcopy bench memcpy` says from where on that pays here",
            libc.name,
            about_size(bytes)
        ),
        None => "what goes by its size is a guess; `ntcopy bench memcpy` measures".to_owned(),
    };
    let what = format!(
        "no {} cache is known: neither CPUID nor sysfs tells; {guess}",
        levels.join(" and no ")
    );
    (!unknown.is_empty()).then_some(Warning { what, fix: None })
}

/// AMX that a hypervisor hides: no CPU of Intel's has AVX512-FP16 without it.
fn hidden_amx(cpuinfo: &str) -> Option<Warning> {
    let flags = cpuinfo.lines().find_map(|line| line.strip_prefix("flags"))?;
    let has = |flag| flags.split_whitespace().any(|word| word == flag);
    let is_hidden = cpuinfo.contains("GenuineIntel") && has("avx512_fp16") && !has("amx_tile");
    let what = "the hypervisor hides AMX, by which a kernel with the patches knows that this CPU \
                copies several pages in turn faster: it copies line after line here, and hinted \
                sends gain less, or nothing";
    is_hidden.then(|| Warning { what: what.to_owned(), fix: None })
}

fn warnings(cpu: &Cpu, libc: &Libc, cpuinfo: &str) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(warning) = libc.warning(cpu) {
        warnings.push(Warning { what: warning.what, fix: warning.fix });
    }
    if let Some(what) = cpu.doubt() {
        warnings.push(Warning { what, fix: None });
    }
    warnings.extend(unknown_caches(cpu, libc));
    warnings.extend(hidden_amx(cpuinfo));
    let disagreements = cpu.disagreements();
    if !disagreements.is_empty() {
        let what = format!("CPUID and sysfs disagree: {}", disagreements.join("; "));
        warnings.push(Warning { what, fix: None });
    }
    if let Some(hypervisor) = &cpu.hypervisor {
        let what = if hypervisor.starts_with("TCG") {
            "this CPU is emulated: no time that is measured here means anything".to_owned()
        } else {
            format!(
                "this is a guest of {hypervisor}: neighbours may share the last-level cache and the \
                 memory's bandwidth, so repeat what you measure"
            )
        };
        warnings.push(Warning { what, fix: None });
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amx_that_is_hidden_is_told_from_none() {
        let of = |vendor: &str, flags: &str| {
            hidden_amx(&format!("vendor_id\t: {vendor}\nflags\t\t: fpu {flags}\n")).is_some()
        };
        assert!(of("GenuineIntel", "avx512_fp16 avx512f"));
        assert!(!of("GenuineIntel", "avx512_fp16 amx_tile"));
        assert!(!of("GenuineIntel", "avx512f"));
        assert!(!of("AuthenticAMD", "avx512_fp16"));
    }

    #[test]
    fn a_cache_that_nothing_tells_is_said_with_who_guesses() {
        let (mut cpu, mut libc) = (cpu::detect(), Libc::detect());
        libc.name = "glibc".into();
        (libc.memcpy_nt_threshold_bytes, libc.memcpy_threshold_chosen) = (Some(384 << 10), false);
        let mut without = |level: u8| {
            cpu.caches.retain(|cache| cache.level != level);
            cpu.sysfs_caches.retain(|cache| cache.level != level);
            unknown_caches(&cpu, &libc).map(|warning| warning.what).unwrap_or_default()
        };
        let what = without(3);
        assert!(what.starts_with("no level-3 cache is known"), "{what}");
        assert!(what.contains("glibc's memcpy goes non-temporal from 384 KiB on"), "{what}");
        let what = without(2);
        assert!(what.starts_with("no level-2 and no level-3 cache is known"), "{what}");
        let mut chosen = Libc::detect();
        chosen.memcpy_threshold_chosen = true;
        let what = unknown_caches(&cpu, &chosen).map(|warning| warning.what);
        assert!(what.is_some_and(|what| !what.contains("memcpy goes")), "a user's choice");
    }
}
