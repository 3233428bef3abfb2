//! Measuring inside a kernel that this program boots.
//!
//! The same command runs again inside, on the host's file tree, and writes its
//! record there; the host's side then reads the record like any other. One
//! process measures and another judges, with the record between them.

pub mod against;
pub mod blocks;
mod watch;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ntcopy_kernel::boot::{self, HostCpus};
use ntcopy_kernel::module;
use ntcopy_kernel::{Boot, BuildOptions, Built, Error, Kind, progress};

use crate::hardware::KIND_VARIABLE;
use crate::machine::{FACTS_VARIABLE, HostFacts, KEY_VARIABLE};
use crate::sample::Needs;
pub use ntcopy_kernel::Error as GuestError;

/// Memory of the kernel beside what the plan needs: the kernel itself, the
/// programs, the page cache.
const SLACK_BYTES: u64 = 256 << 20;
const STEP_BYTES: u64 = 64 << 20;

/// Environment: the command line that the user typed, as a JSON array, for the record.
const COMMAND_VARIABLE: &str = "NTCOPY_COMMAND";

#[derive(Debug, Clone)]
pub struct Request {
    pub kernel: Kind,
    /// CPUs of the kernel, 1 or 2.
    pub kernel_cpus: u32,
    pub host_cpus: HostCpus,
    /// What the plan needs that the inside will make.
    pub needs: Needs,
    /// The record's directory, an absolute path.
    pub place: PathBuf,
    /// What the inside may write beside the record.
    pub writable: Vec<PathBuf>,
    /// Folders in which the inside may write what goes with the kernel.
    pub scratch: Vec<PathBuf>,
    /// This program's arguments. It runs again inside with them, and with
    /// `--kernel host --out PLACE --measure-only` after them.
    pub args: Vec<OsString>,
    pub command: Vec<String>,
}

/// How the inside ended. The figures are in the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inside {
    pub code: u8,
    /// Lines in which the kernel under test reported a fault of its own.
    pub complaints: Vec<String>,
}

/// The command line that makes this record: what the host's side passed in, or
/// this process's own.
pub fn command_line() -> Vec<String> {
    let passed_in = std::env::var(COMMAND_VARIABLE).ok();
    passed_in.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| {
        let own = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        std::iter::once("ntcopy".to_owned()).chain(own.skip(1)).collect()
    })
}

/// Builds the kernel if it is not in the cache, and the module if the kernel is for that, boots it,
/// and measures inside.
pub fn measure(request: &Request) -> Result<Inside, Error> {
    let (built, module) = prepare(request)?;
    let watch = watch::Watch::start(&request.place, request.needs.samples);
    let inside = boot(request, &built, module.as_deref());
    drop(watch);
    inside
}

/// Builds the kernel if it is not in the cache, and the module if the kernel is for that.
fn prepare(request: &Request) -> Result<(Built, Option<PathBuf>), Error> {
    // A build takes minutes, and would be for nothing.
    boot::check_boot(request.kernel)?;
    let options = BuildOptions::from_env(request.kernel)?;
    Ok(match request.kernel.is_for_module() {
        true => {
            let (built, module) = module::build_for(&options, None, &mut *progress::for_stderr())?;
            (built, Some(module))
        }
        false => (ntcopy_kernel::build(&options, &mut *progress::for_stderr())?, None),
    })
}

/// Boots a kernel, with the module if it is built for that, and measures inside.
fn boot(request: &Request, built: &Built, module: Option<&Path>) -> Result<Inside, Error> {
    let program = std::env::current_exe().map_err(|cause| Error::Io {
        doing: "finding",
        path: "this program".into(),
        cause,
    })?;
    let facts = facts(&request.host_cpus);
    let mut boot = Boot::new(built, command(program.into(), request, module))
        .env(KIND_VARIABLE, request.kernel.name())
        .env(KEY_VARIABLE, &built.key)
        .env(FACTS_VARIABLE, json(&facts))
        .env(COMMAND_VARIABLE, json(&request.command));
    boot.cpus = request.kernel_cpus;
    boot.host_cpus = request.host_cpus.clone();
    boot.mem_bytes = mem_bytes(&request.needs);
    boot.timeout = request.needs.longest;
    let sysctls = request.needs.sysctls.iter();
    boot.sysctls = sysctls.map(|sysctl| (sysctl.name.into(), sysctl.value())).collect();
    boot.writable.clone_from(&request.writable);
    boot.scratch.clone_from(&request.scratch);
    let place = &request.place;
    std::fs::create_dir_all(place).map_err(|cause| Error::Io {
        doing: "creating",
        path: place.clone(),
        cause,
    })?;
    boot.writable.push(place.clone());
    let outcome = boot.run();
    // Where nothing was measured there is no record.
    let _ = std::fs::remove_dir(place);
    let outcome = outcome?;
    let complaints = outcome.fault_reports.into_iter().map(|report| report.title).collect();
    Ok(Inside { code: outcome.code, complaints })
}

/// What only the host can tell, where the kernel runs among it.
fn facts(host_cpus: &HostCpus) -> HostFacts {
    let mut facts = HostFacts::detect();
    let number = |cpu: &usize| u32::try_from(*cpu).ok();
    match host_cpus {
        HostCpus::Any => {}
        HostCpus::One(cpu) => facts.kernel_pin = number(cpu),
        HostCpus::Each(cpus) => facts.kernel_own_cpus = cpus.iter().filter_map(number).collect(),
    }
    facts
}

/// This program with its arguments, and with options that keep it where it is and quiet.
fn command(program: OsString, request: &Request, module: Option<&Path>) -> Vec<OsString> {
    let mut command = vec![program];
    command.extend(request.args.iter().cloned());
    command.extend(["--kernel", "host", "--out"].map(OsString::from));
    command.push(request.place.clone().into());
    command.push("--measure-only".into());
    match module {
        Some(module) => after_loading(module, command),
        None => command,
    }
}

/// The command, once a module is loaded by the program that the command calls.
fn after_loading(module: &Path, command: Vec<OsString>) -> Vec<OsString> {
    let script = r#""$2" module load "$1" >/dev/null && shift && exec "$@""#;
    let mut words: Vec<OsString> = ["sh", "-c", script, "measure"].map(OsString::from).into();
    words.push(module.into());
    words.extend(command);
    words
}

fn json(value: &impl serde::Serialize) -> String {
    // Strings and integers always have a JSON form.
    serde_json::to_string(value).unwrap_or_default()
}

fn mem_bytes(needs: &Needs) -> u64 {
    (needs.memory_bytes + SLACK_BYTES).next_multiple_of(STEP_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::sends::SendsPlan;
    use crate::experiments::sends::unix::{self, Settings};
    use crate::plan::Cpus;
    use crate::sample::Bootable as _;

    fn plan(settings: &Settings) -> SendsPlan {
        unix::plan(settings, &Cpus { allowed: vec![0], sharing_l2: None }).unwrap()
    }

    fn rounds() -> Settings {
        Settings { sockets: vec![1, 128], ..Settings::default() }
    }

    #[test]
    fn the_inside_gets_the_same_arguments_and_where_to_write() {
        let request = Request {
            kernel: Kind::Um,
            kernel_cpus: 1,
            host_cpus: HostCpus::Any,
            needs: plan(&rounds()).needs(),
            place: "/records/a b".into(),
            writable: vec![],
            scratch: vec![],
            args: ["bench", "unix", "--kernel", "um"].map(OsString::from).into(),
            command: vec![],
        };
        let words = command("/bin/ntcopy".into(), &request, None);
        let expected = [
            "/bin/ntcopy",
            "bench",
            "unix",
            "--kernel",
            "um",
            "--kernel",
            "host",
            "--out",
            "/records/a b",
            "--measure-only",
        ];
        assert_eq!(words, expected.map(OsString::from));
        let module = Some(Path::new("/cache/ntcopy.ko"));
        let loading = command("/bin/ntcopy".into(), &request, module);
        assert_eq!(loading[..2], ["sh", "-c"].map(OsString::from));
        assert_eq!(loading[4], "/cache/ntcopy.ko");
        assert_eq!(loading[5..], words);
    }

    #[test]
    fn memory_covers_data_set_flight_and_pattern() {
        let bytes = mem_bytes(&plan(&rounds()).needs());
        assert!(bytes >= (256 + 2 * 128 + 256) << 20, "{bytes}");
        assert_eq!(bytes % STEP_BYTES, 0);
    }
}
