//! `ntcopy kernel`: kernels that know the flag.

mod args;
mod package;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ntcopy_kernel::boot::{self, HostCpus};
use ntcopy_kernel::{
    Boot, BuildOptions, Built, Cache, Entry, Error, Outcome, SourceId, State, progress,
};
use ntcopy_record::units::{about_size, count};
use serde::Serialize;

use crate::say;
pub use args::{Args, KernelName};
use args::{BootArgs, KernelArgs};

/// How many reports of the guest's kernel are printed at length.
const SHOWN_FAULT_REPORTS: usize = 5;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    Ok(match args {
        Args::Build(args) => build(&args)?,
        Args::Package(args) => package::run(args)?,
        Args::Boot(args) => boot(args)?,
        Args::List { json } => list(json)?,
        Args::Clean { all } => clean(all)?,
        Args::GuestInit { spec } => ntcopy_kernel::guest::init(&spec),
    })
}

fn options(kernel: &KernelArgs) -> Result<BuildOptions, Error> {
    BuildOptions::from_env(kernel.kind()?)
}

fn build(kernel: &KernelArgs) -> Result<ExitCode, Error> {
    let built = ntcopy_kernel::build(&options(kernel)?, progress::for_stderr().as_mut())?;
    println!("{}", built.path.display());
    Ok(ExitCode::SUCCESS)
}

/// The kernel of the guest, from the cache or built now, and the CPUs of the host for it.
fn kernel(args: &BootArgs) -> Result<(Built, HostCpus), Error> {
    let options = options(&args.kernel)?;
    // Not after minutes of compiling.
    boot::check_boot(options.kind)?;
    let host_cpus = match args.own_caches {
        true => HostCpus::with_own_caches(args.cpus, options.kind)?,
        false => HostCpus::Any,
    };
    Ok((ntcopy_kernel::build(&options, progress::for_stderr().as_mut())?, host_cpus))
}

fn boot(args: BootArgs) -> Result<ExitCode, Error> {
    let (kernel, host_cpus) = kernel(&args)?;
    let mut boot = Boot::new(&kernel, args.command);
    (boot.cpus, boot.mem_bytes, boot.host_cpus) = (args.cpus, args.mem, host_cpus);
    (boot.writable, boot.sysctls, boot.arguments) = (args.write, args.sysctl, args.append);
    boot.console = args.console;
    boot.boot_limit = args.boot_timeout.map_or(boot.boot_limit, Duration::from_secs);
    boot.timeout = (args.timeout > 0).then(|| Duration::from_secs(args.timeout));
    Ok(end(&boot.run()?))
}

/// Passes the exit code on, unless the guest's kernel reported a fault of its own.
fn end(outcome: &Outcome) -> ExitCode {
    for report in outcome.fault_reports.iter().take(SHOWN_FAULT_REPORTS) {
        eprintln!("ntcopy: the guest's kernel reported a fault:");
        for line in &report.lines {
            eprintln!("  {line}");
        }
    }
    match outcome.fault_reports.len() {
        0 => ExitCode::from(outcome.code),
        faults => {
            eprintln!(
                "ntcopy: {} reported by the guest's kernel, so this boot failed; its command ended \
                 with {}",
                count(faults, "fault"),
                outcome.code
            );
            ExitCode::from(outcome.code.max(1))
        }
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Kernels<'a> {
    cache: &'a Path,
    kernels: Vec<Entry>,
}

fn list(json: bool) -> anyhow::Result<ExitCode> {
    let cache = Cache::locate()?;
    let kernels = ntcopy_kernel::list(&cache)?;
    if json {
        say::object(&Kernels { cache: cache.root(), kernels })?;
        return Ok(ExitCode::SUCCESS);
    }
    println!("cache: {}", cache.root().display());
    if kernels.is_empty() {
        println!("no kernels yet; ntcopy kernel build makes one");
    }
    for entry in &kernels {
        println!("{}", line(entry));
    }
    Ok(ExitCode::SUCCESS)
}

/// One kernel, for people.
fn line(entry: &Entry) -> String {
    let (state, why) = match entry.state {
        State::Current => ("current", String::new()),
        State::Stale(why) => ("stale", format!("; {why}")),
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let age = age(now.saturating_sub(entry.meta.built_unix_s));
    let source = match &entry.meta.source {
        SourceId::Package { name, version } => format!("{name} {version}"),
        SourceId::Tree { path, .. } => path.clone(),
    };
    format!(
        "{:<28} {state:<8} {:>8}  {age:>12}  {} patches on {source}{why}",
        entry.name,
        about_size(entry.size_bytes),
        entry.meta.patches.len()
    )
}

fn age(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds} s ago"),
        120..=7199 => format!("{} min ago", seconds / 60),
        7200..=172_799 => format!("{} h ago", seconds / 3600),
        _ => format!("{} days ago", seconds / 86_400),
    }
}

fn clean(all: bool) -> Result<ExitCode, Error> {
    let cache = Cache::locate()?;
    let removed = ntcopy_kernel::clean(&cache, all, progress::for_stderr().as_mut())?;
    for item in &removed {
        println!("removed {} ({})", item.path.display(), about_size(item.size_bytes));
    }
    let total_bytes = removed.iter().map(|item| item.size_bytes).sum();
    println!("{} freed in {}", about_size(total_bytes), cache.root().display());
    Ok(ExitCode::SUCCESS)
}
