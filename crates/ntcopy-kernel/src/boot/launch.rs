//! Starting the kernel as a process of the host.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::CpuSet;

use super::run_dir::RunDir;
use super::spec::Spec;
use super::{Boot, Placement};
use crate::error::{Context, Error, Result};
use crate::process::Group;

/// Name of the link to init in the run directory.
pub(super) const INIT: &str = "init";
/// Name of the orders.
pub(super) const SPEC: &str = "spec.json";
/// Name of the file with what the kernel says.
pub(super) const CONSOLE: &str = "console";

/// A started kernel.
pub(super) struct Launched {
    pub(super) group: Group,
    pub(super) out: UnixStream,
    pub(super) err: UnixStream,
    pub(super) control: UnixStream,
    /// Holds orders, console and the kernel's own files; removed when dropped.
    pub(super) run_dir: RunDir,
}

/// Starts the kernel.
pub(super) fn launch(boot: &Boot, spec: &Spec, memory: &Path) -> Result<Launched> {
    let run_dir = RunDir::new()?;
    let path = run_dir.path();
    let init = match &boot.init {
        Some(init) => fs::canonicalize(init).doing("finding", init)?,
        None => std::env::current_exe().doing("finding", "this program")?,
    };
    std::os::unix::fs::symlink(&init, path.join(INIT)).doing("creating", path.join(INIT))?;
    let text = serde_json::to_vec(spec).map_err(io::Error::from).doing("writing", path)?;
    fs::write(path.join(SPEC), text).doing("writing", path.join(SPEC))?;
    let console = File::create(path.join(CONSOLE)).doing("creating", path.join(CONSOLE))?;
    let errors = console.try_clone().doing("opening", path.join(CONSOLE))?;

    let pair = || UnixStream::pair().doing("making", "a serial line");
    let (out, guest_out) = pair()?;
    let (err, guest_err) = pair()?;
    let (control, guest_control) = pair()?;
    let fds = [guest_out.as_raw_fd(), guest_err.as_raw_fd(), guest_control.as_raw_fd()];
    let placement = boot.placement()?;

    let mut command = Command::new(&boot.kernel);
    command.args(boot.kernel_arguments(placement, path, fds));
    command.env_clear().env("PATH", "/usr/bin:/bin").env("TMPDIR", memory).env("HOME", path);
    command.current_dir("/").stdin(Stdio::null()).stdout(console).stderr(errors);
    prepare_child(&mut command, fds, placement)?;
    let child = command.spawn().doing("starting", &boot.kernel)?;
    Ok(Launched { group: Group::new(child, "the kernel"), out, err, control, run_dir })
}

/// What happens in the child between fork and exec.
fn prepare_child(command: &mut Command, fds: [RawFd; 3], placement: Placement) -> Result<()> {
    let mut cpu_set = None;
    if let Some(cpu) = placement.pin {
        if cpu >= CpuSet::MAX_CPU {
            return Err(Error::NotHere(format!("there is no CPU {cpu} on this host")));
        }
        let mut set = CpuSet::new();
        set.set(cpu);
        cpu_set = Some(set);
    }
    let parent = rustix::process::getpid();
    let prepare = move || -> io::Result<()> {
        // A session of its own: a terminal's Ctrl-C reaches us only, and one kill ends it all.
        rustix::process::setsid()?;
        for fd in fds {
            // SAFETY: fcntl on a descriptor number touches no memory; the parent keeps the
            // descriptors open until the child has been started.
            if unsafe { libc::fcntl(fd, libc::F_SETFD, 0) } == -1 {
                return Err(io::Error::last_os_error());
            }
        }
        if let Some(set) = &cpu_set {
            rustix::thread::sched_setaffinity(None, set)?;
        }
        // A kernel that panics aborts; its core file would be as large as the guest.
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(Resource::Core, none)?;
        // The kernel wants fixed addresses and would start itself again to get them.
        // SAFETY: personality(2) takes a number and touches no memory.
        unsafe { libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong) };
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
        Ok(())
    };
    // SAFETY: the closure makes system calls only, none of which allocates or takes a lock.
    unsafe { command.pre_exec(prepare) };
    Ok(())
}
