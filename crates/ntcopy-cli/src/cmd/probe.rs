//! `ntcopy probe`: looks, then prints. Nothing here needs root or changes anything.

mod text;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use ntcopy::cpu::{Cache, Cpu, FEATURES, Use};
use ntcopy::hardware;
use ntcopy::libc::Libc;
use ntcopy::socket::{self, Support};
use serde::Serialize;

/// Arguments.
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
    /// Print one JSON object instead; sizes are in bytes
    #[arg(long)]
    json: bool,
}

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    let findings = Findings::gather();
    let text = if args.json {
        let mut json = serde_json::to_string_pretty(&findings)?;
        json.push('\n');
        json
    } else {
        text::render(&findings)
    };
    print!("{text}");
    Ok(ExitCode::SUCCESS)
}

/// Everything that was found, in the shape in which `--json` prints it.
#[derive(Serialize)]
pub struct Findings {
    pub cpu: CpuFound,
    pub caches: CachesFound,
    pub instructions: Vec<Instruction>,
    pub libc: LibcFound,
    pub kernel: KernelFound,
    pub user_mode_kernel: UserModeKernel,
    pub counters: Vec<CounterFound>,
    pub resctrl: &'static str,
    pub guest: Option<Guest>,
    /// What the user should know before trusting a figure from here.
    pub warnings: Vec<Warning>,
}

#[derive(Serialize)]
pub struct CpuFound {
    pub model: String,
    pub signature: String,
    pub cpus_usable: usize,
}

#[derive(Serialize)]
pub struct CachesFound {
    pub llc_bytes: u64,
    pub cpuid: Vec<CacheFound>,
    pub sysfs: Vec<CacheFound>,
    /// The level-3 cache by the legacy leaf, which old C libraries read.
    pub legacy_l3_bytes: Option<u64>,
    pub disagreements: Vec<String>,
}

#[derive(Serialize)]
pub struct CacheFound {
    pub level: u8,
    pub kind: &'static str,
    pub size_bytes: u64,
    pub ways: u32,
    pub line_bytes: u32,
    pub shared_by_cpus: Option<u32>,
}

#[derive(Serialize)]
pub struct Instruction {
    pub feature: &'static str,
    pub instructions: &'static str,
    pub used_for: &'static str,
    pub available: bool,
}

#[derive(Serialize)]
pub struct LibcFound {
    pub name: String,
    pub version: String,
    pub memcpy_nt_threshold_bytes: Option<u64>,
    pub memset_nt_threshold_bytes: Option<u64>,
    pub thresholds_from: &'static str,
    pub l3_believed_bytes: Option<u64>,
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
    pub sysctl_ntcopy_cache_bytes: Option<u64>,
    /// What the kernel counted so far, if it counts.
    pub counted: Option<std::collections::BTreeMap<String, u64>>,
}

/// Whether `--kernel um` can run here.
#[derive(Serialize)]
pub struct UserModeKernel {
    pub x86_64: bool,
    pub seccomp_trap: bool,
    /// Free bytes where a user-mode kernel keeps its memory.
    pub dev_shm_free_bytes: Option<u64>,
}

#[derive(Serialize)]
pub struct CounterFound {
    pub name: String,
    pub available: bool,
    /// The CPU's or the kernel's name for what is counted.
    pub source: String,
    pub meaning: String,
}

#[derive(Serialize)]
pub struct Guest {
    pub signature: String,
    pub hypervisor: &'static str,
}

#[derive(Serialize)]
pub struct Warning {
    pub what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Findings {
    pub fn gather() -> Findings {
        let cpu = Cpu::detect();
        let libc = Libc::detect();
        let kernel = kernel();
        let guest = cpu.hypervisor.clone().map(|signature| {
            let hypervisor = hypervisor_name(&signature);
            Guest { signature, hypervisor }
        });
        let warnings = warnings(&cpu, &libc, guest.as_ref());
        Findings {
            cpu: CpuFound {
                model: cpu.model_name.clone(),
                signature: cpu.signature(),
                cpus_usable: std::thread::available_parallelism().map_or(1, usize::from),
            },
            caches: CachesFound {
                llc_bytes: cpu.llc_bytes(),
                cpuid: cpu.caches.iter().map(cache).collect(),
                sysfs: cpu.sysfs_caches.iter().map(cache).collect(),
                legacy_l3_bytes: cpu.legacy_l3.map(|l3| l3.size_bytes),
                disagreements: cpu.disagreements(),
            },
            instructions: instructions(&cpu),
            libc: LibcFound {
                name: libc.name,
                version: libc.version,
                memcpy_nt_threshold_bytes: libc.memcpy_nt_threshold_bytes,
                memset_nt_threshold_bytes: libc.memset_nt_threshold_bytes,
                thresholds_from: libc.source,
                l3_believed_bytes: libc.l3_believed_bytes,
            },
            kernel,
            user_mode_kernel: user_mode_kernel(),
            counters: counters(),
            resctrl: hardware::resctrl().meaning(),
            guest,
            warnings,
        }
    }
}

fn cache(cache: &Cache) -> CacheFound {
    CacheFound {
        level: cache.level,
        kind: cache.kind.name(),
        size_bytes: cache.size_bytes,
        ways: cache.ways,
        line_bytes: cache.line_bytes,
        shared_by_cpus: cache.shared_by_cpus,
    }
}

fn instructions(cpu: &Cpu) -> Vec<Instruction> {
    let found = FEATURES.iter().map(|feature| Instruction {
        feature: feature.name,
        instructions: feature.instructions,
        used_for: match feature.used_for {
            Use::NtStore => "non-temporal store",
            Use::NtLoad => "non-temporal load",
            Use::Line => "cache line control",
            Use::Rep => "temporal string copy",
        },
        available: cpu.has(feature.name),
    });
    found.collect()
}

fn counters() -> Vec<CounterFound> {
    let found = ntcopy_bench::hardware::offered().into_iter().map(|counter| CounterFound {
        available: counter.missing.is_none(),
        meaning: match &counter.missing {
            None => format!("counts: {}", counter.source),
            Some(why) => format!("n/a ({why})"),
        },
        name: counter.name,
        source: counter.source,
    });
    found.collect()
}

fn kernel() -> KernelFound {
    let uname = rustix::system::uname();
    let mut probe_error = None;
    let support = socket::probe().unwrap_or_else(|errno| {
        probe_error = Some(match socket::other_series() {
            Some(other) => other.to_string(),
            None => format!("the kernel could not be asked: {errno}"),
        });
        Support::None
    });
    let counted = socket::counters().unwrap_or_else(|error| {
        probe_error.get_or_insert(error.to_string());
        None
    });
    let sysctl = socket::sysctl();
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    KernelFound {
        release: uname.release().to_string_lossy().into_owned(),
        version: uname.version().to_string_lossy().into_owned(),
        machine: uname.machine().to_string_lossy().into_owned(),
        user_mode: cpuinfo.contains("User Mode Linux"),
        msg_ntcopy: support != Support::None,
        support: support.name(),
        probe_error,
        sysctl_ntcopy: sysctl.ntcopy,
        sysctl_ntcopy_cache_bytes: sysctl.cache_bytes,
        counted: counted.map(socket::Counters::into_map),
    }
}

fn user_mode_kernel() -> UserModeKernel {
    // Its system calls arrive through a seccomp filter that answers "trap".
    let actions = fs::read_to_string("/proc/sys/kernel/seccomp/actions_avail").unwrap_or_default();
    let room = rustix::fs::statvfs("/dev/shm").ok();
    UserModeKernel {
        x86_64: cfg!(target_arch = "x86_64"),
        seccomp_trap: actions.split_whitespace().any(|action| action == "trap"),
        dev_shm_free_bytes: room
            .filter(|_| Path::new("/dev/shm").is_dir())
            .map(|room| room.f_bavail * room.f_frsize),
    }
}

fn warnings(cpu: &Cpu, libc: &Libc, guest: Option<&Guest>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(warning) = libc.warning(cpu) {
        warnings.push(Warning { what: warning.what, fix: Some(warning.fix) });
    }
    let disagreements = cpu.disagreements();
    if !disagreements.is_empty() {
        let what = format!("CPUID and sysfs disagree: {}", disagreements.join("; "));
        warnings.push(Warning { what, fix: None });
    }
    if let Some(guest) = guest {
        let what = if guest.signature.starts_with("TCG") {
            "this CPU is emulated: no time that is measured here means anything".to_owned()
        } else {
            format!(
                "this is a guest of {}: neighbours may share the last-level cache and the \
                 memory's bandwidth, so repeat what you measure",
                guest.hypervisor
            )
        };
        warnings.push(Warning { what, fix: None });
    }
    warnings
}

/// Name of the hypervisor that has this signature, by the hypervisors' own documents and Linux's
/// detection code.
fn hypervisor_name(signature: &str) -> &'static str {
    match signature {
        "KVMKVMKVM" => "KVM",
        "Linux KVM Hv" => "KVM, as Hyper-V",
        "Microsoft Hv" => "Hyper-V",
        "VMwareVMware" => "VMware",
        "XenVMMXenVMM" => "Xen",
        "TCGTCGTCGTCG" => "QEMU's emulator",
        "bhyve bhyve" | "BHyVE BHyVE" => "bhyve",
        "ACRNACRNACRN" => "ACRN",
        "VBoxVBoxVBox" => "VirtualBox",
        "lrpepyh  vr" | "prl hyperv" => "Parallels",
        "QNXQVMBSQG" => "QNX",
        _ => "a hypervisor without a known name",
    }
}
