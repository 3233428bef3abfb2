//! Running a command inside a built kernel.

mod cpus;
mod fault_report;
mod kvm;
mod launch;
mod limit;
mod memory;
mod qemu;
mod relay;
mod run_dir;
pub(crate) mod spec;
mod spin;
mod wall;
mod watch;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) use cpus::HOST_CPUS;
use cpus::check_own;
pub use cpus::{HostCpus, sharing_l2};
pub use fault_report::FaultReport;
pub use memory::{HUGE_PAGES_VARIABLE, available_bytes};

use crate::build::{BuildOptions, is_built};
use crate::cache::Built;
use crate::error::{Context, Error, Result};
use crate::interrupt::Interrupts;
use crate::kind::{Kind, RunsAs};
use crate::tools;
use qemu::Share;
use spec::{LineKind, Spec};

/// What the guest has by default.
pub const DEFAULT_MEM_BYTES: u64 = 2 << 30;

/// How long a um kernel may take until its init is at work. It takes a fifth of a second.
pub const BOOT_LIMIT: Duration = Duration::from_secs(30);
/// The same for an emulated machine, which takes ten seconds.
pub const EMULATED_BOOT_LIMIT: Duration = Duration::from_secs(240);

/// Name of the file in the run directory with what the kernel says.
const CONSOLE: &str = "console";
/// Name of the socket there between QEMU and the daemon that shares the host's tree.
const SHARE_SOCKET: &str = "share";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// It goes to this process's standard output and standard error, byte by byte.
    #[default]
    Inherit,
    /// It is kept, for [`Outcome`].
    Capture,
}

/// A command to run in a booted kernel.
///
/// The guest sees the host's file tree, and may not write to it except below `writable`; what it
/// writes below `scratch` the host never sees. It has its
/// own /proc, /sys, /dev, /dev/shm and /run; its root is this user. A um kernel runs as a process of
/// the host; the others in QEMU, by KVM or emulated.
#[derive(Clone, Debug)]
pub struct Boot {
    kernel: PathBuf,
    kind: Kind,
    modules: Option<PathBuf>,
    command: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    /// The program that is the guest's first process: `ntcopy`, which is what runs now unless
    /// this says otherwise. It is called as `PROGRAM kernel guest-init SPEC`.
    pub init: Option<PathBuf>,
    /// Folders of the host that the guest may write.
    pub writable: Vec<PathBuf>,
    /// Folders of the host in which the guest may write what goes with it; those that are not
    /// there, or in which it may write anyway, are left out.
    pub scratch: Vec<PathBuf>,
    /// CPUs of the guest: one for what is heavy in system calls, two for two busy processes, four
    /// in QEMU for races that two do not show.
    pub cpus: u32,
    pub mem_bytes: u64,
    /// Set before the command starts, as `net.core.ntcopy` or `net/core/ntcopy`.
    pub sysctls: Vec<(String, String)>,
    /// Words of the kernel's command line, alongside ours.
    pub arguments: Vec<String>,
    pub host_cpus: HostCpus,
    /// The guest is killed when the command runs longer than this.
    pub timeout: Option<Duration>,
    /// And when its init is not at work after this.
    pub boot_limit: Duration,
    pub output: Output,
    /// A file for what the kernel says. It never goes into the command's output.
    pub console: Option<PathBuf>,
}

/// How a command in the guest ended.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its exit code; 128 + n when signal n ended it, 126 or 127 when it could not be run.
    pub code: u8,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
    /// In which the guest's kernel reported a fault of its own: a warning, a BUG, a leak.
    pub fault_reports: Vec<FaultReport>,
}

/// Checks that a kernel of this kind can be booted here.
pub fn check_boot(kind: Kind) -> Result<()> {
    tools::check_boot(kind)?;
    if kind == Kind::Kvm { kvm::check() } else { Ok(()) }
}

/// The kernel to measure in where none is named, and why it is that one: `kvm` where KVM runs a guest
/// and its kernel was built, else `um`. One for KVM takes longer to build, too long for the demo, so
/// it is not built unasked.
pub fn best() -> Result<(Kind, String)> {
    let works = match tools::check_boot(Kind::Kvm) {
        Ok(()) => kvm::works()?,
        Err(missing) => Err(missing.to_string()),
    };
    let is_built = works.is_ok() && is_built(&BuildOptions::from_env(Kind::Kvm)?)?;
    Ok(better(works, is_built))
}

fn better(kvm_works: std::result::Result<(), String>, is_built: bool) -> (Kind, String) {
    let built = "kernel build --kernel kvm";
    match kvm_works {
        Ok(()) if is_built => (Kind::Kvm, format!("KVM runs guests here; by ntcopy {built}")),
        Ok(()) => (Kind::Um, format!("KVM runs guests here; ntcopy {built} makes a kernel for it")),
        Err(why) => (Kind::Um, why),
    }
}

impl Boot {
    /// Runs `command` in a kernel, with this process's environment and directory.
    pub fn new<S: AsRef<OsStr>>(kernel: &Built, command: impl IntoIterator<Item = S>) -> Self {
        Self {
            kernel: kernel.path.clone(),
            kind: kernel.kind,
            modules: kernel.modules(),
            command: command.into_iter().map(|word| word.as_ref().to_owned()).collect(),
            environment: std::env::vars_os().collect(),
            init: None,
            writable: Vec::new(),
            scratch: Vec::new(),
            cpus: 1,
            mem_bytes: DEFAULT_MEM_BYTES,
            sysctls: Vec::new(),
            arguments: Vec::new(),
            host_cpus: HostCpus::Any,
            timeout: None,
            boot_limit: match kernel.kind.runs_as() {
                RunsAs::Um => BOOT_LIMIT,
                RunsAs::Qemu if kernel.kind == Kind::Kvm => kvm::LIMIT,
                RunsAs::Qemu => EMULATED_BOOT_LIMIT,
            },
            output: Output::default(),
            console: None,
        }
    }

    /// Sets a variable of the command's environment.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.environment.retain(|(known, _)| *known != name);
        self.environment.push((name, value.into()));
        self
    }

    /// Boots, runs the command with /dev/null as its standard input, and comes back when all of
    /// the guest is gone.
    pub fn run(mut self) -> Result<Outcome> {
        if self.command.is_empty() {
            return Err(Error::Guest("there is no command to run".into()));
        }
        let begun = Instant::now();
        let interrupts = Interrupts::arm()?;
        check_boot(self.kind)?;
        self.check_cpus()?;
        let memory = match self.kind.runs_as() {
            RunsAs::Um => Some(memory::Directory::find(self.mem_bytes)?),
            RunsAs::Qemu => {
                memory::check_host(self.mem_bytes)?;
                None
            }
        };
        self.environment.retain(|(name, _)| name != HUGE_PAGES_VARIABLE);
        if memory.as_ref().is_some_and(|memory| memory.huge.is_some()) {
            self = self.env(HUGE_PAGES_VARIABLE, "1");
        }
        for folder in &mut self.writable {
            *folder = wall::writable(folder)?;
        }
        self.scratch = wall::scratch(&self.scratch, &self.writable);
        let temporary = std::env::temp_dir();
        if !self.writable.iter().any(|folder| temporary.starts_with(folder)) {
            self = self.env("TMPDIR", "/run");
        }
        let spec = self.spec()?;
        let launched = launch::launch(&self, spec, memory.as_ref())?;
        let watch = watch::Watch::new(&self, launched, begun);
        let (mut outcome, run_dir) = watch.finish(&self, &interrupts);
        let console = run_dir.path().join(CONSOLE);
        if let Some(file) = &self.console {
            std::fs::copy(&console, file).doing("writing", file)?;
        }
        if let Ok(outcome) = &mut outcome {
            outcome.fault_reports =
                fault_report::find(&fault_report::read_console(&console), self.kind.runs_as());
        }
        outcome
    }

    fn check_cpus(&self) -> Result<()> {
        let most = match self.kind {
            Kind::Um612 => 1,
            Kind::Um | Kind::UmModule => 2,
            Kind::X86(..) | Kind::Stock(_) | Kind::Kvm => 4,
        };
        if let HostCpus::Each(cpus) = &self.host_cpus {
            check_own(self.kind)?;
            if cpus.len() != self.cpus as usize {
                return Err(Error::NotHere(format!(
                    "{} CPUs of the host are named for {} of the guest",
                    cpus.len(),
                    self.cpus
                )));
            }
        }
        if self.cpus <= most {
            return Ok(());
        }
        Err(Error::NotHere(format!(
            "kernel '{}' has {most} CPUs at most, not {}",
            self.kind, self.cpus
        )))
    }

    fn spec(&self) -> Result<Spec> {
        let directory = std::env::current_dir().doing("finding", "the current directory")?;
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        Ok(Spec {
            command: self.command.clone(),
            environment: self.environment.clone(),
            directory: directory.into_os_string(),
            writable: self.writable.iter().map(|folder| folder.into()).collect(),
            scratch: self.scratch.iter().map(|folder| folder.into()).collect(),
            sysctls: self.sysctls.clone(),
            open_files: (limit.current, limit.maximum),
            lines: match self.kind.runs_as() {
                RunsAs::Um => LineKind::Serial,
                RunsAs::Qemu => LineKind::VirtioPorts,
            },
            // Known when there is a run directory.
            modules: None,
        })
    }

    /// Iterations that each side of a um guest's hand-over spins.
    fn spin(&self) -> Result<u32> {
        let asked = match std::env::var(spin::VARIABLE) {
            Ok(text) if !text.is_empty() => Some(text.parse().map_err(|_| {
                let variable = spin::VARIABLE;
                Error::NotHere(format!("{variable} is a number of iterations, not '{text}'"))
            })?),
            _ => None,
        };
        Ok(spin::iterations(self.cpus, cpus::allowed()?.len(), &self.host_cpus, asked))
    }

    /// A um kernel's command line. `run_dir` holds the link to init and the orders; `fds` are the
    /// host's descriptors of the serial lines.
    fn um_arguments(&self, spin: u32, run_dir: &Path, fds: [i32; 3]) -> Vec<String> {
        let mut arguments = vec![format!("mem={}K", self.mem_bytes.div_ceil(1024))];
        if self.kind.is_um_with_smp() {
            arguments.extend([
                "seccomp=on".into(),
                format!("ncpus={}", self.cpus),
                format!("seccomp_spin={spin}"),
            ]);
            if let HostCpus::Each(cpus) = &self.host_cpus {
                let cpus: Vec<String> = cpus.iter().map(ToString::to_string).collect();
                arguments.push(format!("{HOST_CPUS}={}", cpus.join(",")));
            }
        }
        arguments.extend([
            "root=/dev/root".into(),
            "rootfstype=hostfs".into(),
            "rw".into(),
            format!("uml_dir={}", run_dir.display()),
            "umid=um".into(),
            // The console is the process's standard output, which is a file.
            "con=null".into(),
            "con0=null,fd:1".into(),
            "console=tty0".into(),
            "ssl=null".into(),
            // The kernel ends on a panic; there is nothing to reboot it for.
            "panic=-1".into(),
        ]);
        for (line, fd) in [spec::OUT_LINE, spec::ERR_LINE, spec::CONTROL_LINE].iter().zip(fds) {
            arguments.push(format!("ssl{line}=fd:{fd}"));
        }
        self.finish(arguments, run_dir)
    }

    /// The command line of a kernel in QEMU.
    fn qemu_arguments(&self, share: Share, run_dir: &Path) -> Vec<String> {
        self.finish(qemu::kernel_arguments(self.kind, share), run_dir)
    }

    /// The user's own arguments, then init and its arguments.
    fn finish(&self, mut arguments: Vec<String>, run_dir: &Path) -> Vec<String> {
        let run_dir = run_dir.display();
        arguments.extend(self.arguments.iter().cloned());
        arguments.push(format!("init={run_dir}/{}", launch::INIT));
        arguments.push("--".into());
        arguments.extend(["kernel".into(), "guest-init".into()]);
        arguments.push(format!("{run_dir}/{}", launch::SPEC));
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kvm_is_taken_where_it_runs_a_guest_and_its_kernel_is_there() {
        assert_eq!(better(Ok(()), true).0, Kind::Kvm);
        let (kind, why) = better(Ok(()), false);
        assert!(kind == Kind::Um && why.ends_with("makes a kernel for it"), "{why}");
        assert_eq!(better(Err("it died".into()), true), (Kind::Um, "it died".into()));
    }
}
