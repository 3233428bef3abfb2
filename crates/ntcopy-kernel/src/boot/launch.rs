//! Starting the guest as a process of the host.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::CpuSet;

use super::cpus;
use super::memory::Directory;
use super::qemu::{self, Share};
use super::run_dir;
use super::spec::{Modules, Spec};
use super::wall::Wall;
use super::{Boot, CONSOLE, HostCpus, SHARE_SOCKET};
use crate::error::{Context, Error, Result};
use crate::kind::{Kind, RunsAs};
use crate::process::Group;
use crate::temporary::Folder;
use crate::tools::virtiofsd;

/// Name of the link to init in the run directory.
pub(super) const INIT: &str = "init";
pub(super) const SPEC: &str = "spec.json";

pub(super) struct Launched {
    pub(super) group: Group,
    /// The daemon that a stock kernel needs.
    pub(super) helper: Option<Group>,
    pub(super) out: UnixStream,
    pub(super) err: UnixStream,
    pub(super) control: UnixStream,
    /// Where the virtual CPUs of a guest by KVM go; empty: wherever the host likes.
    pub(super) vcpus: Vec<usize>,
    /// Holds orders, console and the kernel's own files; removed when dropped.
    pub(super) run_dir: Folder,
}

/// Starts the kernel. `memory` is where a um kernel's lies.
pub(super) fn launch(boot: &Boot, mut spec: Spec, memory: Option<&Directory>) -> Result<Launched> {
    let run_dir = run_dir::make()?;
    let path = run_dir.path();
    let init = match &boot.init {
        Some(init) => fs::canonicalize(init).doing("finding", init)?,
        None => std::env::current_exe().doing("finding", "this program")?,
    };
    std::os::unix::fs::symlink(&init, path.join(INIT)).doing("creating", path.join(INIT))?;
    if let Some(folder) = &boot.modules {
        spec.modules = Some(put_modprobe(folder, path)?);
    }
    let text = serde_json::to_vec(&spec).map_err(io::Error::from).doing("writing", path)?;
    fs::write(path.join(SPEC), text).doing("writing", path.join(SPEC))?;

    let pair = || UnixStream::pair().doing("making", "a serial line");
    let (out, guest_out) = pair()?;
    let (err, guest_err) = pair()?;
    let (control, guest_control) = pair()?;
    let lines = [guest_out.as_raw_fd(), guest_err.as_raw_fd(), guest_control.as_raw_fd()];

    let mut helper = None;
    let mut command = match boot.kind.runs_as() {
        RunsAs::Um => {
            let mut command = Command::new(&boot.kernel);
            command.args(boot.um_arguments(boot.spin()?, path, lines));
            command
        }
        RunsAs::Qemu => {
            let share = Share::of(boot.kind);
            if share == Share::VirtioFs {
                helper = Some(serve(boot, path)?);
            }
            let mut command = Command::new(qemu::PROGRAM);
            let Boot { kernel, kind, mem_bytes, cpus, .. } = boot;
            command.args(qemu::arguments(kernel, *kind, *mem_bytes, *cpus, path, lines));
            command.arg("-append").arg(boot.qemu_arguments(share, path).join(" "));
            command
        }
    };
    at_rest(&mut command, path, memory.map_or(path, |memory| &memory.path))?;
    let huge = memory.and_then(|memory| memory.huge.as_ref()).map(AsRawFd::as_raw_fd);
    let fds: Vec<RawFd> = lines.into_iter().chain(huge).collect();
    let own = memory.filter(|memory| memory.huge.is_none()).map(|memory| memory.path.clone());
    let wall = wall(boot, path, own)?;
    prepare_child(&mut command, &fds, &boot.host_cpus, wall)?;
    let group = command.spawn().map(Group::of).doing("starting", &boot.kernel)?;
    let vcpus = pinned(boot)?;
    Ok(Launched { group, helper, out, err, control, vcpus, run_dir })
}

/// A CPU of the host for each of a guest's by KVM, where there are enough.
fn pinned(boot: &Boot) -> Result<Vec<usize>> {
    if boot.kind != Kind::Kvm {
        return Ok(Vec::new());
    }
    match &boot.host_cpus {
        HostCpus::One(_) => Ok(Vec::new()),
        HostCpus::Each(cpus) => Ok(cpus.clone()),
        HostCpus::Any => {
            let allowed = cpus::allowed()?;
            Ok(allowed.get(..boot.cpus as usize).unwrap_or_default().to_vec())
        }
    }
}

/// Makes the program that finds a kernel's modules where they are.
fn put_modprobe(folder: &Path, run_dir: &Path) -> Result<Modules> {
    let modprobe = run_dir.join("modprobe");
    // -d is what stands before /lib/modules.
    let base = folder.ancestors().nth(2).unwrap_or(folder).display();
    let text = format!("#!/bin/sh\nexec modprobe -d '{base}' \"$@\"\n");
    fs::write(&modprobe, text).doing("writing", &modprobe)?;
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(&modprobe, executable).doing("writing", &modprobe)?;
    Ok(Modules { folder: folder.into(), modprobe: modprobe.into() })
}

/// A child that knows nothing of this process's surroundings, and whose words go to the console's
/// file.
fn at_rest(command: &mut Command, run_dir: &Path, temporary: &Path) -> Result<()> {
    let path = run_dir.join(CONSOLE);
    // QEMU opens it a second time, so each writes at its end.
    let console = OpenOptions::new().create(true).append(true).open(&path);
    let console = console.doing("creating", &path)?;
    let errors = console.try_clone().doing("opening", &path)?;
    command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", run_dir);
    command.env("TMPDIR", temporary);
    command.current_dir("/").stdin(Stdio::null()).stdout(console).stderr(errors);
    Ok(())
}

/// Starts the daemon that serves the host's tree to a stock kernel, and waits for its socket.
fn serve(boot: &Boot, run_dir: &Path) -> Result<Group> {
    let daemon =
        virtiofsd().ok_or_else(|| Error::NotHere("there is no virtiofsd on this host".into()))?;
    if !rustix::process::geteuid().is_root() {
        let text = "the daemon that shares this host's files with a stock kernel, virtiofsd, \
                    works as root only; our own kernels need no such daemon: --kernel x86";
        return Err(Error::NotHere(text.into()));
    }
    let socket = run_dir.join(SHARE_SOCKET);
    let mut command = Command::new(&daemon.path);
    command.args(qemu::daemon_arguments(&daemon, &socket));
    at_rest(&mut command, run_dir, run_dir)?;
    // Debian 12's keeps a lock there.
    let locks = (!daemon.takes_long_options).then(|| PathBuf::from("/run/virtiofsd"));
    if let Some(locks) = &locks {
        fs::create_dir_all(locks).doing("creating", locks)?;
    }
    prepare_child(&mut command, &[], &HostCpus::Any, wall(boot, run_dir, locks)?)?;
    let mut group = command.spawn().map(Group::of).doing("starting", &daemon.path)?;
    let begun = std::time::Instant::now();
    while !socket.exists() {
        if group.try_wait().doing("waiting for", "virtiofsd")?.is_some()
            || begun.elapsed() > super::BOOT_LIMIT
        {
            let lines = super::fault_report::last_lines(&run_dir.join(CONSOLE));
            return Err(Error::Died { how: "virtiofsd did not come up".into(), last_lines: lines });
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(group)
}

/// The wall around a guest whose process itself writes to `run_dir` and to `more`; none for one that
/// may write everywhere.
fn wall(boot: &Boot, run_dir: &Path, more: Option<PathBuf>) -> Result<Option<Wall>> {
    if boot.writable.iter().any(|folder| folder == Path::new("/")) {
        return Ok(None);
    }
    let own = [run_dir.to_path_buf()].into_iter().chain(more);
    Wall::new(&boot.writable.iter().cloned().chain(own).collect::<Vec<_>>()).map(Some)
}

fn prepare_child(
    command: &mut Command,
    fds: &[RawFd],
    host_cpus: &HostCpus,
    mut wall: Option<Wall>,
) -> Result<()> {
    let mut cpu_set = None;
    if let HostCpus::One(cpu) = *host_cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(Error::NotHere(format!("there is no CPU {cpu} on this host")));
        }
        let mut set = CpuSet::new();
        set.set(cpu);
        cpu_set = Some(set);
    }
    let parent = rustix::process::getpid();
    let fds = fds.to_vec();
    let prepare = move || -> io::Result<()> {
        // A session of its own: a terminal's Ctrl-C reaches us only, and one kill ends it all.
        rustix::process::setsid()?;
        // The wish to die with the parent, below, would not survive a new user namespace.
        wall.as_mut().map_or(Ok(()), Wall::close)?;
        for fd in &fds {
            // SAFETY: fcntl on a descriptor number touches no memory; the parent keeps the
            // descriptors open until the child has been started.
            if unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) } == -1 {
                return Err(io::Error::last_os_error());
            }
        }
        if let Some(set) = &cpu_set {
            rustix::thread::sched_setaffinity(None, set)?;
        }
        // A kernel that panics aborts; its core file would be as large as the guest.
        let none = Rlimit { current: Some(0), maximum: Some(0) };
        rustix::process::setrlimit(Resource::Core, none)?;
        // A um kernel wants fixed addresses and would start itself again to get them.
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
